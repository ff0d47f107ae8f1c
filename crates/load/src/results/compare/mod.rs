//! `weir load compare A.json B.json`: two sets of runs side by side.
//!
//! A difference is shown with its 95 % interval. It is computed from repeated runs; if one side has
//! a single run, from blocks of seconds, which do not contain the differences between runs. Several
//! measures are compared, so one in twenty equal ones seems to differ. docs/load-compare.md
//! describes the method for users.

mod kinds;
mod measures;
mod row;
pub mod turns;

use std::ffi::OsString;
use std::fs;

use super::{LoadKind, Results, json};
use measures::{MEASURES, P99, RATE};
use row::{ComparisonRow, Noise, failures, headline};

const USAGE: &str = "\
Usage: weir load compare A.json[,A2.json...] B.json[,B2.json...]

Compares the results of weir load --json. Each side is one or more files. A difference is more than
the noise if its 95 % interval excludes 0. Repeated runs show the noise best (weir load --repeat 5).

Options:
  -h, --help  print this help
";

const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The comparison as text, for the arguments after `compare`.
pub fn run(words: &[OsString]) -> Result<String, String> {
    let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or("a file name is not UTF-8");
    let words: Vec<String> = words.iter().map(text).collect::<Result<_, _>>()?;
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(USAGE.to_owned());
    }
    let [a, b] = &words[..] else {
        return Err(format!("two files, or two lists of files, are required\n{USAGE}"));
    };
    Ok(compare(&side(a)?, &side(b)?))
}

fn side(list: &str) -> Result<Vec<Results>, String> {
    let mut runs = Vec::new();
    for file in list.split(',') {
        let of_file = |what: String| format!("{file}: {what}");
        let size = fs::metadata(file).map_err(|error| of_file(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(of_file(format!("larger than {FILE_BYTES_MAX} bytes")));
        }
        let text = fs::read(file).map_err(|error| of_file(error.to_string()))?;
        runs.extend(json::read(&text).map_err(of_file)?);
    }
    if runs.is_empty() { Err(format!("{list}: no runs")) } else { Ok(runs) }
}

/// Compares two sides, which are not empty.
fn compare(a: &[Results], b: &[Results]) -> String {
    let noise = Noise::of(a, b);
    let rows: Vec<ComparisonRow> =
        MEASURES.iter().map(|measure| ComparisonRow::of(measure, noise, a, b)).collect();
    let mut text = kinds::differences(a, b);
    text += &format!("{:<24}{:>12}{:>12}   B from A\n", "", "A", "B");
    rows.iter().for_each(|row| text += &row.line());
    text += &failures(a, b);
    let open = |run: &Results| matches!(run.pace, LoadKind::Open { .. });
    let headline = if a.iter().chain(b).any(open) {
        headline(&rows[P99], "p99 latency", "higher", "lower")
    } else {
        headline(&rows[RATE], "rate", "faster", "slower")
    };
    text += &format!("\n{headline}\n{}", noise.source(a.len(), b.len()));
    let warnings = kinds::warnings("A", a) + &kinds::warnings("B", b);
    if warnings.is_empty() { text } else { format!("{text}\n{warnings}") }
}

#[cfg(test)]
mod tests;
