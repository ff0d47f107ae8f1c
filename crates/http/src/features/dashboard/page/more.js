// The other screens: caches, limits, slow requests, TLS, resolvers, workers, configuration.

function cachesScreen() {
  const size = row => num(row.zone.size), most = row => num(row.zone.max_size);
  const rows = () => model.caches.filter(cache => fits(cache.name));
  const caches = table({name: 'Caches', key: row => row.id, columns: [
    nameColumn('Zone'), column('req/s', 5, row => row.rate),
    column('hits', 4.5, row => row.hits, {title: 'answered by the cache, expired responses included',
      text: row => percent(row.hits, row.hits == null ? 0 : 1)}),
    sparkColumn('trend', row => row.id, 'ok'),
    column('out/s', 5.5, row => row.sent, {title: 'bytes from the cache', text: row => bytes(row.sent)}),
    column('stored/s', 5.5, row => row.stored),
    column('size', 9.5, size, {kind: row => most(row) && size(row) >= most(row) ? 'warn' : '',
      text: row => bytes(size(row)) + (most(row) ? ' of ' + bytes(most(row)) : '')}),
    column('entries', 9.5, row => num(row.zone.entries),
      {make: () => limitCell(row => row.zone.entries, row => row.zone.max_entries)}),
    column('purges', 5, row => num(row.zone.purge_rules), {title: 'purges whose files are still there'}),
    {head: 'directory', width: 6, text: row => row.zone.cold ? 'is read' : 'known'}],
  detail: () => drawn('div.detail', codeList())});
  return unlessEmpty(() => model.caches.length,
    drawn('div', drawn('div.tools', filterBox('Filter by name')), drawing(rows, caches)),
    hint('No caches. ', code('proxy_cache_path PATH keys_zone=NAME:SIZE;'), ' and ',
      code('proxy_cache NAME;'), ' make one.'));
}

function limitsScreen() {
  const kinds = {limit_reqs: 'limit_req', limit_conns: 'limit_conn'};
  const queues = table({name: 'Queues', key: row => row.id, columns: [
    nameColumn('Queue of'), sparkColumn('trend', row => row.id + ' queue', 'client'),
    column('length', 7, row => num(row.queue.length),
      {make: () => limitCell(row => row.queue.length, row => row.queue.max_length)}),
    column('queued/s', 5.5, row => row.queued),
    column('p50 wait', 5.5, row => quantile(row.waited, .5),
      {text: row => time(quantile(row.waited, .5))}),
    column('p99 wait', 5.5, row => quantile(row.waited, .99),
      {text: row => time(quantile(row.waited, .99))}),
    column('turned away', 6.5, row => num(row.queue.overflows), {title: 'since the start'}),
    column('timed out', 6, row => num(row.queue.timedout), {title: 'since the start'})],
  detail: () => drawn('div.histograms', histogram('time waited', row => row.waited))});
  const limits = table({name: 'Limits', key: row => row.id, columns: [
    nameColumn('Zone'), {head: 'limits', width: 7, sort: row => kinds[row.kind],
      text: row => kinds[row.kind] + (row.of === 'stream' ? ', stream' : '')},
    sparkColumn('rejected', row => row.id, 'bad'),
    column('passed/s', 6, row => row.passed), column('delayed/s', 6, row => row.delayed),
    column('rejected/s', 6, row => row.rejected, {kind: row => row.rejected > 0 ? 'bad' : ''}),
    column('rejected', 6, row => num(row.zone.rejected), {title: 'since the start'}),
    column('skipped', 5, row => num(row.zone.skipped), {title: 'without a key, since the start'}),
    column('too small', 5.5, row => num(row.zone.exhausted),
      {title: 'how often the zone had no room, since the start'})]});
  return drawn('div',
    unlessEmpty(() => model.queues.length, drawing(() => model.queues, queues),
      hint('No queues. ', code('limit_upstream_conn'), ' or ', code('queue'),
        ' in an upstream lets requests wait for a server.')),
    unlessEmpty(() => model.limits.length, drawing(() => model.limits, limits),
      hint('No limits. ', code('limit_req_zone'), ' and ', code('limit_conn_zone'),
        ' with ', code('limit_req'), ' and ', code('limit_conn'), ' make some.')));
}

const PHASE_KINDS = ['half', 'client', 'most', 'moved', 'bad', 'other'];

