// The first screen: the whole server in one look.

function tile(label, name, kind, show) {
  const value = h('b'), under = h('span.quiet'), small = spark(kind);
  const made = h('div.tile', h('span.label', label), value, under, small);
  made.draw = () => {
    const [big, words, isBad] = show();
    text(value, big, isBad ? 'bad' : '');
    text(under, words || '\u00a0');
    small.draw(name);
  };
  return made;
}

function tiles() {
  const now = (...path) => count(told(...path));
  const lacks = [NONE, 'needs status_zone'];
  return drawn('div.tiles',
    tile('Requests/s', 'rate', '', () =>
      [count(model.rate), now('http', 'requests', 'current') + ' in progress']),
    tile('Errors', 'errors', 'bad', () => model.counted.length
      ? [percent(model.errors, model.replies), '5xx of all replies', model.errors > .01 * model.replies] : lacks),
    tile('Latency', 'p99', 'most', () => model.counted.length
      ? [time(model.p50), 'p99 ' + time(model.p99)] : lacks),
    tile('Connections', 'connections', '', () =>
      [now('connections', 'active'), now('connections', 'idle') + ' idle']),
    tile('Busy', 'busy', '', () => model.busy.length
      ? [percent(Math.max(...model.busy), 1), 'most of ' + plural(model.busy.length, 'worker'),
        Math.max(...model.busy) > .9] : [NONE, 'no worker yet']),
    tile('Queue', 'queue', 'client', () => model.queues.length
      ? [count(model.queue), 'requests wait'] : [NONE, 'no upstream has one']));
}

function warningList() {
  const items = h('ul'), calm = h('p.calm', 'Nothing is wrong.');
  const made = h('section.panel.warnings', {'aria-label': 'Warnings', tabindex: '0'},
    h('h2', 'Needs attention'), items, calm);
  made.draw = () => {
    shown(calm, !warnings.length);
    while (items.children.length > warnings.length) items.lastChild.remove();
    while (items.children.length < warnings.length) {
      items.append(h('li', h('i'), h('a'), h('span.quiet')));
    }
    warnings.forEach(({level, words, screen, first}, i) => {
      const [dot, link, when] = items.children[i].children;
      mark(dot, 'dot ' + level);
      text(link, words);
      attribute(link, 'href', '#' + screen);
      text(when, 'seen since ' + clock(first));
    });
  };
  return made;
}

function busiest() {
  const rows = () => [...model.counted].sort((a, b) => b.rate - a.rate).slice(0, 6);
  const columns = [nameColumn('Busiest sites'), sparkColumn('trend', row => row.id + ' rate'),
    column('req/s', 4.5, row => row.rate), classColumn('replies'), errorColumn, timeColumn('p99')];
  return unlessEmpty(() => model.counted.length,
    drawing(rows, table({name: 'Busiest sites', key: row => row.id, columns: columns.map(still)})),
    hint('No sites yet. ', code('status_zone NAME;'),
      ' in a server or location counts its requests.'));
}

function groupsInShort() {
  const rows = () => [...model.groups].sort((a, b) =>
    b.bad.length - a.bad.length || b.rate - a.rate).slice(0, 6);
  const columns = [nameColumn('Upstreams'), sparkColumn('trend', row => row.id + ' rate'),
    column('req/s', 4.5, row => row.rate),
    {head: 'up', width: 6, class: 'n', text: row => `${row.isUp} of ${row.peers.length}`,
      kind: row => row.bad.length ? 'bad' : ''},
    column('active', 4, row => row.active),
    column('queue', 4, row => row.queue ? num(row.queue.length) : null)];
  return unlessEmpty(() => model.groups.length,
    drawing(rows, table({name: 'Upstreams', key: row => row.id, columns: columns.map(still)})),
    hint('No groups of servers. ', code('upstream NAME { … }'), ' makes one.'));
}

function nowScreen() {
  const requests = chart({title: 'Requests/s', stacked: true, show: count, series: [
    ...CLASSES.map(([n, kind, label]) => ({name: 'class ' + n, label, kind})),
    {name: 'class other', label: 'outside zones', kind: 'other'}]});
  const latency = chart({title: 'Latency', log: true, show: time, series: [
    {name: 'p50', label: 'p50', kind: 'half'}, {name: 'p99', label: 'p99', kind: 'most'}]});
  return drawn('div', tiles(),
    drawn('div.beside', drawn('div.charts', requests, latency),
      warningList()),
    drawn('div.two', busiest(), groupsInShort()));
}
