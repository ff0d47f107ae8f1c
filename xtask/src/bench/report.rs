//! What was measured, as a table.

use super::procfs::Cpu;
use super::rows::{BenchRow, BenchWork};
use super::{ROUNDS_MEANT, Sample};

/// The load generator was the limit when its core was this busy and the server's was not.
const LOAD_BUSY: f64 = 0.95;
const SERVER_FREE: f64 = 0.90;

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
        result: Result<[Vec<Sample>; 2], String>,
    ) {
        let passed = match result {
            Err(why) => {
                println!("{:9} not measured: {why}", row.name);
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
    samples: [Vec<Sample>; 2],
}

impl MeasuredRow {
    /// Of each round, in ascending order.
    fn ratios(&self) -> Vec<f64> {
        let [weir, nginx] = &self.samples;
        let pairs = weir.iter().zip(nginx);
        sorted(pairs.map(|(weir, nginx)| weir.figure / nginx.figure).collect())
    }

    /// Why the row does not pass.
    fn verdict(&self) -> Option<String> {
        if let Some(difference) = self.difference() {
            return Some(format!("ANSWERS DIFFER: {difference}"));
        }
        if let Some(complaint) = self.samples[0].iter().find_map(|sample| sample.complaint.as_ref())
        {
            return Some(format!("FAILED: {complaint}"));
        }
        let at_goal = self.goal == 0.0 || median(&self.ratios()) <= self.goal;
        (!at_goal).then(|| "ABOVE GOAL".to_owned())
    }

    fn difference(&self) -> Option<String> {
        let [weir, nginx] = &self.samples;
        let mut pairs = weir.iter().zip(nginx);
        pairs.find_map(|(weir, nginx)| weir.answer.difference(&nginx.answer))
    }

    /// Where not the server but the load generator set the pace; the cost per request still holds.
    fn remarks(&self) -> String {
        let mut remarks = String::new();
        // The generator is what is measured there.
        let is_server = !matches!(self.row.work, BenchWork::Generator { .. });
        for (samples, name) in self.samples.iter().zip(["weir", self.row.peer()]) {
            let busy: Vec<(f64, f64)> = samples.iter().filter_map(|sample| sample.busy).collect();
            let server = median(&sorted(busy.iter().map(|(server, _)| *server).collect()));
            let load = median(&sorted(busy.iter().map(|(_, load)| *load).collect()));
            if is_server && load >= LOAD_BUSY && server < SERVER_FREE {
                let (load, server) = (load * 100.0, server * 100.0);
                remarks += &format!("\n{:9} the load generator was {name}'s limit: ", "");
                remarks += &format!("its core {load:.0} % busy, the server's {server:.0} %");
            }
        }
        let complaint = self.samples[1].iter().find_map(|sample| sample.complaint.as_ref());
        complaint.map_or(String::new(), |complaint| {
            format!("\n{:9} {}: {complaint}", "", self.row.peer())
        }) + &remarks
    }

    fn line(&self) -> String {
        let ratios = self.ratios();
        let [weir, peer] = self.samples.each_ref().map(|samples| self.cost(samples));
        let goal = if self.goal == 0.0 { "   -".into() } else { format!("{:.2}", self.goal) };
        let passed = if self.goal == 0.0 { "shown" } else { "at goal" };
        let verdict = self.verdict().unwrap_or_else(|| passed.into());
        format!(
            "{:9} weir {weir}  {} {peer}  ratio {:.2} [{:.2} {:.2}]  goal {goal}  {verdict}{}",
            self.row.name,
            self.row.peer(),
            median(&ratios),
            ratios[0],
            ratios[ratios.len() - 1],
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
        let figure = median(&figures(samples));
        let unit = self.unit();
        match split(samples) {
            None => format!("{figure:6.0} {unit:20}"),
            Some(Cpu { user, sys }) => {
                format!("{figure:6.2} {unit} ({user:.2} + {sys:.2})").to_string()
            }
        }
    }
}

fn figures(samples: &[Sample]) -> Vec<f64> {
    sorted(samples.iter().map(|sample| sample.figure).collect())
}

/// The medians of user and of system time.
fn split(samples: &[Sample]) -> Option<Cpu> {
    let splits: Vec<Cpu> = samples.iter().filter_map(|sample| sample.split).collect();
    let of = |part: fn(&Cpu) -> f64| median(&sorted(splits.iter().map(part).collect()));
    (!splits.is_empty()).then(|| Cpu { user: of(|cpu| cpu.user), sys: of(|cpu| cpu.sys) })
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// Of numbers in ascending order; the mean of the middle two where there is no middle one.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        length => (sorted[(length - 1) / 2] + sorted[length / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::BenchAnswer;
    use super::super::rows::ROWS;
    use super::*;

    fn samples(figures: &[f64], busy: (f64, f64)) -> Vec<Sample> {
        let sample = |figure: &f64| Sample {
            figure: *figure,
            split: Some(Cpu { user: figure / 4.0, sys: figure * 0.75 }),
            busy: Some(busy),
            complaint: None,
            answer: BenchAnswer::of_test("HTTP/1.1 200 OK"),
        };
        figures.iter().map(sample).collect()
    }

    fn measured(goal: f64, weir: &[f64], nginx: &[f64]) -> MeasuredRow {
        let samples = [samples(weir, (0.98, 0.7)), samples(nginx, (0.99, 0.7))];
        MeasuredRow { row: &ROWS[0], goal, samples }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_pairs() {
        let row = measured(0.80, &[4.0, 6.0, 4.0], &[5.0, 6.0, 8.0]);
        let expected = "null      weir   4.00 us (1.00 + 3.00)  nginx   6.00 us (1.50 + 4.50)  \
                        ratio 0.80 [0.50 1.00]  goal 0.80  at goal";
        assert_eq!(row.line(), expected);
        assert_eq!(row.verdict(), None);
        assert_eq!(median(&[1.0, 2.0, 4.0, 8.0]), 3.0);
    }

    #[test]
    fn a_row_fails_by_its_goal_its_answers_or_its_errors() {
        assert_eq!(measured(0.79, &[4.0], &[5.0]).verdict(), Some("ABOVE GOAL".into()));
        assert_eq!(measured(0.0, &[9.0], &[5.0]).verdict(), None);
        // A ratio that is no number is not at its goal.
        assert_eq!(measured(0.9, &[f64::NAN], &[5.0]).verdict(), Some("ABOVE GOAL".into()));
        let mut row = measured(0.9, &[4.0], &[5.0]);
        row.samples[0][0].complaint = Some("Socket errors".into());
        assert_eq!(row.verdict(), Some("FAILED: Socket errors".into()));
        row.samples[0][0].answer = BenchAnswer::of_test("HTTP/1.1 404 Not Found");
        assert!(row.verdict().is_some_and(|why| why.starts_with("ANSWERS DIFFER")));
    }

    #[test]
    fn a_load_generator_at_its_limit_is_told() {
        let mut row = measured(0.9, &[4.0], &[5.0]);
        assert_eq!(row.remarks(), "");
        row.samples[0] = samples(&[4.0], (0.80, 0.99));
        let said = "\n          the load generator was weir's limit: its core 99 % busy, \
                    the server's 80 %";
        assert_eq!(row.remarks(), said);
        // Both busy: the two are matched, neither waits for the other alone.
        row.samples[0] = samples(&[4.0], (0.97, 0.99));
        assert_eq!(row.remarks(), "");
    }
}