function phaseCell() {
  const bar = partBar(), words = h('small.quiet');
  const made = h('div.phases', bar, words);
  made.draw = ({phases, time: all}) => {
    const parts = entries(phases).sort((a, b) => num(b[1]) - num(a[1]));
    bar.draw(parts.map(([name, n]) => [n / all, PHASE_KINDS[phaseNumber(name)]]));
    const rest = all - sum(parts.map(part => part[1]));
    const named = parts.map(([name, n]) => `${name} ${time(n)}`);
    if (rest > .01 * all) named.push(`other ${time(rest)}`);
    text(words, named.join(', '));
  };
  return made;
}

// Each phase keeps its colour.
const phaseNames = [];
function phaseNumber(name) {
  if (!phaseNames.includes(name)) phaseNames.push(name);
  return phaseNames.indexOf(name) % PHASE_KINDS.length;
}

function slowScreen() {
  const rows = () => list(told('slow')).filter(row => row && typeof row === 'object')
    .filter(row => fits(`${row.request} ${row.host} ${row.zone} ${row.upstream}`));
  const slow = table({name: 'Slow requests', down: true, columns: [
    column('ended', 5.5, row => row.at, {class: '', text: row => clock(row.at)}),
    column('took', 5, row => row.time, {text: row => time(row.time)}),
    column('status', 4, row => row.status,
      {text: row => row.status ?? NONE, kind: row => row.status >= 500 ? 'bad' : ''}),
    {head: 'phases', width: 21, make: phaseCell},
    {head: 'request', text: row => row.request ?? NONE, sort: row => row.request},
    {head: 'zone', width: 6, text: row => row.zone ?? NONE, sort: row => row.zone},
    {head: 'host', width: 8.5, text: row => row.host ?? NONE, sort: row => row.host},
    {head: 'server', width: 9, text: row => row.upstream ?? NONE, sort: row => row.upstream}],
  key: row => [row.at, row.request, row.time, row.upstream].join(' ')});
  return unlessEmpty(() => list(told('slow')).length,
    drawn('div', drawn('div.tools', filterBox('Filter')), drawing(rows, slow)),
    hint('No slow requests. ', code('slow_log FILE threshold=500ms;'),
      ' keeps those that take longer, with where their time went.'));
}

function tlsScreen() {
  const tls = name => told('tls', name), failed = () => sum(entries(tls('failed')).map(([, n]) => n));
  const reasons = h('p.codes');
  reasons.draw = () => text(reasons, entries(tls('failed')).filter(([, n]) => n)
    .map(([name, n]) => `${name.replaceAll('_', ' ')}: ${whole(n)}`).join('   ') || 'no failures');
  const all = () => [...list(tls('certificates')), ...list(tls('acme')).map(one =>
    ({...one, file: list(one.issuers).join(', ') + (one.last_error ? `: ${one.last_error}` : '')}))];
  const rows = () => all().map(one =>
    ({...one, name: list(one.names).join(', ') || one.file, left: one.not_after_at - snapshots.now.at}));
  const certificates = table({name: 'Certificates', key: row => `${row.file} ${row.name}`, order: 1,
    columns: [
      nameColumn('Certificate of'),
      column('expires', 9, row => row.left, {text: row => !(row.not_after_at > 0) ? NONE
        : row.left < 0 ? span(-row.left) + ' ago' : 'in ' + span(row.left),
      kind: row => row.left < 7 * DAY ? 'bad' : row.left < 21 * DAY ? 'warn' : ''}),
      {head: 'on', width: 7, class: 'n',
        text: row => row.not_after_at > 0 ? new Date(row.not_after_at).toISOString().slice(0, 10) : NONE},
      {head: 'file or issuer', width: 16, text: row => row.file ?? NONE}]});
  return drawn('div',
    unlessEmpty(() => tls('handshakes') || failed(), drawn('div', facts([
      ['handshakes/s', () => count(since(snapshots.then).rate('tls', 'handshakes'))],
      ['handshakes', () => whole(tls('handshakes'))],
      ['resumed', () => percent(tls('resumed'), tls('handshakes'))],
      ['failed', () => whole(failed())]]), reasons),
    hint('No TLS handshakes yet. ', code('status_zone'), ' in a server with TLS counts them.')),
    unlessEmpty(() => all().length, drawing(rows, certificates),
      hint('No certificates. ', code('ssl_certificate FILE;'), ' names one.')));
}

