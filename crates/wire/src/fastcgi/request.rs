//! The records of a request: BEGIN_REQUEST, PARAMS, and the heads of STDIN records for a body.
//!
//! A record's data is padded to a multiple of eight bytes, as in nginx and as the specification
//! recommends.

use alloc::vec::Vec;

use super::{BEGIN_REQUEST, PARAMS, RECORD_HEAD_BYTES, REQUEST_ID, STDIN, VERSION};
use crate::cgi::{InvalidVariable, Pairs};

/// The most bytes of a record's data: the length has 16 bits.
pub const RECORD_BYTES_MAX: usize = 65_535;

/// The most bytes of a body that nginx puts into one record.
pub const STDIN_BYTES_MAX: usize = 32 * 1024;

/// The record that ends a body; an empty body consists of it alone.
pub const STDIN_END: [u8; RECORD_HEAD_BYTES] = record_head(STDIN, 0);

/// The variables do not fit into one record, and nginx writes only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig(pub usize);

/// A request being written.
#[derive(Debug)]
pub struct FastcgiRequest {
    /// The offset of the variables.
    params: usize,
}

impl FastcgiRequest {
    /// Writes the records before the variables. `keep_conn`: the application leaves the connection
    /// open after its reply.
    pub fn begin(keep_conn: bool, out: &mut Vec<u8>) -> Self {
        const RESPONDER: u8 = 1;
        out.extend_from_slice(&record_head(BEGIN_REQUEST, 8));
        out.extend_from_slice(&[0, RESPONDER, u8::from(keep_conn), 0, 0, 0, 0, 0]);
        out.extend_from_slice(&record_head(PARAMS, 0));
        Self { params: out.len() }
    }

    /// Completes the record of the variables.
    pub fn end_params(self, out: &mut Vec<u8>) -> Result<(), TooBig> {
        let length = out.len() - self.params;
        if length > RECORD_BYTES_MAX {
            return Err(TooBig(length));
        }
        let start = self.params - RECORD_HEAD_BYTES;
        out[start..self.params].copy_from_slice(&record_head(PARAMS, length as u16));
        out.extend_from_slice(padding(length));
        // As in nginx, it is written even without variables, when the record above is already
        // empty.
        out.extend_from_slice(&record_head(PARAMS, 0));
        Ok(())
    }
}

/// The record head before `length` bytes of a body, at most [`RECORD_BYTES_MAX`].
pub fn stdin_head(length: usize) -> [u8; RECORD_HEAD_BYTES] {
    debug_assert!(length <= RECORD_BYTES_MAX);
    record_head(STDIN, length as u16)
}

/// The padding after `length` bytes of data.
pub fn padding(length: usize) -> &'static [u8] {
    &[0; 7][..length.wrapping_neg() % 8]
}

const fn record_head(kind: u8, length: u16) -> [u8; RECORD_HEAD_BYTES] {
    let [high, low] = length.to_be_bytes();
    let padding = (length as usize).wrapping_neg() % 8;
    [VERSION, kind, 0, REQUEST_ID, high, low, padding as u8, 0]
}

/// A variable is two lengths, each of one byte or four, then its name and value.
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
        // `close` extends it if the value is long.
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

/// The longest name or value: a length has 31 bits.
const MAX: usize = i32::MAX as usize;

fn long(length: usize) -> [u8; 4] {
    (length as u32 | 1 << 31).to_be_bytes()
}
