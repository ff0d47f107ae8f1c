//! SCGI: variables in a netstring, then the body. A reply has CGI's form, and ends with the
//! connection.

use alloc::format;
use alloc::vec::Vec;

use crate::cgi::{InvalidVariable, Pairs};

/// A variable is its name and its value, each followed by a zero byte.
#[derive(Clone, Copy, Debug)]
pub struct ZeroPairs;

impl Pairs for ZeroPairs {
    fn open(name: &[u8], out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(name);
        out.push(0);
        out.len()
    }

    fn close(_: usize, value: usize, out: &mut Vec<u8>) -> Result<(), InvalidVariable> {
        // A zero byte would end the value, and the rest would be a variable of its own.
        if memchr::memchr(0, &out[value..]).is_some() {
            return Err(InvalidVariable);
        }
        out.push(0);
        Ok(())
    }
}

/// Turns the variables, which begin at `start` of `out`, into a netstring. The caller must write
/// `CONTENT_LENGTH` first.
pub fn end_variables(start: usize, out: &mut Vec<u8>) {
    let length = out.len() - start;
    out.splice(start..start, format!("{length}:").into_bytes());
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgi;

    #[test]
    fn a_request() {
        let mut out = b"before ".to_vec();
        let start = out.len();
        cgi::write::<ZeroPairs>(b"CONTENT_LENGTH", b"27", &mut out).unwrap();
        cgi::write::<ZeroPairs>(b"SCGI", b"1", &mut out).unwrap();
        cgi::write::<ZeroPairs>(b"EMPTY", b"", &mut out).unwrap();
        end_variables(start, &mut out);
        assert_eq!(out, b"before 32:CONTENT_LENGTH\x0027\0SCGI\x001\0EMPTY\0\0,");
        assert_eq!(cgi::write::<ZeroPairs>(b"A", b"a\0B\0b", &mut out), Err(InvalidVariable));
    }
}
