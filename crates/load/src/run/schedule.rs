//! The starts of requests in an open loop, computed without a clock.

use std::time::Duration;

/// Requests per second, from the start of a run to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSchedule {
    /// At the start.
    pub from: f64,
    /// At the end; the same for a constant rate.
    pub to: f64,
    /// The duration of the ramp.
    pub over: Duration,
}

impl RateSchedule {
    pub fn constant(rate: f64) -> Self {
        Self { from: rate, to: rate, over: Duration::ZERO }
    }

    pub fn at(&self, time: Duration) -> f64 {
        if time >= self.over {
            return self.to;
        }
        self.from + (self.to - self.from) * time.as_secs_f64() / self.over.as_secs_f64()
    }

    /// The start of the request with the number `n`, counted from 0.
    ///
    /// Requests started by then are the area below the line of the rate: `from·t + a·t²/2`, where
    /// `a` is the rate's growth. Once the ramp has ended the rate stays.
    pub fn start_of(&self, n: u64) -> Duration {
        if n == 0 {
            return Duration::ZERO;
        }
        let n = n as f64;
        let ramp_s = self.over.as_secs_f64();
        let within = (self.from + self.to) / 2.0 * ramp_s;
        let seconds = if n >= within {
            ramp_s + (n - within) / self.to
        } else {
            let growth = (self.to - self.from) / ramp_s;
            // This form of the root loses no digits if the growth is small.
            2.0 * n / (self.from + (self.from * self.from + 2.0 * growth * n).max(0.0).sqrt())
        };
        // At a rate of 0, no further request starts.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(rate: RateSchedule, n: u64) -> f64 {
        rate.start_of(n).as_secs_f64()
    }

    #[test]
    fn a_constant_rate() {
        let rate = RateSchedule::constant(1000.0);
        assert_eq!(starts(rate, 0), 0.0);
        assert!((starts(rate, 1) - 0.001).abs() < 1e-9);
        assert!((starts(rate, 60_000) - 60.0).abs() < 1e-9);
    }

    #[test]
    fn a_ramp_has_its_mean_rate_and_then_stays() {
        let rate = RateSchedule { from: 1000.0, to: 3000.0, over: Duration::from_secs(10) };
        assert!((starts(rate, 20_000) - 10.0).abs() < 1e-6);
        assert!((starts(rate, 23_000) - 11.0).abs() < 1e-6);
        assert_eq!(rate.at(Duration::from_secs(5)), 2000.0);
        assert_eq!(rate.at(Duration::from_secs(11)), 3000.0);
        // After 5 s: 1000·5 + 200·25/2 = 7500.
        assert!((starts(rate, 7500) - 5.0).abs() < 1e-6);
        let down = RateSchedule { from: 3000.0, to: 1000.0, ..rate };
        assert!((starts(down, 12_500) - 5.0).abs() < 1e-6);
    }

    #[test]
    fn never_backwards() {
        for (from, to) in [(0.0, 500.0), (500.0, 1.0), (7.0, 7.0)] {
            let rate = RateSchedule { from, to, over: Duration::from_secs(3) };
            let starts: Vec<Duration> = (0..2000).map(|n| rate.start_of(n)).collect();
            assert!(starts.is_sorted(), "{from} to {to}");
        }
    }
}
