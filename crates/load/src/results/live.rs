//! The progress of a run: one line for each second, or a view that is redrawn in place.
//!
//! It only produces strings. The caller knows the terminal and its width, and writes.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Errors, Second, StatusCounts, amounts};

/// State between two seconds.
#[derive(Debug, Default)]
pub struct Live {
    /// The duration of the run in seconds, if it is known.
    total: Option<f64>,
    last_at: f64,
    /// Errors and statuses since the start.
    errors: Errors,
    statuses: StatusCounts,
    rates: VecDeque<f64>,
    /// Lines of the view that are on the terminal.
    drawn: usize,
}

/// The seconds of history in the view.
const HISTORY_MAX: usize = 60;
/// The columns of the view without its history.
const BESIDE_HISTORY: usize = 40;
/// The most kinds of errors to name.
const KINDS_MAX: usize = 4;

impl Live {
    /// The progress of a run with this duration, if it is known.
    pub fn new(total: Option<Duration>) -> Self {
        Self { total: total.map(|time| time.as_secs_f64()), ..Self::default() }
    }

    /// The line for the next second.
    pub fn line(&mut self, second: &Second) -> String {
        let (rate, failures) = self.count(second);
        let latency = latency(second);
        let kinds = match kinds(&second.tally.errors, &second.tally.statuses) {
            none if none.is_empty() => none,
            kinds => format!("   {kinds}"),
        };
        let at = second.at;
        format!("{at:7.1}s {rate:>11.2} requests/s {failures:>7} errors   {latency}{kinds}\n")
    }

    /// The bytes for the terminal that replace the view by that of the next second.
    pub fn view(&mut self, second: &Second, columns: usize) -> String {
        // Some terminals do not know their width.
        if columns == 0 {
            return self.line(second);
        }
        let (rate, failures) = self.count(second);
        let all = self.errors.sum() + self.statuses.bad();
        let kinds = match kinds(&self.errors, &self.statuses) {
            none if none.is_empty() => none,
            kinds => format!(" ({kinds})"),
        };
        let history = self.history(columns.saturating_sub(BESIDE_HISTORY));
        let lines = [
            format!("     time   {}", self.time(second.at)),
            format!("     rate   {} requests/s", amounts::count(rate)),
            format!("   errors   {failures} in this second, {all} in all{kinds}"),
            format!("  latency   {}", latency(second)),
            format!("by second   {history}"),
        ];
        let mut text = self.up();
        for line in &lines {
            // A line that wraps would count as two when the cursor goes up.
            text.extend(line.chars().take(columns.saturating_sub(1)));
            text += "\x1b[K\n";
        }
        self.drawn = lines.len();
        text
    }

    fn time(&self, at: f64) -> String {
        match self.total {
            // An open loop waits for its last replies.
            Some(total) if at <= total => format!("{at:.0}s of {total:.0}s"),
            Some(total) => format!("{at:.0}s, {total:.0}s requested"),
            None => format!("{at:.0}s"),
        }
    }

    /// Removes the view, for output after the run.
    pub fn clear(&mut self) -> String {
        let text = match self.drawn {
            0 => String::new(),
            _ => self.up() + "\x1b[J",
        };
        self.drawn = 0;
        text
    }

    fn up(&self) -> String {
        match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r"),
        }
    }

    /// Counts a second. Returns its rate and failures.
    fn count(&mut self, second: &Second) -> (f64, u64) {
        let length = second.at - self.last_at;
        let rate = if length > 0.0 { second.tally.replies as f64 / length } else { 0.0 };
        self.last_at = second.at;
        self.errors.add(&second.tally.errors);
        self.statuses.add_all(&second.tally.statuses);
        self.rates.push_back(rate);
        if self.rates.len() > HISTORY_MAX {
            self.rates.pop_front();
        }
        (rate, second.tally.failures())
    }

    /// The last seconds as bars, relative to the highest rate among them.
    fn history(&self, width: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let seen = self.rates.iter().skip(self.rates.len().saturating_sub(width));
        let highest = seen.clone().fold(0.0, |highest: f64, rate| highest.max(*rate));
        let bar = |rate: &f64| match rate / highest * (BARS.len() - 1) as f64 {
            nothing if nothing.is_nan() => BARS[0],
            height => BARS[height.round() as usize],
        };
        let bars: String = seen.map(bar).collect();
        format!("{bars} up to {} requests/s", amounts::count(highest))
    }
}

