//! What a request costs: time asleep, and work.

use std::time::Duration;

use super::misfortune::Luck;

/// What a request costs.
#[derive(Default)]
pub(super) struct RequestCost {
    /// Sleeps so long: between the two.
    pub(super) sleep: Option<(Duration, Duration)>,
    /// Sleeps the longer the more there are.
    pub(super) slow: Option<Slow>,
    /// Then adds so often.
    pub(super) spin: u64,
}

/// A service that is slower the more it has to do at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slow {
    /// How long a request takes that is alone.
    pub(super) alone: Duration,
    /// With so many a request takes twice as long, and requests per second are the most.
    pub(super) best: u64,
}

impl Slow {
    /// How long the `n`th of those in progress takes.
    pub(super) fn time(&self, n: u64) -> Duration {
        self.alone.mul_f64(1.0 + (n as f64 / self.best as f64).powi(2))
    }
}

impl RequestCost {
    /// How long a request sleeps that is the `n`th of those in progress.
    pub(super) fn time(&self, n: u64, luck: &mut Luck) -> Duration {
        let sleep = self.sleep.map(|(least, most)| least + (most - least).mul_f64(luck.draw()));
        sleep.unwrap_or_default() + self.slow.map(|slow| slow.time(n)).unwrap_or_default()
    }

    /// Burns CPU: the loop of the document that asked for it.
    pub(super) fn spin(&self) {
        let mut sum = 0u64;
        for number in 0..self.spin {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_at_its_best_where_it_says() {
        let slow = Slow { alone: Duration::from_millis(25), best: 150 };
        let rate = |n: u64| n as f64 / slow.time(n).as_secs_f64();
        assert!((1..600).all(|n| rate(n) <= rate(150)));
        assert!(rate(600) < rate(150) / 2.0);
    }

    #[test]
    fn a_range_is_used_up() {
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(20));
        let work = RequestCost { sleep: Some((least, most)), ..RequestCost::default() };
        let times: Vec<_> = (0..1000).map(|n| work.time(1, &mut Luck::of(0, n))).collect();
        assert!(times.iter().all(|time| (least..most).contains(time)));
        let near = |end: Duration| times.iter().any(|time| time.abs_diff(end).as_micros() < 200);
        assert!(near(least) && near(most));
        let both = RequestCost { slow: Some(Slow { alone: least, best: 1 }), ..work };
        assert!(both.time(1, &mut Luck::of(0, 0)) >= 3 * least);
    }
}
