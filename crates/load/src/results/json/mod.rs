//! Results as JSON; docs/load-json.md explains the fields.

mod record;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::{Results, Turns};
use record::{OrderedTurn, RunRecord, TurnsRecord};

/// One run as an object, several as a list of objects.
pub fn write(runs: &[Results]) -> String {
    let runs: Vec<String> = runs.iter().map(|run| text(&RunRecord::from(run))).collect();
    match &runs[..] {
        [run] => format!("{run}\n"),
        runs => format!("[{}]\n", runs.join(",\n")),
    }
}

/// Reads the output of [`write`]. Errors name the mistake and, for syntax errors, its position.
pub fn read(text: &[u8]) -> Result<Vec<Results>, String> {
    let is_list = text.trim_ascii_start().starts_with(b"[");
    let runs: serde_json::Result<Vec<RunRecord<'_>>> = match is_list {
        true => serde_json::from_slice(text),
        false => serde_json::from_slice(text).map(|run| vec![run]),
    };
    let runs = runs.map_err(|error| error.to_string())?;
    let result = |(n, run): (u32, _)| {
        Results::try_from(run)
            .map_err(|what| if is_list { format!("run {n}: {what}") } else { what })
    };
    (1..).zip(runs).map(result).collect()
}

/// Two servers that took turns, as an object.
pub fn write_turns(turns: &Turns) -> String {
    text(&TurnsRecord::from(turns)) + "\n"
}

/// A turn of `--on-demand`, as an object.
pub fn write_turn(steady_replies_per_s: f64, run: &Results) -> String {
    text(&OrderedTurn { steady_replies_per_s, run: run.into() }) + "\n"
}

fn text(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut text, Spaced));
    written.expect("field names are strings, and memory can be written");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// One line with a blank after commas and colons, and without `.0` after whole numbers.
struct Spaced;

impl Spaced {
    fn comma<W: ?Sized + Write>(out: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { out.write_all(b", ") }
    }
}

impl Formatter for Spaced {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        write!(out, "{number}")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        Self::comma(out, first)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        Self::comma(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests;
