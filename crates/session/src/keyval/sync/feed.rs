//! The stream that tells which records of a table were written.
//!
//! Each node reads it from where it has read before. Its ids are the store's, in the order in which
//! changes came there, so that those of a slow node are not missed. A node that reads too late,
//! when the stream has dropped some, learns that it has missed them.

use wire::resp::{RespCommands, RespReply, RespValue};

use super::super::key::KEY_BYTES_MAX;
use super::super::record::{KeyvalField, KeyvalStamp};

/// The most changes that are read in one exchange.
const CHANGES_MAX: usize = 1024;
const CHANGES_BYTES_MAX: usize = CHANGES_MAX * (KEY_BYTES_MAX + 128);
/// Comes before all ids.
const START: &[u8] = b"0-0";

#[derive(Default)]
pub(super) struct ChangeFeed {
    /// The last id that was read; `None`: the newest one is to be asked for.
    place: Option<Vec<u8>>,
}

/// What a stream tells.
pub(super) enum Fed {
    /// Fields that were written, with their stamps.
    Changes(Vec<(Option<KeyvalStamp>, KeyvalField)>),
    /// It may have dropped changes that were not read.
    Missed,
}

impl ChangeFeed {
    pub(super) fn ask(&self, stream: &[u8], commands: &mut RespCommands) {
        let Some(place) = &self.place else {
            let newest: [&[u8]; 6] = [b"XREVRANGE", stream, b"+", b"-", b"COUNT", b"1"];
            return commands.add_for(CHANGES_BYTES_MAX, &newest);
        };
        let count = CHANGES_MAX.to_string();
        let later: [&[u8]; 6] = [b"XREAD", b"COUNT", count.as_bytes(), b"STREAMS", stream, place];
        commands.add_for(CHANGES_BYTES_MAX, &later);
        let oldest: [&[u8]; 6] = [b"XRANGE", stream, b"-", b"+", b"COUNT", b"1"];
        commands.add_for(CHANGES_BYTES_MAX, &oldest);
    }

    /// Takes the replies to what was asked.
    pub(super) fn take<'r>(
        &mut self,
        replies: &mut impl Iterator<Item = &'r RespReply>,
    ) -> Result<Fed, &'static str> {
        let later = replies.next().ok_or("no changes of a table in its answer")?;
        let Some(place) = &mut self.place else {
            self.place = Some(first_id(later)?.unwrap_or(START).to_vec());
            return Ok(Fed::Changes(Vec::new()));
        };
        let oldest = first_id(replies.next().ok_or("no oldest change in its answer")?)?;
        let has_dropped = oldest.is_some_and(|oldest| id(oldest) > id(place));
        if has_dropped && place != START {
            return Ok(Fed::Missed);
        }
        // The first item is the stream's name.
        let later = later.get(1..).unwrap_or_default();
        let mut changes = Vec::with_capacity(later.len() / 3);
        for change in later.chunks(3) {
            let [RespValue::Text(id), RespValue::Text(stamp), RespValue::Text(field)] = change
            else {
                return Err("no change of a table in its answer");
            };
            place.clone_from(id);
            changes.push((KeyvalStamp::parse(stamp), field[..].into()));
        }
        changes.retain(|(_, field): &(_, KeyvalField)| field.len() <= KEY_BYTES_MAX);
        if id(place).is_none() {
            return Err("no id of a change in its answer");
        }
        Ok(Fed::Changes(changes))
    }

    /// Goes on with the newest change.
    pub(super) fn begin_anew(&mut self) {
        self.place = None;
    }
}

/// The id of the first change in a reply.
fn first_id(reply: &RespReply) -> Result<Option<&[u8]>, &'static str> {
    match reply.first() {
        None | Some(RespValue::Null) => Ok(None),
        Some(RespValue::Text(text)) if id(text).is_some() => Ok(Some(text)),
        Some(_) => Err("no id of a change in its answer"),
    }
}

/// An id: two numbers.
fn id(text: &[u8]) -> Option<(u64, u64)> {
    let (ms, number) = str::from_utf8(text).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, number.parse().ok()?))
}
