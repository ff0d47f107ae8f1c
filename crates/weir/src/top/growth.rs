//! Two snapshots of the same tree, and what grew between them.
//!
//! What a tree lacks is zero or unknown, and a counter that became smaller began anew.

use serde_json::Value;

/// The tree at one time.
pub(super) struct TopSnapshot {
    pub(super) tree: Value,
    at_ms: f64,
}

impl TopSnapshot {
    pub(super) fn of(tree: Value) -> Self {
        let own = float(&tree, &["weir", "now_at"]);
        // Trees without a clock are as old as they are here.
        let at_ms = own.unwrap_or_else(|| net::clock::unix_ms() as f64);
        Self { tree, at_ms }
    }

    /// The server's clock, in milliseconds since 1970.
    pub(super) fn at_ms(&self) -> f64 {
        self.at_ms
    }
}

/// The value at a path of names.
pub(super) fn at<'v>(tree: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(tree, |value, name| value.get(name))
}

pub(super) fn float(tree: &Value, path: &[&str]) -> Option<f64> {
    at(tree, path)?.as_f64()
}

pub(super) fn number(tree: &Value, path: &[&str]) -> f64 {
    float(tree, path).unwrap_or(0.0)
}

pub(super) fn text<'v>(tree: &'v Value, path: &[&str]) -> &'v str {
    at(tree, path).and_then(Value::as_str).unwrap_or("")
}

/// The members of an object; nothing if it is not there.
pub(super) fn members<'v>(
    tree: &'v Value,
    path: &[&str],
) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
    let object = at(tree, path).and_then(Value::as_object);
    object.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The same part of two snapshots.
#[derive(Clone, Copy)]
pub(super) struct Growth<'v> {
    pub(super) now: &'v Value,
    then: Option<&'v Value>,
    /// The time between them.
    pub(super) seconds: f64,
}

static NOTHING: Value = Value::Null;

impl<'v> Growth<'v> {
    pub(super) fn new(now: &'v TopSnapshot, then: Option<&'v TopSnapshot>) -> Self {
        let seconds = then.map_or(0.0, |then| (now.at_ms - then.at_ms) / 1000.0);
        let then = then.filter(|_| seconds > 0.0);
        Self { now: &now.tree, then: then.map(|then| &then.tree), seconds }
    }

    /// The part at a path.
    pub(super) fn within(self, path: &[&str]) -> Self {
        let now = at(self.now, path).unwrap_or(&NOTHING);
        let then = self.then.map(|then| at(then, path).unwrap_or(&NOTHING));
        Self { now, then, ..self }
    }

    /// The part as it was.
    pub(super) fn earlier(self) -> Option<&'v Value> {
        self.then
    }

    /// The growth of a counter; `None`: there is no earlier snapshot, or no such counter.
    pub(super) fn of(self, path: &[&str]) -> Option<f64> {
        Some(grown(float(self.now, path)?, number(self.then?, path)))
    }

    pub(super) fn rate(self, path: &[&str]) -> Option<f64> {
        Some(self.of(path)? / self.seconds)
    }

    /// The growth by class of statuses: the first digit is the index.
    pub(super) fn classes(self, path: &[&str]) -> [f64; 6] {
        let mut sums = [0.0; 6];
        for (name, value) in members(self.now, path) {
            let class =
                name.bytes().next().map_or(0, |digit| usize::from(digit.wrapping_sub(b'0')));
            let before = self.then.and_then(|then| float(then, path_to(path, name).as_slice()));
            if let (Some(sum), Some(now), Some(_)) =
                (sums.get_mut(class), value.as_f64(), self.then)
            {
                *sum += grown(now, before.unwrap_or(0.0));
            }
        }
        sums
    }

    /// The growth of a histogram.
    pub(super) fn times(self, path: &[&str]) -> TopTimes {
        let counts = |tree: &Value| -> Vec<f64> {
            let counts = at(tree, path).and_then(|value| value.get("counts")?.as_array());
            counts.into_iter().flatten().map(|count| count.as_f64().unwrap_or(0.0)).collect()
        };
        let Some(then) = self.then else { return TopTimes::default() };
        let (now, then) = (counts(self.now), counts(then));
        let before = |at: usize| then.get(at).copied().unwrap_or(0.0);
        let is_new = now.iter().enumerate().any(|(at, count)| *count < before(at));
        let since = |(at, count): (usize, &f64)| if is_new { *count } else { count - before(at) };
        TopTimes(now.iter().enumerate().map(since).collect())
    }
}

fn path_to<'p>(path: &[&'p str], name: &'p str) -> Vec<&'p str> {
    [path, &[name]].concat()
}

fn grown(now: f64, then: f64) -> f64 {
    if now >= then { now - then } else { now }
}

/// The upper bounds of buckets in seconds; one more bucket has none.
const BOUNDS: [f64; 21] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0,
];

/// How many durations are in each bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct TopTimes(Vec<f64>);

impl TopTimes {
    pub(super) fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0.0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// The time in seconds that a share of all is below, if a bucket is filled evenly; `None`
    /// without any.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = share * self.0.iter().sum::<f64>();
        let mut below = 0.0;
        for (at, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            if below + count >= rank {
                let bound = |at: usize| BOUNDS[at.min(BOUNDS.len() - 1)];
                let from = if at == 0 { 0.0 } else { bound(at - 1) };
                return Some(from + (bound(at) - from) * (rank - below) / count);
            }
            below += count;
        }
        None
    }
}
