//! The figure to improve, and the format of its changes.

use statistics::Interval;

use crate::figures::MeasuredRun;

/// The figure to improve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneGoal {
    /// Requests per second.
    Rate,
    /// CPU time per request.
    Cpu,
    /// Latency: the 99th percentile.
    P99,
}

impl TuneGoal {
    pub(super) const ALL: [Self; 3] = [Self::Rate, Self::Cpu, Self::P99];

    /// Reads the value of `--goal`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "rate" => Ok(Self::Rate),
            "cpu" => Ok(Self::Cpu),
            "p99" => Ok(Self::P99),
            _ => Err(format!("--goal {text} is not rate, cpu or p99")),
        }
    }

    /// The figure's name in reports.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Rate => "requests/s",
            Self::Cpu => "CPU/request",
            Self::P99 => "p99",
        }
    }

    /// The goal's figure of a turn.
    pub(super) fn of(self, measured: &MeasuredRun) -> f64 {
        match self {
            Self::Rate => measured.rate,
            Self::Cpu => measured.cpu_us,
            Self::P99 => measured.p99_us,
        }
    }

    /// The gain of one figure over another: a ratio in which more is better.
    pub fn gain(self, own: f64, over: f64) -> f64 {
        if self.is_better_when_higher() { own / over } else { over / own }
    }

    /// The change of the figure for a gain, in per cent.
    pub fn percent(self, gain: Interval) -> Interval {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let Interval { value, low, high } = gain;
        if self.is_better_when_higher() {
            Interval { value: percent(value), low: percent(low), high: percent(high) }
        } else {
            let of = |gain: f64| percent(1.0 / gain);
            Interval { value: of(value), low: of(high), high: of(low) }
        }
    }

    /// The change as text: `+12.3 % requests/s [+10.1 +14.0]`.
    pub fn told(self, gain: Interval) -> String {
        let Interval { value, low, high } = self.percent(gain);
        format!("{value:+.1} % {} [{low:+.1} {high:+.1}]", self.figure())
    }

    fn is_better_when_higher(self) -> bool {
        self == Self::Rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_printed_as_changes_of_the_figure() {
        let gain = Interval { value: 1.25, low: 1.0 / 0.9, high: 2.0 };
        assert_eq!(TuneGoal::Rate.told(gain), "+25.0 % requests/s [+11.1 +100.0]");
        assert_eq!(TuneGoal::Cpu.told(gain), "-20.0 % CPU/request [-50.0 -10.0]");
    }

    #[test]
    fn a_gain_above_one_is_always_better() {
        assert_eq!(TuneGoal::Rate.gain(200.0, 100.0), 2.0);
        assert_eq!(TuneGoal::P99.gain(200.0, 100.0), 0.5);
        assert_eq!(TuneGoal::parse("cpu"), Ok(TuneGoal::Cpu));
    }
}