function resolversScreen() {
  const rows = () => entries(told('resolvers')).map(([name, one]) => {
    const window = since(snapshots.then), path = ['resolvers', name];
    const bad = entries(own(one, 'responses')).filter(([code]) => code !== 'success' && code !== 'timedout');
    return {name, one, codes: entries(own(one, 'responses')).filter(([, n]) => n),
      rate: window.per(sum(window.codes(...path, 'queries').map(([, n]) => n))),
      sent: sum(entries(own(one, 'sent')).map(([, n]) => n)),
      failed: sum(bad.map(([, n]) => n))};
  });
  const resolvers = table({name: 'Resolvers', key: row => row.name, columns: [
    nameColumn('Resolver'), column('queries/s', 6, row => row.rate), column('sent', 5, row => row.sent),
    column('answered', 6, row => num(at(row.one, 'responses', 'success'))),
    column('timed out', 6, row => num(at(row.one, 'responses', 'timedout'))),
    column('failed', 5, row => row.failed)], detail: () => drawn('div.detail', codeList())});
  return unlessEmpty(() => entries(told('resolvers')).length, drawing(rows, resolvers),
    hint('No resolvers are counted. ', code('resolver ADDRESS status_zone=NAME;'), ' does that.'));
}

function workersScreen() {
  const process = (...path) => told('process', ...path);
  const cpu = chart({title: 'Busy share', show: n => percent(n, n == null ? 0 : 1), series: [
    {name: 'busy', label: 'busiest worker', kind: 'most'},
    {name: 'cpu', label: 'CPU time, in processors', kind: 'half'}]});
  const workers = table({name: 'Workers', key: row => row.id, columns: [
    nameColumn('Worker'), column('process', 5, row => row.worker.pid, {text: row => row.worker.pid ?? NONE}),
    column('busy', 4.5, row => row.busy, {text: row => percent(row.busy, row.busy == null ? 0 : 1),
      kind: row => row.busy > .9 ? 'bad' : ''}),
    sparkColumn('trend', row => row.id + ' busy'),
    column('req/s', 5, row => row.rate),
    column('connections', 6.5, row => at(row.worker, 'connections', 'active')),
    column('tasks', 4.5, row => row.worker.tasks),
    {...timeColumn('p50'), head: 'turn p50', width: 5.5},
    {...timeColumn('p99'), head: 'turn p99', width: 5.5},
    column('longest turn', 6.5, row => row.worker.longest_turn,
      {text: row => time(row.worker.longest_turn), title: 'since the start'})],
  detail: () => drawn('div.histograms', histogram('Lengths of turns', row => row.turns))});
  const cached = what => sum(entries(told('file_caches')).map(([, one]) => num(one[what])));
  const descriptors = () => {
    const {open, limit} = process('descriptors') || {};
    return open ? `${open} of ${limit}` : null;
  };
  return drawn('div', cpu,
    unlessEmpty(() => model.workers.length, drawing(() => model.workers, workers),
      hint('No worker has reported yet.')),
    facts([
      ['file descriptors', descriptors],
      ['memory', () => list(told('processes')).map(one => bytes(one.memory)).join(' + ')],
      ['log lines lost', () => process('lost_log_lines')],
      ['connections dropped', () => told('connections', 'dropped')],
      ['file cache hits', () => percent(cached('hits'), cached('hits') + cached('misses'))],
      ['in file caches', () => `${whole(cached('entries'))} files, ${bytes(cached('bytes'))}`]]),
    hint('A turn is what a worker does between two looks at the network: while it lasts, all its ' +
      'other clients wait.'));
}

function configurationScreen() {
  const weir = (...path) => told('weir', ...path);
  const last = () => weir('reloads', 'last') || {}, log = h('pre', {tabindex: '0'});
  log.draw = () => {
    shown(log, !!last().message);
    text(log, last().message || '');
  };
  const seenEvents = h('ul.events');
  seenEvents.draw = () => {
    const lines = events.map(event => `${clock(event.at)} ${event.words}`).reverse();
    while (seenEvents.children.length > lines.length) seenEvents.lastChild.remove();
    while (seenEvents.children.length < lines.length) seenEvents.append(h('li'));
    lines.forEach((words, i) => text(seenEvents.children[i], words));
  };
  return drawn('div', facts([
    ['version', () => weir('version')], ['process', () => weir('pid')],
    ['state', () => weir('state')],
    ['running for', () => weir('started_at') ? span(snapshots.now.at - weir('started_at')) : null],
    ['generation', () => weir('generation')],
    ['loaded', () => ago(Date.parse(told('angie', 'load_time')))],
    ['reloads', () => weir('reloads', 'done')], ['failed reloads', () => weir('reloads', 'failed')],
    ['last reload', () => last().at ? `${ago(last().at)}, ${last().ok ? 'done' : 'failed'}` : null]]),
  log, h('h2', 'Seen by this page'), seenEvents);
}
