//! A run while it runs: one line for each second, or a view that is drawn again in place.
//!
//! Strings only. Whether there is a terminal, how wide it is, and the writing are the caller's.

use std::collections::VecDeque;

use super::{Second, amounts};

/// What has to be remembered between one second and the next.
#[derive(Debug, Default)]
pub struct Live {
    last_at: f64,
    failures: u64,
    rates: VecDeque<f64>,
    /// Lines of the view that are on the terminal.
    drawn: usize,
}

/// Seconds that the view looks back.
const HISTORY_MAX: usize = 60;
/// Columns of the view beside its history.
const BESIDE_HISTORY: usize = 24;

impl Live {
    /// The next second as a line.
    pub fn line(&mut self, second: &Second) -> String {
        let (rate, failures) = self.count(second);
        let latency = latency(second);
        format!("{:7.1}s {rate:>11.2} requests/s {failures:>7} errors   {latency}\n", second.at)
    }

    /// The next second as what the terminal is to be sent: the view in place of the last one.
    pub fn view(&mut self, second: &Second, columns: usize) -> String {
        // There are terminals that have never been told how wide they are.
        if columns == 0 {
            return self.line(second);
        }
        let (rate, failures) = self.count(second);
        let history = self.history(columns.saturating_sub(BESIDE_HISTORY));
        let lines = [
            format!("{:7.1}s   {} requests/s", second.at, amounts::count(rate)),
            format!("  errors   {failures}, {} so far", self.failures),
            format!(" latency   {}", latency(second)),
            format!("          {history}"),
        ];
        let mut text = self.up();
        for line in &lines {
            // A line that wraps would be two to go up by.
            text.extend(line.chars().take(columns.saturating_sub(1)));
            text += "\x1b[K\n";
        }
        self.drawn = lines.len();
        text
    }

    /// Takes the view away, for what comes after the run.
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

    /// The second's rate and failures, which count from now on.
    fn count(&mut self, second: &Second) -> (f64, u64) {
        let length = second.at - self.last_at;
        let rate = if length > 0.0 { second.tally.replies as f64 / length } else { 0.0 };
        let failures = second.tally.failures();
        self.last_at = second.at;
        self.failures += failures;
        self.rates.push_back(rate);
        if self.rates.len() > HISTORY_MAX {
            self.rates.pop_front();
        }
        (rate, failures)
    }

    /// The last seconds as bars between nothing and the highest rate among them.
    fn history(&self, width: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let seen = self.rates.iter().skip(self.rates.len().saturating_sub(width));
        let highest = seen.clone().fold(0.0, |highest: f64, rate| highest.max(*rate));
        let bar = |rate: &f64| match rate / highest * (BARS.len() - 1) as f64 {
            nothing if nothing.is_nan() => BARS[0],
            height => BARS[height.round() as usize],
        };
        let bars: String = seen.map(bar).collect();
        format!("{bars} {}", amounts::count(highest))
    }
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
        failing.tally.statuses[5] = 1;
        let text = live.line(&second(1.0, 200, 123)) + &live.line(&failing);
        let expected = [
            "    1.0s      200.00 requests/s       0 errors   ",
            "p50  123.00us   p99  123.00us   max  123.00us\n",
            "    2.5s      200.00 requests/s       3 errors   ",
            "p50    2.50ms   p99    2.50ms   max    2.50ms\n",
        ];
        assert_eq!(text, expected.concat());
    }

    #[test]
    fn a_second_without_replies() {
        let text = Live::default().line(&second(1.0, 0, 1));
        assert!(text.contains("  0.00 requests/s "), "{text}");
        assert!(text.contains("p50    0.00us "), "{text}");
        assert!(Live::default().view(&second(1.0, 0, 1), 80).contains("▁ 0.00"));
    }

    #[test]
    fn the_view_is_drawn_in_place() {
        let mut live = Live::default();
        assert_eq!(live.clear(), "");
        let first = live.view(&second(1.0, 1000, 123), 80);
        assert!(first.starts_with("    1.0s   1.00k requests/s\x1b[K\n"), "{first:?}");
        let next = live.view(&second(2.0, 500, 123), 80);
        assert!(next.starts_with("\x1b[4A\r    2.0s"), "{next:?}");
        assert!(next.ends_with("          █▅ 1.00k\x1b[K\n"), "{next:?}");
        assert_eq!(live.clear(), "\x1b[4A\r\x1b[J");
        assert_eq!(live.clear(), "");
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
                let up = "\x1b[4A\r".len();
                assert!(widest <= Some(columns.saturating_sub(1) + up), "{columns}: {text:?}");
            }
            assert!(live.rates.len() == HISTORY_MAX);
        }
    }
}
