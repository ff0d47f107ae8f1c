// Elements, tables and charts. Data only ever becomes text or numbers, never markup.

// Drawings that a screen reader leaves out.
const UNREAD = {'aria-hidden': 'true'};

// `div.wide` is a div of class wide. Then come attributes and what is inside, in any order.
function h(tag, ...parts) {
  const [name, ...kinds] = tag.split('.'), made = document.createElement(name);
  if (kinds.length) made.className = kinds.join(' ');
  for (const part of parts) {
    if (typeof part === 'string' || part instanceof Node) made.append(part);
    else for (const [name, value] of Object.entries(part)) {
      if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
      else if (value) made.setAttribute(name, value);
    }
  }
  return made;
}

function svg(tag, attributes, ...inside) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  made.append(...inside);
  return made;
}

// Changes what is shown only if it is different, so that selections and readers are not disturbed.
function text(element, value, kind) {
  value = String(value);
  if (element.shown !== value) element.textContent = element.shown = value;
  if (kind !== undefined) mark(element, kind);
}

function mark(element, kind) {
  if (element.kind !== kind) element.className = element.kind = kind;
}

function attribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

const shown = (element, is) => { if (element.hidden === is) element.hidden = !is; };

// A line through values; NaN is a gap.
function line(values, x, y) {
  let path = '', open = false;
  values.forEach((value, i) => {
    if (value === value) path += (open ? 'L' : 'M') + x(i).toFixed(1) + ' ' + y(value).toFixed(1);
    // A single value between gaps would not be seen.
    if (value === value && !open && values[i + 1] !== values[i + 1]) path += 'h1';
    open = value === value;
  });
  return path;
}

function area(values, floor, x, y) {
  let path = '', start = -1;
  for (let i = 0; i <= values.length; i++) {
    const is = i < values.length && values[i] === values[i];
    if (is && start < 0) start = i;
    if (is || start < 0) continue;
    const at = k => x(k).toFixed(1) + ' ';
    let top = '', bottom = '';
    for (let k = start; k < i; k++) {
      top += (k > start ? 'L' : 'M') + at(k) + y(floor[k] + values[k]).toFixed(1);
      bottom = 'L' + at(k) + y(floor[k]).toFixed(1) + bottom;
    }
    path += top + bottom + 'Z';
    start = -1;
  }
  return path;
}

function highest(values) {
  return values.reduce((most, value) => value > most ? value : most, 0);
}

// The next round number.
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 3, 4, 6, 8, 10].find(step => step * power >= value * .999);
}

// A small line of the last two minutes, or of fewer as long as the page is young.
function spark(kind) {
  const path = svg('path', {class: 'line ' + (kind || '')});
  const made = svg('svg', {class: 'spark', viewBox: '0 0 120 20', preserveAspectRatio: 'none',
    'aria-hidden': 'true'}, path);
  made.draw = name => {
    const seconds = Math.min(120, Math.max(20, past.second)), values = past.get(name, seconds);
    const top = highest(values) || 1;
    attribute(path, 'd', line(values, i => i * 120 / (seconds - 1), value => 19 - 18 * value / top));
  };
  return made;
}

// Buckets as bars, from the first to the last that has something.
function bars() {
  const path = svg('path', {class: 'bar'});
  const made = svg('svg', {class: 'bars', viewBox: '0 0 88 24', preserveAspectRatio: 'none',
    'aria-hidden': 'true'}, path);
  made.draw = counts => {
    const top = highest(counts) || 1;
    attribute(path, 'd', counts.map((n, i) => {
      const height = n ? Math.max(1, 23 * n / top) : 0;
      return height ? `M${i * 4} 24v${-height.toFixed(1)}h3v${height.toFixed(1)}z` : '';
    }).join(''));
  };
  return made;
}

