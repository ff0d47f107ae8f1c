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
}

impl JsonLines {
    pub fn new(body: HttpBody) -> Self {
        Self { body, buffer: Vec::new() }
    }

    /// The next value; `None`: the body has ended, at the end of a line.
    pub fn next(&mut self, until: Instant) -> io::Result<Option<Value>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=searched + at).collect();
                searched = 0;
                if !line.trim_ascii().is_empty() {
                    return serde_json::from_slice(&line).map(Some).map_err(io::Error::other);
                }
                continue;
            }
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
