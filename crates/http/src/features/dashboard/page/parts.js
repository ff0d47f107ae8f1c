// What several screens are made of. A part is an element with `draw`; parts of a row get the row.

const code = words => h('code', words);
const hint = (...inside) => h('p.hint', ...inside);
const CLASSES = [[2, 'ok', '2xx'], [3, 'moved', '3xx'], [4, 'client', '4xx'], [5, 'bad', '5xx']];

// An element whose parts are drawn together.
function drawn(tag, ...parts) {
  const made = h(tag, ...parts);
  made.draw = row => parts.forEach(part => { if (part.draw) part.draw(row); });
  return made;
}

// A part that takes the place of a hint once there is something to show.
function unlessEmpty(is, part, other = h('span')) {
  const made = h('div', part, other);
  made.draw = () => {
    const has = !!is();
    shown(part, has);
    shown(other, !has);
    if (has) part.draw();
  };
  return made;
}

// A part that draws what a function returns.
function drawing(make, part) {
  const draw = part.draw;
  part.draw = row => draw(make(row));
  return part;
}

// Pairs of a label and a text.
function facts(pairs) {
  const values = pairs.map(() => h('dd'));
  const made = h('dl.facts',
    ...pairs.map(([label], i) => h('div', h('dt', label), values[i])));
  made.draw = row => pairs.forEach(([, show], i) => text(values[i], show(row) ?? NONE));
  return made;
}

// Columns. Without `sort`, a column has no order of its own.
const column = (head, width, value, more) =>
  ({head, width, class: 'n', sort: value, text: row => count(value(row)), ...more});
const nameColumn = (head, more) =>
  ({head, text: row => row.name, sort: row => row.name, ...more});
const timeColumn = name => column(name, 4.8, row => row[name], {text: row => time(row[name])});
const sparkColumn = (head, name, kind) =>
  ({head, width: 5.5, make: () => drawing(name, spark(kind))});
const classColumn = head => ({head, width: 5, make: () => drawing(({classes}) => {
  const all = sum(classes);
  return CLASSES.map(([n, kind]) => [all ? classes[n] / all : 0, kind]);
}, partBar())});
const errorColumn = column('5xx', 4.2,
  ({classes}) => sum(classes) ? classes[5] / sum(classes) : null,
  {text: ({classes}) => percent(classes[5], sum(classes)),
    kind: ({classes}) => classes[5] > 0 ? 'bad' : ''});
// The same in a table that has its own order.
const still = ({sort: _, ...rest}) => rest;

// A number and its limit, and a bar if there is a limit.
function limitCell(part, whole) {
  const word = h('span'), bar = partBar(), made = h('div.limit', word, bar);
  made.draw = row => {
    const now = num(part(row)), most = num(whole(row));
    text(word, most ? `${count(now)} of ${count(most)}` : count(now));
    shown(bar, most > 0);
    bar.draw([[now / most, now >= most ? 'bad' : 'half']]);
  };
  return made;
}

// A histogram of the window with its quantiles.
function histogram(title, counts) {
  const drawing = bars(), words = h('span.quiet');
  const made = h('div.histogram', h('span', title), drawing,
    h('span.axis.quiet', UNREAD,
      ...['0.1 ms', '10 ms', '0.75 s', '60 s'].map(word => h('span', word))), words);
  made.draw = row => {
    const now = counts(row);
    drawing.draw(now);
    text(words, sum(now) ? `p50 ${time(quantile(now, .5))}, p99 ${time(quantile(now, .99))}`
      : 'none in the last 10 s');
  };
  return made;
}

function codeList() {
  const made = h('p.codes');
  made.draw = ({codes}) => text(made, codes.map(([name, n]) => `${name}: ${whole(n)}`).join('   '));
  return made;
}

const whole = n => num(n).toLocaleString('en');

const filter = {words: '', isFull: false};
const fits = name => name.toLowerCase().includes(filter.words);

function filterBox(label) {
  const input = h('input', {type: 'search', placeholder: label, 'aria-label': label,
    autocomplete: 'off', spellcheck: 'false', oninput() {
      filter.words = input.value.toLowerCase();
      drawScreen();
    }});
  input.draw = () => {
    if (input !== document.activeElement && input.value.toLowerCase() !== filter.words) {
      input.value = filter.words;
    }
  };
  return input;
}
