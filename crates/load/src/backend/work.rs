//! The cost of a request: sleep and CPU.

use std::time::{Duration, Instant};

use super::faults::RequestRandom;

#[derive(Default)]
pub(super) struct RequestCost {
    /// Sleeps for a random time between these two.
    pub(super) sleep: Option<(Duration, Duration)>,
    /// Sleeps longer the more requests are in progress.
    pub(super) slow: Option<Slow>,
    /// Then computes.
    pub(super) spin: Spin,
}

/// Work for a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spin {
    /// So many additions.
    Additions(u64),
    /// As many additions as take this time on this machine; see [`Spin::calibrate`].
    Time(Duration),
}

impl Default for Spin {
    fn default() -> Self {
        Self::Additions(0)
    }
}

/// The additions of one measurement of their speed, which takes about a millisecond.
const CALIBRATION: u64 = 1 << 21;
/// The number of measurements; the fastest counts, because disturbances only slow them down.
const CALIBRATIONS: usize = 20;

impl Spin {
    /// Converts a time to additions.
    pub(super) fn calibrate(&mut self) {
        if let Self::Time(time) = *self {
            let times = (0..CALIBRATIONS).map(|_| {
                let begun = Instant::now();
                add(CALIBRATION);
                begun.elapsed()
            });
            *self = Self::Additions(additions(time, times.min().unwrap_or_default()));
        }
    }
}

/// The additions that take a time, if [`CALIBRATION`] additions take another.
fn additions(time: Duration, measured: Duration) -> u64 {
    (CALIBRATION as f64 * time.as_secs_f64() / measured.as_secs_f64().max(1e-9)) as u64
}

fn add(count: u64) {
    let mut sum = 0u64;
    for number in 0..count {
        sum = std::hint::black_box(sum.wrapping_add(number));
    }
}

/// A service that is slower the more requests it has at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slow {
    /// The time of a single request.
    pub(super) alone: Duration,
    /// With this many requests, each takes twice as long, and the rate is at its maximum.
    pub(super) best: u64,
}

impl Slow {
    /// The time of the `n`th request in progress.
    pub(super) fn time(&self, n: u64) -> Duration {
        self.alone.mul_f64(1.0 + (n as f64 / self.best as f64).powi(2))
    }
}

impl RequestCost {
    /// The sleep of the `n`th request in progress.
    pub(super) fn time(&self, n: u64, random: &mut RequestRandom) -> Duration {
        let sleep = self.sleep.map(|(least, most)| least + (most - least).mul_f64(random.draw()));
        sleep.unwrap_or_default() + self.slow.map(|slow| slow.time(n)).unwrap_or_default()
    }

    /// Burns CPU.
    pub(super) fn spin(&self) {
        if let Spin::Additions(count) = self.spin {
            add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_highest_at_best() {
        let slow = Slow { alone: Duration::from_millis(25), best: 150 };
        let rate = |n: u64| n as f64 / slow.time(n).as_secs_f64();
        assert!((1..600).all(|n| rate(n) <= rate(150)));
        assert!(rate(600) < rate(150) / 2.0);
    }

    #[test]
    fn a_time_becomes_additions() {
        let ms = Duration::from_millis;
        assert_eq!(additions(ms(4), ms(1)), 4 * CALIBRATION);
        let mut spin = Spin::Time(ms(1));
        spin.calibrate();
        assert!(matches!(spin, Spin::Additions(count) if count > 0), "{spin:?}");
        let mut fixed = Spin::Additions(7);
        fixed.calibrate();
        assert_eq!(fixed, Spin::Additions(7));
    }

    #[test]
    fn sleeps_cover_their_range() {
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(20));
        let work = RequestCost { sleep: Some((least, most)), ..RequestCost::default() };
        let times: Vec<_> = (0..1000).map(|n| work.time(1, &mut RequestRandom::of(0, n))).collect();
        assert!(times.iter().all(|time| (least..most).contains(time)));
        let near = |end: Duration| times.iter().any(|time| time.abs_diff(end).as_micros() < 200);
        assert!(near(least) && near(most));
        let both = RequestCost { slow: Some(Slow { alone: least, best: 1 }), ..work };
        assert!(both.time(1, &mut RequestRandom::of(0, 0)) >= 3 * least);
    }
}
