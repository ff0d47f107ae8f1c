//! Protocol Buffers on the wire: the fields of a message, one after another, and how to write them.
//!
//! Deliberately absent: what the fields of any message mean, and groups, which no proto3 message
//! has.

use alloc::vec::Vec;

/// A message that is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMessage;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProtobufFieldValue<'a> {
    /// A number, a flag or an enumerated value.
    Varint(u64),
    Fixed64(u64),
    /// A text, bytes, a message, or numbers in a row.
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of a message: their numbers and values. After an error it ends.
#[derive(Clone, Debug)]
pub struct ProtobufFields<'a>(&'a [u8]);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// The highest number of a field.
const NUMBER_MAX: u64 = (1 << 29) - 1;

impl<'a> ProtobufFields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn read(&mut self) -> Result<(u32, ProtobufFieldValue<'a>), InvalidMessage> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| InvalidMessage)?;
        if number == 0 || u64::from(number) > NUMBER_MAX {
            return Err(InvalidMessage);
        }
        let value = match tag & 7 {
            VARINT => ProtobufFieldValue::Varint(self.varint()?),
            FIXED64 => ProtobufFieldValue::Fixed64(u64::from_le_bytes(self.array()?)),
            BYTES => {
                let length = usize::try_from(self.varint()?).map_err(|_| InvalidMessage)?;
                ProtobufFieldValue::Bytes(self.bytes(length)?)
            }
            FIXED32 => ProtobufFieldValue::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(InvalidMessage),
        };
        Ok((number, value))
    }

    /// Takes a number of up to 64 bits, 7 in each byte.
    fn varint(&mut self) -> Result<u64, InvalidMessage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(InvalidMessage)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(InvalidMessage)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], InvalidMessage> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(InvalidMessage)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidMessage> {
        self.bytes(N)?.try_into().map_err(|_| InvalidMessage)
    }
}

impl<'a> Iterator for ProtobufFields<'a> {
    type Item = Result<(u32, ProtobufFieldValue<'a>), InvalidMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        Some(read)
    }
}

impl<'a> ProtobufFieldValue<'a> {
    pub fn number(self) -> Result<u64, InvalidMessage> {
        if let Self::Varint(number) = self { Ok(number) } else { Err(InvalidMessage) }
    }

    pub fn bytes(self) -> Result<&'a [u8], InvalidMessage> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(InvalidMessage) }
    }

    pub fn text(self) -> Result<&'a str, InvalidMessage> {
        str::from_utf8(self.bytes()?).map_err(|_| InvalidMessage)
    }
}

/// Writes a number, also where it is 0.
pub fn write_number(number: u32, value: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | VARINT, out);
    write_varint(value, out);
}

/// Writes a number of 8 bytes, such as that of a `double`.
pub fn write_fixed64(number: u32, value: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a text or a message, also where it is empty.
pub fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | BYTES, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a message that a function writes.
pub fn write_message(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    write(&mut message);
    write_bytes(number, &message, out);
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Result<Vec<(u32, ProtobufFieldValue<'_>)>, InvalidMessage> {
        ProtobufFields::new(message).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        write_number(1, 300, &mut out);
        write_fixed64(2, 1.5_f64.to_bits(), &mut out);
        write_message(500, &mut out, |out| write_bytes(1, b"ab", out));
        write_number(3, u64::MAX, &mut out);
        let expected = [
            (1, ProtobufFieldValue::Varint(300)),
            (2, ProtobufFieldValue::Fixed64(1.5_f64.to_bits())),
            (500, ProtobufFieldValue::Bytes(b"\x0a\x02ab")),
            (3, ProtobufFieldValue::Varint(u64::MAX)),
        ];
        assert_eq!(read(&out).unwrap(), expected);
        assert_eq!(read(b"\x1d\x01\0\0\0"), Ok([(3, ProtobufFieldValue::Fixed32(1))].into()));
        assert_eq!(read(b""), Ok(Vec::new()));
        assert_eq!(ProtobufFieldValue::Bytes(b"\xff").text(), Err(InvalidMessage));
        assert_eq!(ProtobufFieldValue::Fixed32(1).number(), Err(InvalidMessage));
    }

    #[test]
    fn broken_messages_are_refused_and_end() {
        for wrong in [
            &b"\x08"[..],                                        // a number is missing
            b"\x08\x80",                                         // and its end
            b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", // longer than 64 bits
            b"\x0a\x02a",                                        // a text that is cut
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",     // a length beyond all memory
            b"\x09\0",                                           // 8 bytes that are cut
            b"\x0b",                                             // a group
            b"\0\0",                                             // field 0
            b"\x80\x80\x80\x80\x80\x80\x01\0",                   // field 2^39
        ] {
            assert_eq!(read(wrong), Err(InvalidMessage), "{wrong:?}");
            assert_eq!(ProtobufFields::new(wrong).count(), 1, "{wrong:?}");
        }
    }
}
