//! DER: elements of a tag, a length and contents.
//!
//! Only the subset that certificates and keys need: tags of one byte, definite lengths.

pub mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OBJECT_IDENTIFIER: u8 = 0x06;
    pub const ENUMERATED: u8 = 0x0a;
    pub const UTF8_STRING: u8 = 0x0c;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    /// A context-specific tag, constructed.
    pub const fn constructed(number: u8) -> u8 {
        0xa0 | number
    }
    /// A context-specific tag, primitive.
    pub const fn primitive(number: u8) -> u8 {
        0x80 | number
    }
}

/// The bytes are not DER, or not the expected elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidDer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    pub tag: u8,
    pub contents: &'a [u8],
    /// Tag, length and contents.
    pub whole: &'a [u8],
}

/// Reads consecutive elements.
#[derive(Clone, Copy, Debug)]
pub struct DerReader<'a> {
    rest: &'a [u8],
}

impl<'a> DerReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads the elements of a sequence. Nothing may follow the sequence.
    pub fn sequence(bytes: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut reader = Self::new(bytes);
        let inside = reader.inside(tag::SEQUENCE)?;
        reader.end()?;
        Ok(inside)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn next_tag(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element, with any tag.
    pub fn any(&mut self) -> Result<Element<'a>, InvalidDer> {
        let [tag, first, ..] = *self.rest else { return Err(InvalidDer) };
        if tag & 0x1f == 0x1f {
            return Err(InvalidDer);
        }
        let (length, head) = match first {
            0..=0x7f => (usize::from(first), 2),
            0x81..=0x84 => {
                let count = usize::from(first - 0x80);
                let bytes = self.rest.get(2..2 + count).ok_or(InvalidDer)?;
                (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), 2 + count)
            }
            _ => return Err(InvalidDer),
        };
        let end = head.checked_add(length).ok_or(InvalidDer)?;
        let whole = self.rest.get(..end).ok_or(InvalidDer)?;
        self.rest = &self.rest[end..];
        Ok(Element { tag, contents: &whole[head..], whole })
    }

    /// The next element, which must have this tag.
    pub fn element(&mut self, tag: u8) -> Result<Element<'a>, InvalidDer> {
        self.optional(tag)?.ok_or(InvalidDer)
    }

    /// The contents of the next element, which must have this tag.
    pub fn contents(&mut self, tag: u8) -> Result<&'a [u8], InvalidDer> {
        Ok(self.element(tag)?.contents)
    }

    /// The elements inside the next one, which must have this tag.
    pub fn inside(&mut self, tag: u8) -> Result<Self, InvalidDer> {
        Ok(Self::new(self.contents(tag)?))
    }

    /// The next element, if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>, InvalidDer> {
        if self.next_tag() == Some(tag) { self.any().map(Some) } else { Ok(None) }
    }

    /// The bytes of a bit string without unused bits.
    pub fn bit_string(&mut self) -> Result<&'a [u8], InvalidDer> {
        match self.contents(tag::BIT_STRING)? {
            [0, bytes @ ..] => Ok(bytes),
            _ => Err(InvalidDer),
        }
    }

    /// A non-negative integer that fits into 32 bits.
    pub fn number(&mut self) -> Result<u32, InvalidDer> {
        let bytes = match self.contents(tag::INTEGER)? {
            [] => return Err(InvalidDer),
            [0, bytes @ ..] => bytes,
            [first, ..] if *first >= 0x80 => return Err(InvalidDer),
            bytes => bytes,
        };
        if bytes.len() > 4 {
            return Err(InvalidDer);
        }
        Ok(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    /// Fails if elements are left.
    pub fn end(&self) -> Result<(), InvalidDer> {
        if self.is_empty() { Ok(()) } else { Err(InvalidDer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_nested() {
        let mut reader = DerReader::new(&[0x30, 6, 2, 1, 5, 4, 1, 0xff, 5, 0]);
        let mut inside = reader.inside(tag::SEQUENCE).expect("a sequence");
        assert_eq!(inside.number(), Ok(5));
        assert_eq!(inside.optional(tag::NULL), Ok(None));
        assert_eq!(inside.contents(tag::OCTET_STRING), Ok(&[0xff][..]));
        assert_eq!((inside.end(), reader.end()), (Ok(()), Err(InvalidDer)));
        assert_eq!(reader.any().map(|element| element.tag), Ok(tag::NULL));
    }

    #[test]
    fn lengths_take_up_to_four_bytes() {
        let mut long = [0; 300];
        long[..4].copy_from_slice(&[4, 0x82, 1, 0x28]);
        let contents = DerReader::new(&long).contents(tag::OCTET_STRING);
        assert_eq!(contents.map(<[u8]>::len), Ok(296));
        for broken in [&[4][..], &[4, 2, 0], &[4, 0x80], &[4, 0x85, 0, 0, 0, 0, 0], &[0x1f, 1, 0]] {
            assert_eq!(DerReader::new(broken).any(), Err(InvalidDer), "{broken:?}");
        }
    }

    #[test]
    fn numbers_are_small_and_not_negative() {
        assert_eq!(DerReader::new(&[2, 5, 0, 0xff, 0xff, 0xff, 0xff]).number(), Ok(u32::MAX));
        assert_eq!(DerReader::new(&[2, 1, 0x80]).number(), Err(InvalidDer));
        assert_eq!(DerReader::new(&[2, 5, 1, 0, 0, 0, 0]).number(), Err(InvalidDer));
    }
}
