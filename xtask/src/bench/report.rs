//! What was measured, as a table.

use statistics::{median, quartiles};

use super::rows::{BenchRow, BenchWork};
use super::sample::{ContenderSamples, Sample};

/// Below this the spread of the ratio says little.
const ROUNDS_MEANT: usize = 16;

pub(super) struct BenchReport {
    failed: Vec<&'static str>,
}

impl BenchReport {
    pub(super) fn new(rounds: usize) -> Self {
        if rounds < ROUNDS_MEANT {
            println!("{rounds} of {ROUNDS_MEANT} rounds: for trying out, not for claims");
        }
        Self { failed: Vec::new() }
    }

    /// Shows a row as soon as it is measured.
    pub(super) fn add(
        &mut self,
        row: &'static BenchRow,
        goal: f64,
        result: Result<[ContenderSamples; 2], String>,
    ) {
        let passed = match result {
            Err(why) => {
                println!("{:11} not measured: {why}", row.name);
                false
            }
            Ok(samples) => {
                let measured = MeasuredRow { row, goal, samples };
                println!("{}", measured.line());
                measured.verdict().is_none()
            }
        };
        if !passed {
            self.failed.push(row.name);
        }
    }

    /// The rows that did not pass, as an error.
    pub(super) fn verdict(&self) -> Result<(), String> {
        match self.failed.as_slice() {
            [] => Ok(()),
            failed => Err(format!("bench: not at goal: {}", failed.join(" "))),
        }
    }
}

/// A row with its samples: weir's, and nginx's of the same rounds.
struct MeasuredRow {
    row: &'static BenchRow,
    goal: f64,
    samples: [ContenderSamples; 2],
}

impl MeasuredRow {
    /// The ratio of each round.
    fn ratios(&self) -> Vec<f64> {
        let [weir, nginx] = &self.samples;
        let pairs = weir.samples.iter().zip(&nginx.samples);
        pairs.map(|(weir, nginx)| weir.figure / nginx.figure).collect()
    }

    /// Why the row does not pass.
    fn verdict(&self) -> Option<String> {
        if let Some(difference) = self.difference() {
            return Some(format!("ANSWERS DIFFER: {difference}"));
        }
        if let Some(complaint) = self.complaint(0) {
            return Some(format!("FAILED: {complaint}"));
        }
        let at_goal = self.goal == 0.0 || median(&self.ratios()) <= self.goal;
        (!at_goal).then(|| "ABOVE GOAL".to_owned())
    }

    fn difference(&self) -> Option<String> {
        let [weir, nginx] = &self.samples;
        weir.answer.difference(&nginx.answer)
    }

    fn complaint(&self, which: usize) -> Option<&str> {
        self.samples[which].samples.iter().find_map(|sample| sample.complaint.as_deref())
    }

    /// What did not go well with the peer.
    fn remarks(&self) -> String {
        self.complaint(1).map_or(String::new(), |complaint| {
            format!("\n{:11} {}: {complaint}", "", self.row.peer())
        })
    }

    fn line(&self) -> String {
        let ratios = self.ratios();
        let (first, third) = quartiles(&ratios);
        let [weir, peer] = self.samples.each_ref().map(|of| self.cost(&of.samples));
        let goal = if self.goal == 0.0 { "   -".into() } else { format!("{:.2}", self.goal) };
        let passed = if self.goal == 0.0 { "shown" } else { "at goal" };
        let verdict = self.verdict().unwrap_or_else(|| passed.into());
        format!(
            "{:11} weir {weir}  {} {peer}  ratio {:.3} [{:.3} {:.3}]  goal {goal}  {verdict}{}",
            self.row.name,
            self.row.peer(),
            median(&ratios),
            first,
            third,
            self.remarks(),
        )
    }

    fn unit(&self) -> &'static str {
        match self.row.work {
            BenchWork::Load(_) | BenchWork::Generator { .. } => "us",
            BenchWork::Idle(_) => "B",
        }
    }

    fn cost(&self, samples: &[Sample]) -> String {
        let figures: Vec<f64> = samples.iter().map(|sample| sample.figure).collect();
        let figure = median(&figures);
        match self.unit() {
            "us" => format!("{figure:6.2} us"),
            unit => format!("{figure:6.0} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::BenchAnswer;
    use super::super::rows::ROWS;
    use super::*;

    fn samples(figures: &[f64]) -> ContenderSamples {
        let sample = |figure: &f64| Sample { figure: *figure, complaint: None };
        let answer = BenchAnswer::of_test("HTTP/1.1 200 OK");
        ContenderSamples { samples: figures.iter().map(sample).collect(), answer }
    }

    fn measured(goal: f64, weir: &[f64], nginx: &[f64]) -> MeasuredRow {
        MeasuredRow { row: &ROWS[0], goal, samples: [samples(weir), samples(nginx)] }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_pairs() {
        let row = measured(0.80, &[4.0, 6.0, 4.0], &[5.0, 6.0, 8.0]);
        let expected = "null        weir   4.00 us  nginx   6.00 us  \
                        ratio 0.800 [0.650 0.900]  goal 0.80  at goal";
        assert_eq!(row.line(), expected);
        assert_eq!(row.verdict(), None);
        assert_eq!(median(&[1.0, 2.0, 4.0, 8.0]), 3.0);
    }

    #[test]
    fn quartiles_are_shown() {
        let weir = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 80.0];
        let line = measured(0.0, &weir, &[1.0; 8]).line();
        assert!(line.contains("ratio 4.500 [2.750 6.250]"), "{line}");
    }

    #[test]
    fn a_row_fails_by_its_goal_its_answers_or_its_errors() {
        assert_eq!(measured(0.79, &[4.0], &[5.0]).verdict(), Some("ABOVE GOAL".into()));
        assert_eq!(measured(0.0, &[9.0], &[5.0]).verdict(), None);
        // A ratio that is no number is not at its goal.
        assert_eq!(measured(0.9, &[f64::NAN], &[5.0]).verdict(), Some("ABOVE GOAL".into()));
        let mut row = measured(0.9, &[4.0], &[5.0]);
        row.samples[1].samples[0].complaint = Some("Non-2xx".into());
        assert!(row.verdict().is_none() && row.line().contains("nginx: Non-2xx"));
        row.samples[0].samples[0].complaint = Some("Socket errors".into());
        assert_eq!(row.verdict(), Some("FAILED: Socket errors".into()));
        row.samples[0].answer = BenchAnswer::of_test("HTTP/1.1 404 Not Found");
        assert!(row.verdict().is_some_and(|why| why.starts_with("ANSWERS DIFFER")));
    }
}