/// The most frequent kinds of errors with their counts: `404: 12, timeout: 3`.
fn kinds(errors: &Errors, statuses: &StatusCounts) -> String {
    let statuses = statuses.bad_codes().map(|(status, count)| (status.to_string(), count));
    let errors = errors.named().into_iter().map(|(name, count)| (name.to_owned(), count));
    let mut kinds: Vec<_> = statuses.chain(errors).filter(|(_, count)| *count > 0).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if kinds.len() > KINDS_MAX { ", ..." } else { "" };
    let named = kinds.iter().take(KINDS_MAX).map(|(name, count)| format!("{name}: {count}"));
    named.collect::<Vec<_>>().join(", ") + more
}

fn latency(second: &Second) -> String {
    let latency = &second.tally.latency_us;
    let [p50, p99, max] =
        [latency.value_at_quantile(0.5), latency.value_at_quantile(0.99), latency.max()]
            .map(|value| amounts::time_us(value as f64));
    format!("p50 {p50:>9}   p99 {p99:>9}   max {max:>9}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::second;

    #[test]
    fn a_line_for_each_second() {
        let mut live = Live::default();
        let mut failing = second(2.5, 300, 2500);
        failing.tally.errors.reset = 2;
        failing.tally.statuses.count(503);
        let text = live.line(&second(1.0, 200, 123)) + &live.line(&failing);
        let expected = [
            "    1.0s      200.00 requests/s       0 errors   ",
            "p50  123.00us   p99  123.00us   max  123.00us\n",
            "    2.5s      200.00 requests/s       3 errors   ",
            "p50    2.50ms   p99    2.50ms   max    2.50ms   reset: 2, 503: 1\n",
        ];
        assert_eq!(text, expected.concat());
    }

    #[test]
    fn a_second_without_replies() {
        let text = Live::default().line(&second(1.0, 0, 1));
        assert!(text.contains("  0.00 requests/s "), "{text}");
        assert!(text.contains("p50    0.00us "), "{text}");
        assert!(Live::default().view(&second(1.0, 0, 1), 80).contains("▁ up to 0.00 requests/s"));
    }

    #[test]
    fn the_view_is_drawn_in_place() {
        let mut live = Live::new(Some(Duration::from_secs(2)));
        assert_eq!(live.clear(), "");
        let mut failing = second(1.0, 1000, 123);
        failing.tally.statuses.add(404, 7);
        failing.tally.errors.timeout = 1;
        let first = live.view(&failing, 80).replace("\x1b[K", "");
        let expected = [
            "     time   1s of 2s\n     rate   1.00k requests/s\n",
            "   errors   8 in this second, 8 in all (404: 7, timeout: 1)\n",
            "  latency   p50  123.00us   p99  123.00us   max  123.00us\n",
            "by second   █ up to 1.00k requests/s\n",
        ];
        assert_eq!(first, expected.concat());
        let next = live.view(&second(2.0, 500, 123), 80);
        assert!(next.starts_with("\x1b[5A\r     time   2s of 2s\x1b[K\n"), "{next:?}");
        assert!(next.contains("   0 in this second, 8 in all (404: 7"), "{next:?}");
        assert!(next.ends_with("by second   █▅ up to 1.00k requests/s\x1b[K\n"), "{next:?}");
        let late = live.view(&second(3.0, 1, 123), 80);
        assert!(late.contains("   3s, 2s requested\x1b[K\n"), "{late:?}");
        assert_eq!(live.clear(), "\x1b[5A\r\x1b[J");
        assert_eq!(live.clear(), "");
        assert!(Live::new(None).view(&second(1.0, 1, 1), 80).contains(" time   1s\x1b[K\n"));
    }

    #[test]
    fn the_most_frequent_errors_are_named() {
        let mut statuses = StatusCounts::default();
        (400..410).zip(1..).for_each(|(status, count)| statuses.add(status, count));
        let text = kinds(&Errors { reset: 9, ..Errors::default() }, &statuses);
        assert_eq!(text, "409: 10, 408: 9, reset: 9, 407: 8, ...");
    }

    #[test]
    fn a_terminal_of_no_width_has_lines() {
        let (mut live, second) = (Live::default(), second(1.0, 200, 123));
        assert_eq!(live.view(&second, 0), Live::default().line(&second));
        assert_eq!(live.clear(), "");
    }

    #[test]
    fn no_line_of_the_view_is_wider_than_the_terminal() {
        for columns in [1, 20, 40, 200] {
            let mut live = Live::default();
            for n in 1..100 {
                let text = live.view(&second(f64::from(n), 7, 1), columns).replace("\x1b[K", "");
                let widest = text.lines().map(|line| line.chars().count()).max();
                let up = "\x1b[5A\r".len();
                assert!(widest <= Some(columns.saturating_sub(1) + up), "{columns}: {text:?}");
            }
            assert!(live.rates.len() == HISTORY_MAX);
        }
    }
}
