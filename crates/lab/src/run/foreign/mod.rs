//! Other load generators: started for each turn, and their printed figures read.
//!
//! What they print is the text of a trusted program, but no text makes a reader panic.

mod ab;
mod h2load;
mod text;
mod wrk;

use std::process::{Command, Stdio};

use processes::procfs;

use super::generator::GeneratorTurn;
use super::part::GeneratingPart;
use super::program::in_path;
use crate::figures::MeasuredRun;
use crate::record::LeftOutRecord;
use crate::study::{GeneratorKind, RowSetting, Study};

/// A generator that is started for each turn.
pub(super) struct ForeignGenerator {
    kind: GeneratorKind,
    words: Vec<String>,
}

impl ForeignGenerator {
    pub(super) fn new(kind: GeneratorKind, turn: &GeneratorTurn) -> Self {
        let close = turn.options.iter().any(|word| word == "--close");
        let (connections, seconds) = (turn.connections, turn.turn_ms / 1000);
        let mut words = turn.placed.clone();
        words.extend(match kind {
            GeneratorKind::WeirLoad => Vec::new(),
            GeneratorKind::Wrk => wrk::words(connections, seconds, close),
            GeneratorKind::Ab => ab::words(connections, seconds, close),
            GeneratorKind::H2load => h2load::words(connections, seconds, turn.streams()),
        });
        words.push(turn.url.clone());
        Self { kind, words }
    }
}

impl GeneratingPart for ForeignGenerator {
    fn turn(&mut self) -> Result<MeasuredRun, String> {
        let output = Command::new(&self.words[0])
            .args(&self.words[1..])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.words[0]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let read = match self.kind {
            GeneratorKind::WeirLoad => None,
            GeneratorKind::Wrk => wrk::read(&text),
            GeneratorKind::Ab => ab::read(&text),
            GeneratorKind::H2load => h2load::read(&text),
        };
        read.ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = [text.trim_end(), said.trim_end()].join("\n");
            format!("{}\nprinted no results: {}", self.words.join(" "), said.trim())
        })
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    /// It includes that of other children that have ended, so only differences over a turn mean
    /// something.
    fn cpu_s(&mut self) -> Result<f64, String> {
        procfs::cpu_of_the_ended_s()
    }
}

/// The rows of a study whose generators are not installed, for each server. The baseline is an
/// error.
pub(super) fn left_out(study: &Study, programs: usize) -> Result<Vec<LeftOutRecord>, String> {
    let mut left_out = Vec::new();
    for (row, kind) in kinds(study)?.into_iter().enumerate() {
        if !kind.is_foreign() || in_path(kind.name()).is_some() {
            continue;
        }
        let why = format!("{} is not installed", kind.name());
        if row == 0 {
            return Err(format!("row \"{}\": {why}", study.rows[0].name));
        }
        let out = |program| LeftOutRecord { program, row, why: why.clone() };
        left_out.extend((0..programs).map(out));
    }
    Ok(left_out)
}

/// The versions of the other generators of a study.
pub(super) fn versions(study: &Study) -> Result<Vec<String>, String> {
    let mut known = Vec::new();
    for kind in kinds(study)? {
        if kind.is_foreign() && !known.contains(&kind) && in_path(kind.name()).is_some() {
            known.push(kind);
        }
    }
    Ok(known.into_iter().map(version).collect())
}

/// The generator of each row.
fn kinds(study: &Study) -> Result<Vec<GeneratorKind>, String> {
    study.rows.iter().map(|row| Ok(RowSetting::of(study, row)?.load.generator)).collect()
}

/// The first line that a program prints about itself.
fn version(kind: GeneratorKind) -> String {
    let option = match kind {
        GeneratorKind::Ab => "-V",
        GeneratorKind::Wrk => "-v",
        GeneratorKind::WeirLoad | GeneratorKind::H2load => "--version",
    };
    let output = Command::new(kind.name()).arg(option).stdin(Stdio::null()).output();
    let said = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_beginning_of_an_output_is_read_or_not() {
        let outputs = [
            (wrk::read as fn(&str) -> Option<MeasuredRun>, include_str!("testdata/wrk.txt")),
            (ab::read, include_str!("testdata/ab.txt")),
            (h2load::read, include_str!("testdata/h2load.txt")),
        ];
        for (read, text) in outputs {
            assert!(read(text).is_some());
            let ends = text.char_indices().map(|(at, _)| at);
            let read = ends.filter_map(|end| read(&text[..end])).filter(|run| run.requests == 0);
            assert_eq!(read.count(), 0);
        }
    }

    #[test]
    fn a_program_that_prints_nothing_known_is_an_error() {
        let turn = GeneratorTurn {
            placed: ["sh", "-c", "echo hello; echo no >&2", "sh"].map(str::to_owned).to_vec(),
            connections: 2,
            turn_ms: 1000,
            options: vec!["--close".to_owned()],
            url: "http://127.0.0.1:1/".to_owned(),
            further_urls: Vec::new(),
        };
        let told = ForeignGenerator::new(GeneratorKind::Wrk, &turn).turn().unwrap_err();
        assert!(
            told.contains(" wrk -t1 -c2 -d1s --latency -H Connection: close http://"),
            "{told}"
        );
        assert!(told.ends_with("printed no results: hello\nno"), "{told}");
    }
}
