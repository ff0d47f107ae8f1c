// What the screens show, computed from the snapshots once a second. History is recorded on the way.

const model = {sites: [], groups: [], workers: [], limits: [], caches: []};
const ZONES = [['server', 'http', 'server_zones'], ['location', 'http', 'location_zones'],
  ['stream', 'stream', 'server_zones']];
const BAD_STATES = ['unhealthy', 'unavailable'];
// A busy server has as many requests as it may.
const isUp = peer => /^(up|busy)$/.test(peer.state);
const SESSIONS = {success: 2, invalid: 4, forbidden: 4};

function readModel() {
  const data = snapshots.now.data, step = since(snapshots.prev), window = since(snapshots.then);
  const both = {data, step, window};
  model.sites = ZONES.flatMap(([kind, ...path]) =>
    entries(at(data, ...path)).map(([name, zone]) => readSite(both, kind, [...path, name], zone)));
  model.groups = ['http', 'stream'].flatMap(of => entries(at(data, of, 'upstreams'))
    .map(([name, group]) => readGroup(both, of, [of, 'upstreams', name], group)));
  model.workers = list(data.workers).map((worker, i) => readWorker(both, worker, i));
  model.limits = ['http', 'stream'].flatMap(of => ['limit_conns', 'limit_reqs'].flatMap(kind =>
    entries(at(data, of, kind)).map(([name, zone]) =>
      readLimit(both, kind, [of, kind, name], zone))));
  model.caches = entries(at(data, 'http', 'caches')).map(([name, zone]) =>
    readCache(both, ['http', 'caches', name], zone));
  readTotals(both);
}

// Growth by class: the first digit of the status.
function classes(codes, isStream) {
  const sums = [0, 0, 0, 0, 0, 0];
  for (const [code, n] of codes) {
    const digit = isStream ? SESSIONS[code] || 5 : Math.floor(code / 100);
    sums[digit >= 1 && digit <= 5 ? digit : 5] += num(n);
  }
  return sums;
}

function readSite({data, step, window}, kind, path, zone) {
  const isStream = kind === 'stream', id = kind + ' ' + path[2];
  const requests = isStream ? 'connections' : 'requests';
  const codes = isStream ? 'sessions' : 'responses';
  const counts = window.times(...path, 'time');
  const stepRate = step.rate(...path, requests, 'total');
  past.put(id + ' rate', stepRate);
  return {
    id, kind, isStream, name: path[2] || '(no name)', zone, counts,
    total: num(at(zone, requests, 'total')), active: at(zone, requests, 'processing'),
    discarded: num(at(zone, requests, 'discarded')), stepRate,
    lost: window.growth(...path, requests, 'discarded'),
    rate: window.rate(...path, requests, 'total'),
    classes: classes(window.codes(...path, codes), isStream),
    codes: entries(own(zone, codes)), seconds: window.seconds,
    received: window.rate(...path, 'data', 'received'), sent: window.rate(...path, 'data', 'sent'),
    last: num(zone.last_at), ...quantiles(counts),
    stepClasses: classes(step.codes(...path, codes), isStream).map(step.per),
    stepCounts: step.times(...path, 'time'),
  };
}

function quantiles(counts) {
  return {p50: quantile(counts, .5), p95: quantile(counts, .95), p99: quantile(counts, .99)};
}

function readGroup(both, of, path, group) {
  const {step, window} = both, id = of + ' ' + path[2];
  const peers = entries(own(group, 'peers')).map(([name, peer]) =>
    readPeer(both, id, [...path, 'peers', name], peer));
  const queue = own(group, 'queue');
  past.put(id + ' rate', step.seconds ? sum(peers.map(peer => peer.stepRate)) : null);
  if (queue) past.put(id + ' queue', num(queue.length));
  return {
    id, of, name: path[2], group, peers, queue,
    isUp: peers.filter(isUp).length,
    bad: peers.filter(peer => BAD_STATES.includes(peer.state)),
    rate: window.seconds ? sum(peers.map(peer => peer.rate)) : null,
    active: sum(peers.map(peer => peer.active)),
    waited: window.times(...path, 'queue', 'time'),
    queued: window.rate(...path, 'queue', 'queued'),
    overflowed: window.growth(...path, 'queue', 'overflows'),
    timedOut: window.growth(...path, 'queue', 'timedout'),
  };
}

