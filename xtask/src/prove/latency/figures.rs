//! The four figures that are compared, and when they are the same.

/// What a latency is called that so many of a thousand do not exceed.
const FIGURES: [(&str, usize); 4] = [("p50", 500), ("p99", 990), ("p99.9", 999), ("max", 1000)];

/// Percentiles may be off by this share or by this time, ...
const OFF_MAX_SHARE: f64 = 0.01;
const OFF_MAX_US: f64 = 1000.0;
/// ... and the highest latency by this time.
const OFF_MAX_OF_MAX_US: f64 = 5000.0;

/// In microseconds, in the order of [`names`]; what somebody does not say is missing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures(pub(super) [Option<f64>; 4]);

pub(super) fn names() -> [&'static str; 4] {
    FIGURES.map(|(name, _)| name)
}

impl Figures {
    /// Those of a list: its smallest value that so many do not exceed.
    pub(super) fn of(mut latencies_us: Vec<u64>) -> Self {
        latencies_us.sort_unstable();
        let count = latencies_us.len();
        Self(FIGURES.map(|(_, of_thousand)| {
            let rank = (count * of_thousand).div_ceil(1000);
            latencies_us.get(rank.saturating_sub(1)).map(|us| *us as f64)
        }))
    }

    /// What of these is not what it should be, though `excused_us` be taken off.
    pub(super) fn faults(&self, truth: &Self, name_of_truth: &str, excused_us: f64) -> Vec<String> {
        let mut faults = Vec::new();
        for (place, name) in names().into_iter().enumerate() {
            let (Some(is), Some(should)) = (self.0[place], truth.0[place]) else {
                faults.push(format!("there is no {name}"));
                continue;
            };
            let off_max = match name {
                "max" => OFF_MAX_OF_MAX_US,
                _ => OFF_MAX_US.max(should * OFF_MAX_SHARE),
            };
            if (is - should).abs() > off_max + excused_us {
                let [is, should, most] = [is, should, off_max].map(ms);
                faults.push(format!(
                    "{name} is {is} ms; by {name_of_truth} {should}, off by at most {most}"
                ));
            }
        }
        faults
    }

    /// As cells of a table, in milliseconds.
    pub(super) fn cells(&self) -> String {
        let cell = |figure: Option<f64>| figure.map_or("-".to_owned(), ms);
        self.0.map(|figure| format!(" {:>8} |", cell(figure))).concat()
    }
}

fn ms(us: f64) -> String {
    format!("{:.2}", us / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: [u64; 4]) -> Figures {
        Figures(us.map(|us| Some(us as f64)))
    }

    #[test]
    fn ranks() {
        assert_eq!(Figures::of((1..=1000).rev().collect()), of([500, 990, 999, 1000]));
        assert_eq!(Figures::of((1..=2400).collect()), of([1200, 2376, 2398, 2400]));
        assert_eq!(Figures::of(vec![7]), of([7, 7, 7, 7]));
        assert_eq!(Figures::of(Vec::new()), Figures([None; 4]));
    }

    #[test]
    fn tolerances() {
        let truth = of([50_000, 500_000, 900_000, 1_000_000]);
        for right in [[51_000, 505_000, 909_000, 1_005_000], [49_000, 495_000, 891_000, 995_000]] {
            assert_eq!(of(right).faults(&truth, "it", 0.0), Vec::<String>::new());
        }
        let wrong = of([51_001, 494_999, 909_001, 1_005_001]);
        let faults = wrong.faults(&truth, "the log", 0.0);
        assert_eq!(faults.len(), 4);
        assert_eq!(faults[1], "p99 is 495.00 ms; by the log 500.00, off by at most 5.00");
        assert_eq!(wrong.faults(&truth, "it", 2.0), Vec::<String>::new());
        assert_eq!(Figures([None; 4]).faults(&truth, "it", 1e9).len(), 4);
    }

    #[test]
    fn cells_of_a_table() {
        let text = Figures([Some(52_126.0), None, Some(1e6), None]).cells();
        assert_eq!(text, "    52.13 |        - |  1000.00 |        - |");
    }
}
