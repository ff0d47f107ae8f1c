//! PEM: sections of base64 between lines with labels (RFC 7468), with the headers of OpenSSL's old
//! encrypted keys (RFC 1421).
//!
//! Text outside of sections is for people and skipped.

use alloc::vec::Vec;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemSection<'a> {
    /// For example `CERTIFICATE`.
    pub label: &'a [u8],
    /// Names and values of the headers before the contents.
    pub headers: Vec<(&'a [u8], &'a [u8])>,
    /// The decoded contents.
    pub contents: Vec<u8>,
}

/// Why a section cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemError {
    /// The last line is missing or has another label.
    NoEnd,
    /// The contents are not base64.
    Base64,
}

/// Iterates over the sections; ends after the first error.
#[derive(Clone, Debug)]
pub struct PemSections<'a> {
    rest: &'a [u8],
}

/// The length of a line written by [`encode`].
const LINE_LENGTH: usize = 64;

impl<'a> PemSections<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest);
        let line = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = &self.rest[end.map_or(self.rest.len(), |end| end + 1)..];
        Some(line.trim_ascii_end())
    }

    /// Reads a section after its first line.
    fn section(&mut self, label: &'a [u8]) -> Result<PemSection<'a>, PemError> {
        let mut headers = Vec::new();
        let mut decoder = Base64Decoder::default();
        let mut is_body = false;
        while let Some(line) = self.line() {
            if line.starts_with(b"-----") {
                if marked(line, b"-----END ") != Some(label) {
                    break;
                }
                let contents = decoder.finish().ok_or(PemError::Base64)?;
                return Ok(PemSection { label, headers, contents });
            }
            match memchr::memchr(b':', line) {
                Some(colon) if !is_body => {
                    headers.push((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()));
                }
                _ => {
                    is_body |= !line.is_empty();
                    decoder.push(line).ok_or(PemError::Base64)?;
                }
            }
        }
        Err(PemError::NoEnd)
    }
}

impl<'a> Iterator for PemSections<'a> {
    type Item = Result<PemSection<'a>, PemError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.line()?;
            let Some(label) = marked(line, b"-----BEGIN ") else { continue };
            let section = self.section(label);
            if section.is_err() {
                self.rest = &[];
            }
            return Some(section);
        }
    }
}

/// The label of a first or last line.
fn marked<'a>(line: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(mark)?.strip_suffix(b"-----")
}

/// Appends a section, as OpenSSL writes it.
pub fn encode(label: &str, contents: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for part in ["-----BEGIN ", label, "-----\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for line in contents.chunks(LINE_LENGTH / 4 * 3) {
        for group in line.chunks(3) {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..4 {
                let is_padding = digit > group.len();
                let index = (bits >> (18 - 6 * digit) & 0x3f) as usize;
                out.push(if is_padding { b'=' } else { DIGITS[index] });
            }
        }
        out.push(b'\n');
    }
    for part in ["-----END ", label, "-----\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Base64 that comes in lines.
#[derive(Default)]
struct Base64Decoder {
    bytes: Vec<u8>,
    bits: u32,
    /// Digits so far, padding included.
    digits: usize,
    padding: usize,
}

impl Base64Decoder {
    fn push(&mut self, line: &[u8]) -> Option<()> {
        for byte in line.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if self.padding < 2 => {
                    self.padding += 1;
                    self.digits += 1;
                    continue;
                }
                _ => return None,
            };
            if self.padding > 0 {
                return None;
            }
            self.bits = self.bits << 6 | u32::from(value);
            self.digits += 1;
            if self.digits.is_multiple_of(4) {
                self.bytes.extend_from_slice(&self.bits.to_be_bytes()[1..]);
                self.bits = 0;
            }
        }
        Some(())
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if !self.digits.is_multiple_of(4) {
            return None;
        }
        match self.padding {
            0 => {}
            1 => self.bytes.extend_from_slice(&((self.bits >> 2) as u16).to_be_bytes()),
            _ => self.bytes.push((self.bits >> 4) as u8),
        }
        Some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &[u8]) -> PemSection<'_> {
        let mut sections = PemSections::new(text);
        let section = sections.next().expect("a section").expect("a good one");
        assert_eq!(sections.next(), None);
        section
    }

    #[test]
    fn encoded_sections_decode() {
        for length in 0..200 {
            let contents: Vec<u8> = (0..length).collect();
            let mut text = b"Subject: somebody\n".to_vec();
            encode("CERTIFICATE", &contents, &mut text);
            let section = only(&text);
            assert_eq!((section.label, section.contents), (&b"CERTIFICATE"[..], contents));
        }
    }

    #[test]
    fn sections_follow_each_other_with_text_between() {
        let text = b"a\r\n-----BEGIN A-----\r\nAA==\r\n-----END A-----\r\n\
                     -----BEGIN B-----\nA A\n AA\n-----END B-----";
        let sections: Result<Vec<_>, _> = PemSections::new(text).collect();
        let sections = sections.expect("two sections");
        assert_eq!(sections[0].contents, [0]);
        assert_eq!((sections[1].label, &sections[1].contents[..]), (&b"B"[..], &[0, 0, 0][..]));
    }

    #[test]
    fn headers_precede_the_contents() {
        let section = only(
            b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
              DEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        );
        assert_eq!(section.headers[0], (&b"Proc-Type"[..], &b"4,ENCRYPTED"[..]));
        assert_eq!(section.headers[1], (&b"DEK-Info"[..], &b"AES-128-CBC,00"[..]));
        assert_eq!(section.contents, [0, 0, 0]);
    }

    #[test]
    fn broken_sections_end_the_file() {
        for (text, error) in [
            (&b"-----BEGIN A-----\nAAAA\n"[..], PemError::NoEnd),
            (b"-----BEGIN A-----\nAAAA\n-----END B-----\n", PemError::NoEnd),
            (b"-----BEGIN A-----\nAAA\n-----END A-----\n", PemError::Base64),
            (b"-----BEGIN A-----\nA=AA\n-----END A-----\n", PemError::Base64),
            (b"-----BEGIN A-----\nAA-A\n-----END A-----\n", PemError::Base64),
            (b"-----BEGIN A-----\nA===\n-----END A-----\n", PemError::Base64),
        ] {
            let mut sections = PemSections::new(text);
            assert_eq!(sections.next(), Some(Err(error)), "{text:?}");
            assert_eq!(sections.next(), None);
        }
    }
}