// A bar of parts: [[share, kind]…], whose shares add up to at most 1.
function partBar() {
  const made = h('span.parts', UNREAD);
  made.draw = parts => {
    while (made.children.length < parts.length) made.append(h('i'));
    [...made.children].forEach((part, i) => {
      const [share, kind] = parts[i] || [0, ''];
      const width = (100 * Math.min(1, Math.max(0, num(share)))).toFixed(1) + '%';
      if (part.width !== width) part.style.width = part.width = width;
      mark(part, kind);
    });
  };
  return made;
}

// A chart of ten minutes, or of fewer as long as the page is young. `series`: [{name, label, kind}],
// lines or areas upon each other; `show` turns a value into text; `log`: latencies, from 0.1 ms on.
function chart({title, series, stacked, log, show}) {
  const W = 1000, H = 100;
  const paths = series.map(one => svg('path', {class: (stacked ? 'area ' : 'line ') + one.kind}));
  const cross = svg('path', {class: 'cross'}), events = svg('path', {class: 'event'});
  const grid = svg('path', {class: 'grid'});
  const labels = [0, 1, 2, 3, 4].map(() => h('span.tick'));
  const values = series.map(() => h('b'));
  const legend = series.map((one, i) =>
    h('span.key', h('i', {class: one.kind}), one.label + ' ', values[i]));
  const when = h('span.quiet.when');
  const plot = h('div.plot',
    svg('svg', {viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'},
      grid, ...paths, events, cross), ...labels);
  const begin = h('span'), middle = h('span');
  let hover = null, seconds = KEPT;
  const made = h('figure.chart',
    h('figcaption', h('span.title', title), ...legend, when), plot,
    h('div.axis.quiet', UNREAD, begin, middle, h('span', 'now')));
  plot.addEventListener('pointermove', event => {
    const box = plot.getBoundingClientRect();
    hover = Math.max(0, Math.min(1, (box.right - event.clientX) / box.width));
    made.draw();
  });
  plot.addEventListener('pointerleave', () => { hover = null; made.draw(); });
  made.draw = () => {
    seconds = [120, 240].find(n => past.second <= n) || KEPT;
    text(begin, `${seconds / 60} min ago`);
    text(middle, `${seconds / 120} min`);
    const data = series.map(one => past.get(one.name, seconds));
    const heights = stacked ? data[0].map((_, i) => sum(data.map(values => values[i]))) : null;
    const top = nice(stacked ? highest(heights) : Math.max(...data.map(highest), log ? .01 : 0));
    const scaled = log ? value => Math.log10(Math.max(value, 1e-4) / 1e-4) / Math.log10(top / 1e-4)
      : value => value / top;
    const x = i => W * i / (seconds - 1), y = value => H - 1 - (H - 3) * scaled(value);
    let floor = data[0].map(() => 0);
    data.forEach((values, n) => {
      attribute(paths[n], 'd', stacked ? area(values, floor, x, y) : line(values, x, y));
      if (stacked) floor = floor.map((under, i) => under + num(values[i]));
    });
    const ticks = log ? [1e-4, 1e-3, .01, .1, 1, 10].filter(tick => tick <= top * 1.01).slice(-5)
      : [0, top / 2, top];
    attribute(grid, 'd', ticks.map(tick => `M0 ${y(tick).toFixed(1)}H${W}`).join(''));
    labels.forEach((label, i) => {
      text(label, i < ticks.length ? show(ticks[i]).replace(/\.0+(?=\s)/, '') : '');
      label.style.bottom = i < ticks.length ? (100 * scaled(ticks[i])).toFixed(1) + '%' : '0';
    });
    const upright = age => `M${x(seconds - 1 - age)} 0V${H}`;
    attribute(events, 'd', eventAges().map(upright).join(''));
    const age = Math.round(hover * (seconds - 1));
    attribute(cross, 'd', hover == null ? '' : upright(age));
    values.forEach((value, n) => {
      const one = data[n][seconds - 1 - age];
      text(value, show(Number.isNaN(one) ? null : one));
    });
    text(when, hover == null ? '' : span(age * 1000) + ' ago');
  };
  return made;
}

// A table whose rows are kept by key. A column: {head, title, width, sort: row => value,
// make: () => element with draw(row)} or {text: row => string, kind: row => class}. `detail`: () =>
// element with draw(row), which a row shows when it is opened. `order`: the column to sort by.
function table({columns, key, order = 0, down = false, detail, limit = 100, name}) {
  const body = h('tbody'), rows = new Map(), open = new Set();
  let sorted = order, most = limit, last = [];
  const heads = columns.map((column, i) => {
    const label = h('span', column.head);
    const button = column.sort && h('button', {title: column.title, onclick() {
      down = sorted === i ? !down : !last.length || typeof column.sort(last[0]) !== 'string';
      sorted = i;
      made.draw(last);
    }}, label);
    return h('th', {scope: 'col', title: column.sort ? null : column.title,
      class: column.class}, button || label);
  });
  const group = h('colgroup', ...columns.map(column => {
    const made = h('col');
    if (column.width) made.style.width = column.width + 'rem';
    return made;
  }));
  const more = h('button', {class: 'more', onclick() {
    most += 200;
    made.draw(last);
  }});
  const grid = h('table', group, h('thead', h('tr', ...heads)),
    body);
  grid.style.minWidth = columns.reduce((all, column) => all + (column.width || 11), 0) + 'rem';
  const made = h('div.wide', {tabindex: '0', role: 'region', 'aria-label': name}, grid);

  function newRow(id) {
    const cells = columns.map((column, i) => {
      const inside = column.make ? column.make() : h('span');
      const cell = h(i ? 'td' : 'th', {class: column.class, scope: i ? null : 'row'});
      if (!i && detail) {
        cell.append(h('button', {class: 'open', 'aria-expanded': 'false',
          onclick(event) {
            const is = !open.has(id);
            if (is) open.add(id); else open.delete(id);
            event.currentTarget.setAttribute('aria-expanded', is);
            made.draw(last);
          }}, inside));
      } else cell.append(inside);
      return {inside, cell};
    });
    return {line: h('tr', ...cells.map(one => one.cell)), cells, under: null};
  }

  function draw(row, data) {
    columns.forEach((column, i) => {
      const {inside} = row.cells[i];
      if (column.make) inside.draw(data);
      else text(inside, column.text(data), column.kind ? column.kind(data) : undefined);
    });
  }

  made.draw = data => {
    last = data;
    const value = columns[sorted].sort;
    if (value) {
      const rank = row => { const n = value(row); return n == null ? -Infinity : n; };
      const compare = (a, b) => typeof a === 'string' ? a.localeCompare(b, 'en', {numeric: true}) : a - b;
      data = [...data].sort((a, b) => (down ? -1 : 1) * compare(rank(a), rank(b)));
    }
    heads.forEach((head, i) => attribute(head, 'aria-sort',
      i !== sorted || !value ? 'none' : down ? 'descending' : 'ascending'));
    const visible = data.slice(0, most), keys = new Set(visible.map(key));
    for (const [id, row] of rows) {
      if (keys.has(id)) continue;
      row.line.remove();
      if (row.under) row.under.line.remove();
      rows.delete(id);
    }
    let place = body.firstChild;
    const put = element => {
      if (place === element) place = place.nextSibling;
      else body.insertBefore(element, place);
    };
    for (const one of visible) {
      const id = key(one);
      let row = rows.get(id);
      if (!row) rows.set(id, row = newRow(id));
      draw(row, one);
      put(row.line);
      if (detail && open.has(id) && !row.under) {
        const inside = detail();
        row.under = {inside, line: h('tr.under',
          h('td', {colspan: columns.length}, inside))};
      }
      if (row.under && !open.has(id)) {
        if (place === row.under.line) place = place.nextSibling;
        row.under.line.remove();
        row.under = null;
      }
      if (row.under) { row.under.inside.draw(one); put(row.under.line); }
    }
    if (data.length > most) {
      text(more, `${data.length - most} more`);
      if (!more.parentNode) made.append(more);
    } else more.remove();
  };
  return made;
}
