// Asks for data once a second, and shows the screen that the address names.

const SCREENS = [['now', 'Now', nowScreen], ['sites', 'Sites', sitesScreen],
  ['upstreams', 'Upstreams', upstreamsScreen], ['caches', 'Caches', cachesScreen],
  ['limits', 'Limits', limitsScreen],
  ['slow', 'Slow requests', slowScreen], ['tls', 'TLS', tlsScreen],
  ['resolvers', 'Resolvers', resolversScreen], ['workers', 'Workers', workersScreen],
  ['configuration', 'Configuration', configurationScreen]]
  .map(([id, title, make]) => ({id, title, make, element: null, link: null, dot: null}));
const byId = id => document.getElementById(id);
const main = byId('main'), state = byId('state'), who = byId('who'), pause = byId('pause');
const icon = byId('icon');
// Works below any prefix, with and without a slash at the end.
const source = location.pathname.replace(/\/*$/, '/') + 'data';
const PERIOD = 1000, PATIENCE = 10000, EVENTS = 50;
const events = [];
let screen = null, isPaused = false, failure = 'Waiting for data', lastGood = 0, generation = null;

for (const one of SCREENS) {
  one.dot = h('i');
  one.link = h('a', {href: '#' + one.id}, one.title, one.dot);
  byId('nav').append(one.link);
}

function note(words) {
  events.push({at: snapshots.now.at, second: past.second, words});
  if (events.length > EVENTS) events.shift();
}

// How many seconds ago there was a reload or a start.
const eventAges = () => events.map(event => past.second - event.second);

function choose() {
  const id = location.hash.slice(1);
  const chosen = SCREENS.find(one => one.id === id) || (screen ? null : SCREENS[0]);
  if (!chosen || chosen === screen) return;
  screen = chosen;
  for (const one of SCREENS) {
    if (one === screen) one.link.setAttribute('aria-current', 'page');
    else one.link.removeAttribute('aria-current');
  }
  screen.link.scrollIntoView({block: 'nearest', inline: 'center'});
  drawScreen();
}

function drawScreen() {
  if (!snapshots.now) return;
  if (!screen.element) {
    screen.element = h('div.screen', {id: 'screen-' + screen.id}, h('h1', screen.title));
    screen.part = screen.make();
    screen.element.append(screen.part);
  }
  if (main.firstChild !== screen.element) {
    main.replaceChildren(screen.element);
    scrollTo(0, 0);
  }
  screen.part.draw();
}

async function ask() {
  const reply = await fetch(source,
    {cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(PATIENCE)});
  if (!reply.ok) throw new Error(`The server answers ${reply.status} for the data`);
  const data = await reply.json();
  if (!data || typeof data !== 'object') throw new Error('The data are not as expected');
  return data;
}

async function poll() {
  const began = performance.now();
  const data = await ask().catch(error => {
    failure = error instanceof TypeError ? 'The server does not answer'
      : error.name === 'TimeoutError' ? 'No answer within 10 s' : error.message;
  });
  if (data) {
    failure = '';
    lastGood = Date.now();
    take(data);
  }
  drawHead();
  // A page that is slow to make is asked for less often.
  const took = performance.now() - began;
  return Math.max(PERIOD - took, 3 * took, 100);
}

let askedAt = 0;

function take(data) {
  snapshots.add(data);
  const now = performance.now();
  past.advance(askedAt ? (now - askedAt) / 1000 : 1);
  askedAt = now;
  const newest = at(data, 'weir', 'generation');
  if (snapshots.isRestart) note('The server was started anew; its counters began again');
  else if (generation != null && newest !== generation) note(`Reload: generation ${newest}`);
  generation = newest;
  readModel();
  findWarnings();
  drawScreen();
}

const worst = () => failure || isPaused ? 'gone'
  : warnings.some(one => one.level === 'bad') ? 'bad'
    : warnings.some(one => one.level === 'warn') ? 'warn' : 'ok';

function drawHead() {
  const data = snapshots.now ? snapshots.now.data : {}, level = worst();
  const serious = warnings.filter(one => one.level !== 'note').length;
  const words = isPaused ? 'Paused'
    : failure ? failure + (lastGood ? ', for ' + span(Date.now() - lastGood) : '')
      : serious ? plural(serious, 'thing needs', 'things need') + ' attention' : 'All is well';
  text(state.lastElementChild, words);
  mark(state.firstElementChild, 'dot ' + level);
  mark(main, failure && lastGood ? 'old' : '');
  text(who, [at(data, 'angie', 'address'), at(data, 'weir', 'version'),
    at(data, 'weir', 'generation') != null ? 'generation ' + data.weir.generation : ''].filter(Boolean)
    .join(' · ') || location.host);
  for (const one of SCREENS) {
    const levels = warnings.filter(warning => warning.screen === one.id).map(warning => warning.level);
    mark(one.dot, levels.includes('bad') ? 'dot bad' : levels.includes('warn') ? 'dot warn' : '');
  }
  document.title = (failure ? '? ' : serious ? `(${serious}) ` : '') + 'Weir · ' + location.host;
  drawIcon(level);
  if (!snapshots.now) text(main.firstElementChild, failure);
}

const COLOURS = {ok: '#2f8f5b', warn: '#d98a00', bad: '#d0342c', gone: '#8a949c'};

function drawIcon(level) {
  if (icon.level === level) return;
  icon.level = level;
  icon.href = 'data:image/svg+xml,' + encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8"
 fill="${COLOURS[level]}"/><path d="M5 12q5.5-6 11 0t11 0M5 21q5.5-6 11 0t11 0" fill="none"
 stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>`);
}

// One request at a time; none while nobody looks.
let timer = 0, isAsking = false;

async function run() {
  clearTimeout(timer);
  if (isAsking || isPaused || document.hidden) return;
  isAsking = true;
  let wait = PERIOD;
  try {
    wait = await poll();
  } finally {
    isAsking = false;
    timer = setTimeout(run, wait);
  }
}

pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Resume' : 'Pause';
  pause.setAttribute('aria-pressed', isPaused);
  drawHead();
  run();
});
document.addEventListener('visibilitychange', run);
addEventListener('hashchange', choose);
choose();
drawHead();
run();
