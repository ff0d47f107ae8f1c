// Sites and upstreams: the two large tables.

function siteTable(kind, title) {
  const isStream = kind === 'stream', rows = () => model.sites.filter(site => site.kind === kind);
  const columns = [
    nameColumn(title),
    sparkColumn('trend', row => row.id + ' rate'),
    column(isStream ? 'sess/s' : 'req/s', 4.8, row => row.rate),
    column('now', 3.8, row => row.active, {title: 'in progress'}),
    classColumn(isStream ? 'sessions' : 'replies'),
    column('4xx/s', 4.4, row => row.seconds ? row.classes[4] / row.seconds : null),
    errorColumn,
    column('in/s', 5, row => row.received, {text: row => bytes(row.received)}),
    column('out/s', 5, row => row.sent, {text: row => bytes(row.sent)}),
    timeColumn('p50'), timeColumn('p95'), timeColumn('p99'),
    column('last', 5.5, row => row.last, {text: row => ago(row.last)}),
  ];
  const detail = () => drawn('div.detail', codeList(),
    drawn('div.histograms', histogram('Latency', row => row.counts)),
    facts([
      ['all', row => whole(row.total)],
      ['without a reply', row => whole(row.discarded)],
      ['received', row => bytes(num(at(row.zone, 'data', 'received')))],
      ['sent', row => bytes(num(at(row.zone, 'data', 'sent')))],
      ['TLS handshakes', row => at(row.zone, 'ssl', 'handshaked')],
      ['resumed', row => at(row.zone, 'ssl', 'reuses')],
      ['failed', row => at(row.zone, 'ssl', 'failed')],
      ['keys beyond the limit', row => row.zone.overflows || null]]));
  return unlessEmpty(() => rows().length, drawing(() => rows().filter(site => fits(site.name)),
    table({name: title, key: row => row.id, columns, detail})));
}

function sitesScreen() {
  return unlessEmpty(() => model.sites.length,
    drawn('div', drawn('div.tools', filterBox('Filter by name')),
      siteTable('server', 'Servers'), siteTable('location', 'Locations'),
      siteTable('stream', 'Stream servers')),
    hint('No zones. ', code('status_zone NAME;'),
      ' in a server or location counts its requests, bytes and times.'));
}

const STATES = {up: 'ok', busy: 'ok', unavailable: 'warn', unhealthy: 'bad'};

function stateCell() {
  const dot = h('i'), word = h('span'), why = h('small.quiet');
  const made = h('div.state', dot, word, why);
  made.draw = ({state, since, why: reason}) => {
    mark(dot, 'dot ' + (STATES[state] || 'note'));
    text(word, state);
    const time = since && state !== 'up' ? 'for ' + span(snapshots.now.at - since) : '';
    text(why, [time, reason].filter(Boolean).join(': '));
  };
  return made;
}

const health = (row, name) => at(row.peer, 'health', name);
const checks = (row, name) => at(row.peer, 'health', 'probes', name);

function peerDetail(isStream) {
  const names = {queue: 'queue', connect: 'connect',
    header: isStream ? 'first byte' : 'header', response: isStream ? 'session' : 'response'};
  const times = Object.entries(names).map(([name, title]) =>
    histogram(title, row => row.times(name + '_time')));
  return drawn('div.detail', codeList(), drawn('div.histograms', ...times),
    facts([
      ['address', row => row.peer.server],
      ['service', row => row.peer.service],
      ['weight', row => row.peer.weight],
      ['backup', row => row.peer.backup ? 'yes' : 'no'],
      [isStream ? 'sessions' : 'requests', row => whole(at(row.peer, 'selected', 'total'))],
      ['retries in 10 s', row => row.retries],
      ['times unavailable', row => health(row, 'unavailable')],
      ['downtime', row => span(num(health(row, 'downtime')))],
      ['last check', row => checks(row, 'last') ? ago(Date.parse(checks(row, 'last'))) : null],
      ['it took', row => checks(row, 'last') ? time(num(checks(row, 'last_duration')) / 1e3) : null],
      ['sent', row => bytes(num(at(row.peer, 'data', 'sent')))],
      ['received', row => bytes(num(at(row.peer, 'data', 'received')))]]));
}

