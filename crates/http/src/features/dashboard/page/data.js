'use strict';
// Snapshots, and what is computed from two of them: growth, rates, quantiles. A counter that became
// smaller began anew.

// Upper bounds of a histogram's buckets in seconds; the last bucket has none.
const BOUNDS = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .075, .1, .25, .5, .75, 1,
  2.5, 5, 7.5, 10, 30, 60];
// The seconds that numbers in tables are about, and those of history.
const WINDOW = 10, KEPT = 600;

const num = value => typeof value === 'number' && isFinite(value) ? value : 0;
const own = (object, name) =>
  object && typeof object === 'object' && Object.hasOwn(object, name) ? object[name] : undefined;
const at = (object, ...path) => path.reduce(own, object);
const entries = object => object && typeof object === 'object' ? Object.entries(object) : [];
const list = value => Array.isArray(value) ? value : [];
const sum = numbers => numbers.reduce((all, one) => all + num(one), 0);

const grown = (now, then) => num(now) >= num(then) ? num(now) - num(then) : num(now);
const grownPath = (now, then, ...path) => grown(at(now, ...path), at(then, ...path));

// Counters by name, such as status codes.
const grownAll = (now, then) => entries(now).map(([name, n]) => [name, grown(n, own(then, name))]);

function grownHistogram(now, then) {
  const counts = list(own(now, 'counts')).map(num), old = list(own(then, 'counts'));
  const isNew = counts.some((n, i) => n < num(old[i]));
  return isNew ? counts : counts.map((n, i) => n - num(old[i]));
}

const addCounts = lists => BOUNDS.concat(0).map((_, i) => sum(lists.map(counts => counts[i])));

// The value below which a share of all is, assuming that a bucket is filled evenly; null: of none.
function quantile(counts, share) {
  const rank = share * sum(counts);
  let below = 0;
  for (let i = 0; rank > 0 && i < counts.length; i++) {
    if (counts[i] && below + counts[i] >= rank) {
      const from = i ? BOUNDS[i - 1] : 0, to = i < BOUNDS.length ? BOUNDS[i] : from;
      return from + (to - from) * (rank - below) / counts[i];
    }
    below += counts[i];
  }
  return null;
}

// The last snapshots, newest last.
const snapshots = {
  all: [],
  now: null, prev: null, then: null,
  add(data) {
    const now = {data, at: num(at(data, 'weir', 'now_at')) || Date.now()};
    const before = this.now;
    this.isRestart = !!before && isRestart(before.data, data);
    const seconds = before ? (now.at - before.at) / 1000 : 0;
    // After a break, differences would be averages of the break.
    if (this.isRestart || seconds < 0 || seconds > 60) this.all = [];
    this.all.push(now);
    this.all = this.all.filter((one, i, {length}) =>
      i >= length - 2 || now.at - one.at <= WINDOW * 1000 + 500);
    this.now = now;
    this.prev = this.all.at(-2) || null;
    this.then = this.all.length > 1 ? this.all[0] : null;
  },
};

// What the last snapshot has at a path.
const told = (...path) => at(snapshots.now.data, ...path);

function isRestart(before, now) {
  const started = data => at(data, 'weir', 'started_at');
  const requests = data => num(at(data, 'http', 'requests', 'total'));
  return started(before) !== started(now) || requests(now) < requests(before);
}

// Growth since another snapshot, per second: since the previous one for charts, over the window for
// tables.
function since(other) {
  const seconds = other ? (snapshots.now.at - other.at) / 1000 : 0;
  const per = grownBy => seconds > 0 ? grownBy / seconds : null;
  return {
    seconds,
    per,
    rate: (...path) => per(other && grownPath(snapshots.now.data, other.data, ...path)),
    growth: (...path) => other ? grownPath(snapshots.now.data, other.data, ...path) : 0,
    codes: (...path) =>
      other ? grownAll(told(...path), at(other.data, ...path)) : [],
    times: (...path) =>
      other ? grownHistogram(told(...path), at(other.data, ...path)) : [],
  };
}

// Ten minutes of values by name; one place a second, NaN where nothing is known.
const past = {
  series: new Map(), second: 0, filled: 1,
  advance(seconds) {
    const steps = Math.min(KEPT, Math.max(1, Math.round(seconds)));
    for (const [name, one] of this.series) {
      for (let i = 1; i <= steps; i++) one.values[(this.second + i) % KEPT] = NaN;
      if (this.second - one.last > KEPT) this.series.delete(name);
    }
    this.second += steps;
    // A slow answer stands for the seconds that it took.
    this.filled = steps <= 5 ? steps : 1;
  },
  put(name, value) {
    let one = this.series.get(name);
    if (!one) this.series.set(name, one = {values: new Float32Array(KEPT).fill(NaN), last: 0});
    for (let i = 0; i < this.filled; i++) {
      one.values[(this.second - i + KEPT) % KEPT] = value == null ? NaN : value;
    }
    one.last = this.second;
  },
  // The last `count` values, oldest first.
  get(name, count) {
    const one = this.series.get(name);
    return Array.from({length: count}, (_, i) =>
      one ? one.values[(this.second - count + 1 + i + KEPT) % KEPT] : NaN);
  },
};

// Numbers for people. `null` is shown as a dash.
const NONE = '–';
const fixed = (n, digits) => n.toFixed(digits);

function count(n) {
  if (n == null) return NONE;
  if (n < 10 && n % 1) return fixed(n, 1);
  if (n < 9999.5) return String(Math.round(n));
  for (const unit of ['k', 'M', 'G', 'T']) {
    n /= 1000;
    if (n < 999.5) return fixed(n, n < 99.95 ? 1 : 0) + ' ' + unit;
  }
  return fixed(n, 0) + ' T';
}

function bytes(n) {
  if (n == null) return NONE;
  for (const unit of ['B', 'kB', 'MB', 'GB', 'TB']) {
    if (n < 999.5 || unit === 'TB') return fixed(n, n % 1 && n < 99.95 ? 1 : 0) + ' ' + unit;
    n /= 1000;
  }
}

function time(seconds) {
  if (seconds == null) return NONE;
  if (seconds >= 60) return '60 s or more';
  const [n, unit] = seconds < 9.995e-4 ? [seconds * 1e6, 'µs']
    : seconds < .9995 ? [seconds * 1e3, 'ms'] : [seconds, 's'];
  return fixed(n, n < 9.995 ? 2 : n < 99.95 ? 1 : 0) + ' ' + unit;
}

function percent(part, whole) {
  if (!(whole > 0)) return NONE;
  const share = 100 * num(part) / whole;
  return fixed(share, share < 9.95 && share > 0 ? 1 : 0) + ' %';
}

function span(ms) {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 90) return Math.round(seconds) + ' s';
  if (seconds < 90 * 60) return Math.round(seconds / 60) + ' min';
  if (seconds < 36 * 3600) return Math.round(seconds / 3600) + ' h';
  return Math.round(seconds / 86400) + ' days';
}

const ago = ms => ms ? span(snapshots.now.at - ms) + ' ago' : NONE;
const clock = ms => new Date(ms).toLocaleTimeString([], {hour12: false});
const plural = (n, one, more = one + 's') => count(n) + ' ' + (n === 1 ? one : more);
