//! Writes DER: the counterpart of [`crate::der`].

use alloc::vec::Vec;

use crate::date::Civil;
use crate::der::tag;

/// Writes consecutive elements.
#[derive(Debug, Default)]
pub struct DerWriter {
    out: Vec<u8>,
}

impl DerWriter {
    /// The elements inside one sequence.
    pub fn sequence(write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self::default();
        writer.nested(tag::SEQUENCE, write);
        writer.finish()
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    pub fn element(&mut self, tag: u8, contents: &[u8]) {
        self.out.push(tag);
        let length = contents.len();
        if length < 0x80 {
            self.out.push(length as u8);
        } else {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            self.out.push(0x80 | (bytes.len() - zeros) as u8);
            self.out.extend_from_slice(&bytes[zeros..]);
        }
        self.out.extend_from_slice(contents);
    }

    /// An element with elements inside.
    pub fn nested(&mut self, tag: u8, write: impl FnOnce(&mut Self)) {
        let mut inside = Self::default();
        write(&mut inside);
        self.element(tag, &inside.out);
    }

    /// Elements that are DER already.
    pub fn whole(&mut self, der: &[u8]) {
        self.out.extend_from_slice(der);
    }

    /// A non-negative integer from its bytes, the highest first.
    pub fn integer(&mut self, bytes: &[u8]) {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let digits = &bytes[zeros..];
        if digits.first().is_none_or(|first| *first >= 0x80) {
            self.element(tag::INTEGER, &[&[0], digits].concat());
        } else {
            self.element(tag::INTEGER, digits);
        }
    }

    /// A bit string without unused bits.
    pub fn bit_string(&mut self, bits: &[u8]) {
        self.element(tag::BIT_STRING, &[&[0], bits].concat());
    }

    pub fn object_identifier(&mut self, oid: &[u8]) {
        self.element(tag::OBJECT_IDENTIFIER, oid);
    }

    /// A time in seconds since 1970, as RFC 5280, section 4.1.2.5 requires it.
    pub fn time(&mut self, seconds: i64) {
        let time = Civil::of(seconds);
        let parts = [time.month, time.day, time.hour, time.minute, time.second];
        let (tag, mut text) = match time.year {
            1950..2050 => (tag::UTC_TIME, two_digits(time.year % 100).to_vec()),
            year => {
                (tag::GENERALIZED_TIME, [two_digits(year / 100), two_digits(year % 100)].concat())
            }
        };
        parts.iter().for_each(|part| text.extend_from_slice(&two_digits(*part)));
        text.push(b'Z');
        self.element(tag, &text);
    }
}

fn two_digits(number: u32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::der::DerReader;
    use crate::x509::CertificateTime;

    #[test]
    fn written_elements_are_read() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000] {
            let contents = vec![7; length];
            let der = DerWriter::sequence(|inside| inside.element(tag::OCTET_STRING, &contents));
            let mut inside = DerReader::sequence(&der).expect("a sequence");
            assert_eq!(inside.contents(tag::OCTET_STRING), Ok(&contents[..]), "{length}");
        }
    }

    #[test]
    fn integers_are_short_and_not_negative() {
        for (bytes, der) in [
            (&[][..], &[2, 1, 0][..]),
            (&[0, 0], &[2, 1, 0]),
            (&[0, 0x7f], &[2, 1, 0x7f]),
            (&[0x80], &[2, 2, 0, 0x80]),
        ] {
            let mut writer = DerWriter::default();
            writer.integer(bytes);
            assert_eq!(writer.finish(), der);
        }
    }

    #[test]
    fn times_change_their_form_in_2050() {
        for (seconds, form) in [(0, tag::UTC_TIME), (2_524_608_000, tag::GENERALIZED_TIME)] {
            for seconds in [seconds, seconds + 86_399] {
                let mut writer = DerWriter::default();
                writer.time(seconds);
                let der = writer.finish();
                let element = DerReader::new(&der).any().expect("an element");
                assert_eq!(element.tag, form);
                let read = CertificateTime::read(element).expect("a time");
                assert_eq!(read.seconds(), seconds);
            }
        }
    }
}