function readPeer({step, window}, group, path, peer) {
  const id = group + ' ' + path[4], times = name => window.times(...path, name);
  const stepRate = step.rate(...path, 'selected', 'total');
  past.put(id + ' rate', stepRate);
  const shown = path[0] === 'stream' ? 'header_time' : 'response_time';
  past.put(id + ' p99', quantile(step.times(...path, shown), .99));
  const opened = window.growth(...path, 'connections', 'opened');
  const reused = window.growth(...path, 'connections', 'reused');
  return {
    id, name: path[4], peer, stepRate, state: String(peer.state || '?'),
    why: peer.why ? String(peer.why) : '', since: num(peer.since_at),
    active: num(at(peer, 'selected', 'current')), max: num(peer.limit),
    rate: window.rate(...path, 'selected', 'total'),
    classes: classes(window.codes(...path, 'responses')),
    codes: entries(peer.responses),
    connections: opened + reused, reused,
    retries: window.growth(...path, 'retries'), times, ...quantiles(times(shown)),
    connect: quantile(times('connect_time'), .5),
  };
}

function readWorker({data, step, window}, worker, i) {
  // Workers have no names in the tree, so they are found by their process and number.
  const same = one => own(one, 'id') === worker.id && own(one, 'pid') === worker.pid;
  const before = other => other && list(at(snapshots[other], 'data', 'workers')).find(same);
  const share = (old, {seconds}) =>
    old && seconds > 0 ? Math.min(1, grown(worker.busy, old.busy) / seconds) : null;
  const [prev, then] = [before('prev'), before('then')];
  const id = `worker ${worker.pid} ${worker.id}`;
  const busy = share(then, window), turns = then ? grownHistogram(worker.turns, then.turns) : [];
  past.put(id + ' busy', share(prev, step));
  return {
    id, name: String(worker.id ?? i), worker, busy, turns, ...quantiles(turns),
    rate: then ? window.per(grownPath(worker, then, 'requests', 'total')) : null,
    stepBusy: share(prev, step),
  };
}

function readLimit({step, window}, kind, path, zone) {
  const id = path.join(' ');
  const rates = ['passed', 'delayed', 'rejected', 'exhausted'].map(name =>
    [name, own(zone, name) == null ? null : window.rate(...path, name)]);
  past.put(id, step.seconds ? step.per(step.growth(...path, 'rejected')) : null);
  return {id, kind, of: path[0], name: path[2], zone, ...Object.fromEntries(rates)};
}

// What caches have done for requests: answered them themselves, or had the backend answer.
const FROM_CACHE = ['hit', 'stale', 'updating', 'revalidated'];
const OUTCOMES = [...FROM_CACHE, 'miss', 'expired', 'bypass'];

function readCache({step, window}, path, zone) {
  const id = path.join(' ');
  const growth = (of, names, what) => sum(names.map(name => of.growth(...path, name, what)));
  const rate = (names, what) => window.per(growth(window, names, what));
  const share = of => {
    const all = growth(of, OUTCOMES, 'responses');
    return all ? growth(of, FROM_CACHE, 'responses') / all : null;
  };
  past.put(id, share(step));
  return {
    id, name: path[2], zone, rate: rate(OUTCOMES, 'responses'), hits: share(window),
    sent: rate(FROM_CACHE, 'bytes'), stored: rate(OUTCOMES, 'responses_written'),
    codes: OUTCOMES.map(name => [name, at(zone, name, 'responses')]).filter(([, n]) => n),
  };
}

function readTotals({data, step, window}) {
  const zones = model.sites.filter(site => site.kind === 'server');
  const counted = zones.length ? zones : model.sites.filter(site => site.kind === 'location');
  const total = name => sum(counted.map(site => site.classes[name]));
  model.counted = counted;
  model.rate = window.rate('http', 'requests', 'total');
  model.errors = total(5);
  model.replies = sum([1, 2, 3, 4, 5].map(total));
  Object.assign(model, quantiles(addCounts(counted.map(site => site.counts))));
  model.busy = model.workers.map(worker => worker.busy).filter(busy => busy != null);
  model.queues = model.groups.filter(group => group.queue);
  model.queue = sum(model.queues.map(group => group.queue.length));

  const rate = step.rate('http', 'requests', 'total');
  past.put('rate', rate);
  const inClasses = [2, 3, 4, 5].map(n => sum(counted.map(site => site.stepClasses[n])));
  inClasses.forEach((n, i) => past.put(`class ${i + 2}`, rate == null ? null : n));
  past.put('class other', rate == null ? null : Math.max(0, rate - sum(counted.map(site => site.stepRate))));
  past.put('errors', rate == null || !counted.length ? null : inClasses[3]);
  const stepCounts = addCounts(counted.map(site => site.stepCounts));
  past.put('p50', quantile(stepCounts, .5));
  past.put('p99', quantile(stepCounts, .99));
  past.put('connections', at(data, 'connections', 'active'));
  const busy = model.workers.map(worker => worker.stepBusy).filter(share => share != null);
  past.put('busy', busy.length ? Math.max(...busy) : null);
  past.put('queue', model.queues.length ? model.queue : null);
  const cpu = ['cpu_user', 'cpu_system'].map(name => step.rate('process', name));
  past.put('cpu', cpu.includes(null) ? null : sum(cpu));
  past.put('memory', at(data, 'process', 'memory'));
}
