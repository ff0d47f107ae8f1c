// What is wrong now, in words: {key, level, words, screen}. Levels are bad, warn and note; a note
// does not colour the icon.

const DAY = 86400e3;
// A warning stays for some seconds, so that one on the edge does not flicker.
const STAYS = 5000;
const seen = new Map();
let warnings = [];

function findWarnings() {
  const found = [];
  const add = (level, key, words, screen) => found.push({level, key, words, screen});
  for (const find of [processWarnings, siteWarnings, groupWarnings, limitWarnings,
    certificateWarnings, workerWarnings, resolverWarnings]) {
    find(add, snapshots.now.data, since(snapshots.then));
  }
  const now = snapshots.now.at;
  for (const one of found) {
    const first = seen.has(one.key) ? seen.get(one.key).first : now;
    seen.set(one.key, {...one, first, last: now});
  }
  for (const [key, one] of seen) if (now - one.last > STAYS || now < one.last) seen.delete(key);
  const levels = ['bad', 'warn', 'note'];
  warnings = [...seen.values()].sort((a, b) =>
    levels.indexOf(a.level) - levels.indexOf(b.level) || a.first - b.first);
}

function processWarnings(add, data, window) {
  const now = snapshots.now.at, last = at(data, 'weir', 'reloads', 'last');
  if (at(data, 'weir', 'state') === 'draining') {
    add('warn', 'draining', 'This server is draining: it finishes what it has.', 'configuration');
  }
  if (last && last.at && last.ok === false) {
    const words = `The last reload failed ${ago(last.at)}: ${last.message || 'see the error log'}`;
    add('warn', 'reload', words, 'configuration');
  }
  const started = num(at(data, 'weir', 'started_at'));
  if (started && now - started < 60e3) {
    add('note', 'started', `The server was started ${ago(started)}.`, 'configuration');
  }
  const {open, limit} = at(data, 'process', 'descriptors') || {};
  if (limit && open > .8 * limit) {
    add(open > .95 * limit ? 'bad' : 'warn', 'descriptors',
      `${percent(open, limit)} of the file descriptors are open (${open} of ${limit}).`, 'workers');
  }
  const lost = window.growth('process', 'lost_log_lines');
  if (lost) add('warn', 'lost', `${plural(lost, 'log line')} lost in the last 10 s.`, 'workers');
  const dropped = window.growth('connections', 'dropped');
  if (dropped) {
    add('bad', 'dropped', `${plural(dropped, 'connection')} dropped in the last 10 s.`, 'workers');
  }
  const handshakes = window.growth('tls', 'handshakes');
  const failed = sum(window.codes('tls', 'failed').map(([, n]) => n));
  if (failed > 10 && failed > .2 * (handshakes + failed)) {
    add('warn', 'tls', `${percent(failed, handshakes + failed)} of TLS handshakes fail.`, 'tls');
  }
}

function siteWarnings(add) {
  for (const {id, kind, isStream, name, classes, lost} of model.sites) {
    const all = sum(classes), bad = classes[5];
    // A location's errors are those of its server.
    if (kind === 'location') continue;
    if (lost > 5 && lost > .1 * (all + lost)) {
      add('warn', id + ' lost', `${percent(lost, all + lost)} of requests end without a reply in ` +
        `site ${name}.`, 'sites');
    }
    if (bad < 3 || bad < .02 * all) continue;
    const words = isStream ? `${percent(bad, all)} of sessions fail in ${name}.`
      : `${percent(bad, all)} of replies are 5xx in site ${name}.`;
    add(bad > .1 * all ? 'bad' : 'warn', id, words, 'sites');
  }
}

// The most servers of a group that are named one by one.
const NAMED = 3;

function groupWarnings(add) {
  for (const group of model.groups) {
    const {id, name, peers, bad, queue} = group;
    if (peers.length && !peers.some(peer => isUp(peer) || peer.state === 'checking')) {
      add('bad', id, `No server of ${name} can take requests.`, 'upstreams');
    }
    if (bad.length > NAMED) {
      add('warn', id + ' many', `${bad.length} of ${peers.length} servers of ${name} are ` +
        `unhealthy or unavailable.`, 'upstreams');
    } else for (const peer of bad) add('warn', peer.id, peerWords(peer, name), 'upstreams');
    if (queue && queue.max_length && queue.length >= queue.max_length) {
      add('bad', id + ' full', `The queue of ${name} is full: ${queue.length} requests wait.`,
        'limits');
    } else if (group.overflowed) {
      add('warn', id + ' over', `The queue of ${name} turned away ` +
        `${plural(group.overflowed, 'request')} in the last 10 s.`, 'limits');
    }
    if (group.timedOut) {
      add('warn', id + ' timed', `${plural(group.timedOut, 'request')} waited too long in the ` +
        `queue of ${name} in the last 10 s.`, 'limits');
    }
  }
}

function peerWords(peer, group) {
  const time = peer.since ? ' for ' + span(snapshots.now.at - peer.since) : '';
  return `Server ${peer.name} of ${group} ${peer.state}${time}${peer.why ? ': ' + peer.why : '.'}`;
}

function limitWarnings(add) {
  for (const limit of model.limits) {
    const kind = limit.kind === 'limit_reqs' ? 'limit_req' : 'limit_conn';
    if (limit.exhausted > 0) {
      add('warn', limit.id + ' full', `The zone ${limit.name} of ${kind} is too small.`, 'limits');
    }
    if (limit.rejected >= .5) {
      add('note', limit.id, `${kind} ${limit.name} rejects ${count(limit.rejected)} requests/s.`,
        'limits');
    }
  }
}

function certificateWarnings(add, data) {
  const acme = list(at(data, 'tls', 'acme'));
  for (const {name, failures, last_error: why} of acme) {
    if (failures > 1) {
      add('warn', `acme ${name}`, `The certificate of ${name} was not obtained: ${why}`, 'tls');
    }
  }
  for (const {file, names, not_after_at: end} of [...list(at(data, 'tls', 'certificates')), ...acme]) {
    const left = end - snapshots.now.at, name = list(names)[0] || file;
    if (!(left < 21 * DAY)) continue;
    const words = left < 0 ? `expired ${span(-left)} ago` : `expires in ${span(left)}`;
    add(left < 7 * DAY ? 'bad' : 'warn', `certificate ${file} ${name}`,
      `The certificate of ${name} ${words}.`, 'tls');
  }
}

function workerWarnings(add) {
  for (const {id, name, busy, turns} of model.workers) {
    if (busy > .9) {
      add('warn', id, `Worker ${name} is busy ${percent(busy, 1)} of the time.`, 'workers');
    }
    const slow = sum(turns.slice(BOUNDS.indexOf(.25) + 1));
    if (slow) {
      add('warn', id + ' turn', `Worker ${name} was held up for more than 250 ms ` +
        `${slow === 1 ? 'once' : count(slow) + ' times'} in the last 10 s.`, 'workers');
    }
  }
}

function resolverWarnings(add, data, window) {
  for (const [name] of entries(data.resolvers)) {
    const answers = window.codes('resolvers', name, 'responses');
    const bad = sum(answers.filter(([code]) => !['success', 'not_found'].includes(code))
      .map(([, n]) => n));
    if (bad > 2 && bad > .1 * sum(answers.map(([, n]) => n))) {
      add('warn', 'resolver ' + name, `Resolver ${name}: ${plural(bad, 'query', 'queries')} ` +
        `failed in the last 10 s.`, 'resolvers');
    }
  }
}
