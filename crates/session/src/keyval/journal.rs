//! The journal of a state file: changes that the file does not have yet, so that a change of a
//! large table does not write all of it.
//!
//! ```text
//! {"of": {"bytes": 91402, "hash": "85944171f73967e8"}}
//! [{"192.0.2.7": "1"}, {"198.51.100.0/24": null}]
//! [{"192.0.2.8": {"value": "1", "expires_at": 1795722245000}}]
//! ```
//!
//! The first line says which state file it continues: that of another one is ignored, because a
//! state file that is written whole has all changes. Each further line has the changes that were
//! written together, in their order. A crash can damage only the last line, which nobody was told
//! of.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wire::json::{self, JsonMember, JsonValue, write_text};

use super::change::{KeyvalOperation, KeyvalPair};
use super::state::{self, KeyvalNow, KeyvalStateError, STATE_LIMITS};
use super::table::KeyvalTable;

/// What distinguishes the text of a state file from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateMark {
    pub bytes: u64,
    hash: u64,
}

/// The name of the journal of a state file.
pub fn journal_path(state: &Path) -> PathBuf {
    let mut name: OsString = state.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

impl StateMark {
    /// The mark of a text (FNV-1a with 64 bits).
    pub fn of(text: &[u8]) -> Self {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self { bytes: text.len() as u64, hash: text.iter().fold(0xcbf2_9ce4_8422_2325, add) }
    }

    /// The first line of the journal of that state file.
    pub fn journal_head(self) -> Vec<u8> {
        let Self { bytes, hash } = self;
        format!("{{\"of\": {{\"bytes\": {bytes}, \"hash\": \"{hash:016x}\"}}}}\n").into_bytes()
    }
}

/// The line with these changes. `None`: they concern the whole table, and no line can say them.
pub fn journal_line<'o>(
    operations: impl IntoIterator<Item = &'o KeyvalOperation>,
    now: KeyvalNow,
) -> Option<Vec<u8>> {
    let mut out = b"[".to_vec();
    for operation in operations {
        let (put, removed): (&[KeyvalPair], &[Box<[u8]>]) = match operation {
            KeyvalOperation::Put(pairs) => (pairs, &[]),
            KeyvalOperation::Remove(key) => (&[], std::slice::from_ref(key)),
            KeyvalOperation::Merge { put, removed } => (put, removed),
            KeyvalOperation::Clear | KeyvalOperation::Replace(_) => return None,
        };
        for KeyvalPair { key, value, deadline_ms } in put {
            out.extend_from_slice(if out.len() == 1 { b"{" } else { b", {" });
            state::write_entry(key, value, *deadline_ms, now, &mut out);
            out.push(b'}');
        }
        for key in removed {
            out.extend_from_slice(if out.len() == 1 { b"{" } else { b", {" });
            write_text(key, &mut out);
            out.extend_from_slice(b": null}");
        }
    }
    out.extend_from_slice(b"]\n");
    Some(out)
}

/// Makes the changes of a journal in the table of a state file. Returns false, and changes nothing,
/// if it is the journal of another file.
pub fn read_journal(
    text: &[u8],
    of: StateMark,
    table: &mut KeyvalTable,
    now: KeyvalNow,
) -> Result<bool, KeyvalStateError> {
    let Some(lines) = text.strip_prefix(&of.journal_head()[..]) else { return Ok(false) };
    let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    for (number, line) in lines.iter().enumerate() {
        let mut next = table.clone();
        match read_line(line, &mut next, now) {
            Ok(()) => *table = next,
            // It was not written to its end.
            Err(_) if number + 1 == lines.len() => {}
            Err(message) => return Err(KeyvalStateError { message, line: number + 2 }),
        }
    }
    Ok(true)
}

fn read_line(line: &[u8], table: &mut KeyvalTable, now: KeyvalNow) -> Result<(), String> {
    let line = line.strip_suffix(b"\n").ok_or("the line has no end")?;
    let value = json::parse(line, STATE_LIMITS).map_err(|error| error.problem.to_string())?;
    let JsonValue::List(changes) = value else {
        return Err(format!("{} in place of a list", value.kind()));
    };
    for change in &changes {
        let JsonValue::Object(change) = change else {
            return Err(format!("{} in place of an object", change.kind()));
        };
        change.iter().try_for_each(|member| read_change(member, table, now))?;
    }
    Ok(())
}

fn read_change(
    member: &JsonMember<'_>,
    table: &mut KeyvalTable,
    now: KeyvalNow,
) -> Result<(), String> {
    let key = member.name.as_bytes();
    if matches!(member.value, JsonValue::Null) {
        table.remove(key);
        return Ok(());
    }
    match state::read_pair(member, now)? {
        Some(pair) => table.put(&pair, now.monotonic_ms).map_err(|refused| refused.text),
        // It has ended, and so has what it replaced.
        None => {
            table.remove(key);
            Ok(())
        }
    }
}
