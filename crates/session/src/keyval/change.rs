//! Changes of tables, as every process makes them, and as bytes between processes.
//!
//! A change says its result, not its reason, so that a process that is a moment ahead or behind
//! ends with the same table: `Put` replaces, and `Remove` of a key that is not there is no error.

use conf::Subsystem;

/// A change of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyvalChange {
    pub subsystem: Subsystem,
    pub zone: Box<[u8]>,
    pub operation: KeyvalOperation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyvalOperation {
    /// Adds entries, or replaces those with the same keys: all of them or, without room, none.
    Put(Vec<KeyvalPair>),
    Remove(Box<[u8]>),
    Clear,
    /// The whole content.
    Replace(Vec<KeyvalPair>),
    /// What other machines have changed: each key is there once.
    Merge {
        put: Vec<KeyvalPair>,
        removed: Vec<Box<[u8]>>,
    },
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyvalPair {
    pub key: Box<[u8]>,
    pub value: Box<[u8]>,
    /// When it is removed, by [`net::clock::monotonic_ms`], which is the same for all processes.
    pub deadline_ms: Option<u64>,
}

const SUBSYSTEMS: [Subsystem; 3] = [Subsystem::Main, Subsystem::Http, Subsystem::Stream];

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const CLEAR: u8 = 2;
const REPLACE: u8 = 3;
const MERGE: u8 = 4;

impl KeyvalChange {
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { subsystem, zone, operation } = self;
        let mut out = Vec::new();
        write_subsystem(*subsystem, &mut out);
        write_text(zone, &mut out);
        let (kind, pairs): (_, &[KeyvalPair]) = match operation {
            KeyvalOperation::Put(pairs) => (PUT, pairs),
            KeyvalOperation::Remove(_) => (REMOVE, &[]),
            KeyvalOperation::Clear => (CLEAR, &[]),
            KeyvalOperation::Replace(pairs) => (REPLACE, pairs),
            KeyvalOperation::Merge { put, .. } => (MERGE, put),
        };
        out.push(kind);
        match operation {
            KeyvalOperation::Remove(key) => write_text(key, &mut out),
            KeyvalOperation::Merge { removed, .. } => {
                out.extend_from_slice(&(removed.len() as u64).to_le_bytes());
                removed.iter().for_each(|key| write_text(key, &mut out));
            }
            _ => {}
        }
        pairs.iter().for_each(|pair| pair.write(&mut out));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let (subsystem, zone) = (read_subsystem(&mut bytes)?, read_text(&mut bytes)?);
        let (kind, mut rest) = bytes.split_first()?;
        let operation = match *kind {
            PUT => KeyvalOperation::Put(read_pairs(&mut rest)?),
            REMOVE => KeyvalOperation::Remove(read_text(&mut rest)?),
            CLEAR => KeyvalOperation::Clear,
            REPLACE => KeyvalOperation::Replace(read_pairs(&mut rest)?),
            MERGE => {
                let (count, after) = rest.split_first_chunk()?;
                rest = after;
                let removed = (0..u64::from_le_bytes(*count)).map(|_| read_text(&mut rest));
                let removed = removed.collect::<Option<_>>()?;
                KeyvalOperation::Merge { put: read_pairs(&mut rest)?, removed }
            }
            _ => return None,
        };
        rest.is_empty().then_some(Self { subsystem, zone, operation })
    }
}

impl KeyvalPair {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { key, value, deadline_ms } = self;
        write_text(key, out);
        write_text(value, out);
        out.push(deadline_ms.is_some().into());
        out.extend_from_slice(&deadline_ms.unwrap_or_default().to_le_bytes());
    }

    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (key, value) = (read_text(bytes)?, read_text(bytes)?);
        let (has_deadline, rest) = bytes.split_first()?;
        let (deadline_ms, rest) = rest.split_first_chunk()?;
        *bytes = rest;
        let deadline_ms = (*has_deadline != 0).then(|| u64::from_le_bytes(*deadline_ms));
        Some(Self { key, value, deadline_ms })
    }
}

/// Reads pairs up to the end.
fn read_pairs(bytes: &mut &[u8]) -> Option<Vec<KeyvalPair>> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        pairs.push(KeyvalPair::read(bytes)?);
    }
    Some(pairs)
}

pub(super) fn write_subsystem(subsystem: Subsystem, out: &mut Vec<u8>) {
    let place = SUBSYSTEMS.iter().position(|own| *own == subsystem);
    out.push(place.expect("all subsystems are listed") as u8);
}

pub(super) fn read_subsystem(bytes: &mut &[u8]) -> Option<Subsystem> {
    let (place, rest) = bytes.split_first()?;
    *bytes = rest;
    SUBSYSTEMS.get(usize::from(*place)).copied()
}

pub(super) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

pub(super) fn read_text(bytes: &mut &[u8]) -> Option<Box<[u8]>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u64::from_le_bytes(*length).try_into().ok()?)?;
    *bytes = rest;
    Some(text.into())
}
