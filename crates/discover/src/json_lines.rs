//! A body with one JSON value on each line, which comes piece by piece.

use std::io;
use std::time::Instant;

use serde_json::Value;

use crate::http::HttpBody;

/// The longest line.
const LINE_BYTES_MAX: usize = 64 << 20;

pub struct JsonLines {
    body: HttpBody,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    begin: usize,
}

impl JsonLines {
    pub fn new(body: HttpBody) -> Self {
        Self { body, buffer: Vec::new(), begin: 0 }
    }

    /// The next value; `None`: the body has ended, at the end of a line.
    pub fn next(&mut self, until: Instant) -> io::Result<Option<Value>> {
        let mut searched = self.begin;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + at;
                let line = self.buffer[self.begin..end].trim_ascii();
                let value = (!line.is_empty()).then(|| serde_json::from_slice(line));
                (self.begin, searched) = (end + 1, end + 1);
                match value {
                    Some(value) => return value.map(Some).map_err(io::Error::other),
                    None => continue,
                }
            }
            self.buffer.drain(..self.begin);
            self.begin = 0;
            searched = self.buffer.len();
            if searched > LINE_BYTES_MAX {
                return Err(io::Error::other("a line is too long"));
            }
            if !self.body.read_more(&mut self.buffer, until)? {
                let is_cut = !self.buffer.trim_ascii().is_empty();
                return if is_cut { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
            }
        }
    }
}