// A session of `stream` ends when its client wants, so its times are those until its first byte.
const timeColumns = isStream => isStream
  ? [medianColumn('connect', 'connect', 'until connected'),
    medianColumn('first byte', 'p50', 'until the first byte'),
    {...timeColumn('p99'), title: 'of the times until the first byte'}]
  : [timeColumn('p50'), timeColumn('p99')];
const medianColumn = (head, name, until) => column(head, 5.5, row => row[name],
  {text: row => time(row[name]), title: 'median time ' + until});

const peerColumns = isStream => [
  nameColumn('Server', {width: 12}),
  {head: 'state', width: 11, make: stateCell, sort: row => row.state},
  sparkColumn('trend', row => row.id + ' rate'),
  column(isStream ? 'sess/s' : 'req/s', 4.8, row => row.rate),
  column('active', 5.5, row => row.active,
    {make: () => limitCell(row => row.active, row => row.max)}),
  ...timeColumns(isStream),
  sparkColumn('p99 trend', row => row.id + ' p99', 'most'),
  errorColumn,
  column('fails', 4, row => health(row, 'fails'), {title: 'failed attempts since the start'}),
  column('checks', 5.5, row => checks(row, 'fails'), {title: 'failed health checks, of all',
    text: row => checks(row, 'count') == null ? NONE
      : `${count(num(checks(row, 'fails')))} of ${count(checks(row, 'count'))}`,
    kind: row => checks(row, 'last_ok') === false ? 'bad' : ''}),
  column('reuse', 4.2, row => row.connections ? row.reused / row.connections : null,
    {title: 'requests on kept connections', text: row => percent(row.reused, row.connections)}),
];

// Groups larger than this show only servers in trouble until one asks for all.
const FEW = 12;

function groupPart({id, of}) {
  const isStream = of === 'stream';
  const words = h('span.quiet'), rest = h('button', {onclick() {
    isOpen = !isOpen;
    drawScreen();
  }});
  const small = spark(), title = h('span');
  const servers = table({name: 'Servers of ' + id, key: row => row.id, limit: 60,
    columns: peerColumns(isStream), detail: () => peerDetail(isStream)});
  const made = h('section', h('h2.group', title, small, words, rest), servers);
  let isOpen = false;
  made.draw = group => {
    const isLarge = group.peers.length > FEW;
    const matches = group.peers.filter(peer => fits(peer.name) || fits(group.name));
    const all = !isLarge || isOpen || !!filter.words;
    const visible = all ? matches : matches.filter(peer => !isUp(peer));
    text(title, group.name);
    text(words, groupWords(group));
    small.draw(id + ' rate');
    shown(made, matches.length > 0 || !filter.words);
    shown(rest, isLarge && !filter.words);
    text(rest, isOpen ? 'Hide servers that are up' : `Show ${group.isUp} servers that are up`);
    shown(servers, visible.length > 0);
    servers.draw(visible);
  };
  return made;
}

function groupWords({of, group, peers, isUp, rate, active, queue}) {
  return [of === 'stream' ? 'stream' : '', group.balancer,
    `${isUp} of ${plural(peers.length, 'server')} up`,
    `${count(rate)} ${of === 'stream' ? 'sess' : 'req'}/s`, `${active} active`,
    queue ? `${num(queue.length)} of ${count(queue.max_length)} wait` : '',
    group.keepalive ? `${group.keepalive} idle connections` : '',
  ].filter(Boolean).join(' · ');
}

function upstreamsScreen() {
  const box = h('div'), parts = new Map();
  box.draw = () => {
    for (const [id, part] of parts) {
      if (model.groups.some(group => group.id === id)) continue;
      part.remove();
      parts.delete(id);
    }
    for (const group of model.groups) {
      let part = parts.get(group.id);
      if (!part) {
        parts.set(group.id, part = groupPart(group));
        box.append(part);
      }
      part.draw(group);
    }
  };
  return unlessEmpty(() => model.groups.length,
    drawn('div', drawn('div.tools', filterBox('Filter by server or group')), box),
    hint('No groups of servers. ', code('upstream NAME { server …; }'), ' makes one.'));
}
