//! The records of a request: BEGIN_REQUEST, PARAMS, and what frames a body as STDIN.
//!
//! A record's data is padded to a multiple of eight bytes, as nginx does it and as the
//! specification recommends.

use alloc::vec::Vec;

use super::{BEGIN_REQUEST, PARAMS, RECORD_HEAD_BYTES, REQUEST_ID, STDIN, VERSION};
use crate::cgi::{InvalidVariable, Pairs};

/// Bytes of a record's data at most: its length has 16 bits.
pub const RECORD_BYTES_MAX: usize = 65_535;

/// Bytes of a body that nginx puts into one record.
pub const STDIN_BYTES_MAX: usize = 32 * 1024;

/// What ends a body, or stands for one that is empty.
pub const STDIN_END: [u8; RECORD_HEAD_BYTES] = record_head(STDIN, 0);

/// Variables that do not fit into one record. nginx writes no second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig(pub usize);

/// A request being written.
#[derive(Debug)]
pub struct FastcgiRequest {
    /// Where the variables begin.
    params: usize,
}

impl FastcgiRequest {
    /// Writes what comes before the variables. `keep_conn`: the application leaves the connection
    /// open when it has answered.
    pub fn begin(keep_conn: bool, out: &mut Vec<u8>) -> Self {
        const RESPONDER: u8 = 1;
        out.extend_from_slice(&record_head(BEGIN_REQUEST, 8));
        out.extend_from_slice(&[0, RESPONDER, u8::from(keep_conn), 0, 0, 0, 0, 0]);
        out.extend_from_slice(&record_head(PARAMS, 0));
        Self { params: out.len() }
    }

    /// The variables have been written: completes their record.
    pub fn end_params(self, out: &mut Vec<u8>) -> Result<(), TooBig> {
        let length = out.len() - self.params;
        if length > RECORD_BYTES_MAX {
            return Err(TooBig(length));
        }
        let start = self.params - RECORD_HEAD_BYTES;
        out[start..self.params].copy_from_slice(&record_head(PARAMS, length as u16));
        out.extend_from_slice(padding(length));
        // nginx writes this also where there are no variables, and the record above is one already.
        out.extend_from_slice(&record_head(PARAMS, 0));
        Ok(())
    }
}

/// What comes before so many bytes of a body, at most [`RECORD_BYTES_MAX`].
pub fn stdin_head(length: usize) -> [u8; RECORD_HEAD_BYTES] {
    debug_assert!(length <= RECORD_BYTES_MAX);
    record_head(STDIN, length as u16)
}

/// What comes after the data of a record of that length.
pub fn padding(length: usize) -> &'static [u8] {
    &[0; 7][..length.wrapping_neg() % 8]
}

const fn record_head(kind: u8, length: u16) -> [u8; RECORD_HEAD_BYTES] {
    let [high, low] = length.to_be_bytes();
    let padding = (length as usize).wrapping_neg() % 8;
    [VERSION, kind, 0, REQUEST_ID, high, low, padding as u8, 0]
}

/// Both lengths, each in one byte or in four, then name and value.
#[derive(Clone, Copy, Debug)]
pub struct LengthPairs;

/// Lengths above this take four bytes.
const SHORT_MAX: usize = 127;

impl Pairs for LengthPairs {
    fn open(name: &[u8], out: &mut Vec<u8>) -> usize {
        match name.len() {
            length @ 0..=SHORT_MAX => out.push(length as u8),
            length => out.extend_from_slice(&long(length)),
        }
        // Made longer where the value turns out long.
        out.push(0);
        out.extend_from_slice(name);
        out.len()
    }

    fn close(name: usize, value: usize, out: &mut Vec<u8>) -> Result<(), InvalidVariable> {
        let (at, length) = (value - name - 1, out.len() - value);
        match length {
            0..=SHORT_MAX => out[at] = length as u8,
            _ if length > MAX => return Err(InvalidVariable),
            _ => drop(out.splice(at..=at, long(length))),
        }
        Ok(())
    }
}

/// The longest name or value that 31 bits can tell.
const MAX: usize = i32::MAX as usize;

fn long(length: usize) -> [u8; 4] {
    (length as u32 | 1 << 31).to_be_bytes()
}
