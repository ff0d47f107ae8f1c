//! uwsgi: four bytes, variables with their lengths, then the body. A reply is HTTP's or CGI's.

use alloc::vec::Vec;

use crate::cgi::{InvalidVariable, Pairs};

/// Bytes before the variables: modifier 1, their length, modifier 2.
pub const HEAD_BYTES: usize = 4;

/// A variable is its name and its value, each after its length in 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct SizedPairs;

impl Pairs for SizedPairs {
    fn open(name: &[u8], out: &mut Vec<u8>) -> usize {
        // A longer name makes all variables too big, which `end_variables` reports.
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(&[0, 0]);
        out.len()
    }

    fn close(_: usize, value: usize, out: &mut Vec<u8>) -> Result<(), InvalidVariable> {
        let length = u16::try_from(out.len() - value).map_err(|_| InvalidVariable)?;
        out[value - 2..value].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

/// Variables whose length does not fit into 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge(pub usize);

/// A request being written.
#[derive(Debug)]
pub struct UwsgiRequest {
    start: usize,
}

impl UwsgiRequest {
    /// Reserves space for the bytes before the variables.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        Self { start }
    }

    /// Completes the bytes before the variables.
    pub fn end_variables(self, modifiers: (u8, u8), out: &mut [u8]) -> Result<(), TooLarge> {
        let length = out.len() - self.start - HEAD_BYTES;
        let [low, high] = u16::try_from(length).map_err(|_| TooLarge(length))?.to_le_bytes();
        let head = [modifiers.0, low, high, modifiers.1];
        out[self.start..self.start + HEAD_BYTES].copy_from_slice(&head);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::cgi;

    #[test]
    fn a_request() {
        let mut out = b"-".to_vec();
        let request = UwsgiRequest::begin(&mut out);
        cgi::write::<SizedPairs>(b"A", b"bc", &mut out).unwrap();
        cgi::write::<SizedPairs>(b"EMPTY", &[], &mut out).unwrap();
        request.end_variables((5, 1), &mut out).unwrap();
        assert_eq!(out, b"-\x05\x10\0\x01\x01\0A\x02\0bc\x05\0EMPTY\0\0");
    }

    #[test]
    fn sizes_have_16_bits() {
        let (mut out, most) = (Vec::new(), vec![b'a'; 65_535 - 5]);
        let request = UwsgiRequest::begin(&mut out);
        cgi::write::<SizedPairs>(b"A", &most, &mut out).unwrap();
        request.end_variables((0, 0), &mut out).unwrap();
        assert_eq!(out[..9], *b"\0\xff\xff\0\x01\0A\xfa\xff");
        let mut out = Vec::new();
        let request = UwsgiRequest::begin(&mut out);
        cgi::write::<SizedPairs>(b"AB", &most, &mut out).unwrap();
        assert_eq!(request.end_variables((0, 0), &mut out), Err(TooLarge(65_536)));
        let long = vec![0; 65_536];
        assert_eq!(cgi::write::<SizedPairs>(b"A", &long, &mut out), Err(InvalidVariable));
    }
}
