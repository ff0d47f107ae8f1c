//! Distinguished names, in nginx's two forms.

use alloc::format;
use alloc::vec::Vec;

use super::attributes::short_name;
use crate::der::{DerReader, Element, InvalidDer, tag};

/// A sequence of sets of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistinguishedName<'a> {
    /// The sequence with its tag, which is compared and hashed.
    pub der: &'a [u8],
    contents: &'a [u8],
}

/// The most attributes of a name.
const ATTRIBUTES_MAX: usize = 200;

/// Tags of strings that have no other use here.
const NUMERIC_STRING: u8 = 18;
const PRINTABLE_STRING: u8 = 19;
const T61_STRING: u8 = 20;
const IA5_STRING: u8 = 22;
const VISIBLE_STRING: u8 = 26;
const UNIVERSAL_STRING: u8 = 28;
const BMP_STRING: u8 = 30;

/// One attribute of a name.
struct NameAttribute<'a> {
    /// The index of its set in the name.
    set: usize,
    oid: &'a [u8],
    value: Element<'a>,
}

impl<'a> DistinguishedName<'a> {
    pub(super) fn new(element: Element<'a>) -> Self {
        Self { der: element.whole, contents: element.contents }
    }

    /// Appends the form of RFC 2253, as OpenSSL's `XN_FLAG_RFC2253` writes it: the last attribute
    /// first. Appends nothing if the name is broken.
    pub fn write_rfc2253(&self, out: &mut Vec<u8>) -> Result<(), InvalidDer> {
        let start = out.len();
        let mut last_set = None;
        for attribute in self.attributes()?.iter().rev() {
            match last_set {
                None => {}
                Some(last_set) if last_set == attribute.set => out.push(b'+'),
                Some(_) => out.push(b','),
            }
            last_set = Some(attribute.set);
            if let Err(invalid) = attribute.write_rfc2253(out) {
                out.truncate(start);
                return Err(invalid);
            }
        }
        Ok(())
    }

    /// Appends the form with slashes, as OpenSSL's `X509_NAME_oneline` writes it.
    pub fn write_legacy(&self, out: &mut Vec<u8>) -> Result<(), InvalidDer> {
        let mut last_set = None;
        for attribute in self.attributes()? {
            out.push(if last_set == Some(attribute.set) { b'+' } else { b'/' });
            last_set = Some(attribute.set);
            attribute.write_type(out)?;
            attribute.write_legacy_value(out);
        }
        Ok(())
    }

    /// The encoded common names.
    pub(super) fn common_names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.common_name_attributes().map(|attribute| attribute.value.contents)
    }

    /// Appends the first common name in UTF-8. Returns `false` without one.
    pub fn write_common_name(&self, out: &mut Vec<u8>) -> bool {
        let first = self.common_name_attributes().next();
        first.is_some_and(|attribute| attribute.write_text(out).unwrap_or(false))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// The common names in UTF-8.
    pub(super) fn common_name_texts(&self) -> Result<Vec<Vec<u8>>, InvalidDer> {
        let texts = self.common_name_attributes().map(|attribute| {
            let mut text = Vec::new();
            if attribute.write_text(&mut text)? { Ok(text) } else { Err(InvalidDer) }
        });
        texts.collect()
    }

    /// The email addresses.
    pub(super) fn mail_addresses(&self) -> Result<Vec<&'a [u8]>, InvalidDer> {
        const MAIL_ADDRESS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];
        let mut addresses = Vec::new();
        for attribute in self.attributes()? {
            match attribute.value.tag {
                _ if attribute.oid != MAIL_ADDRESS => {}
                IA5_STRING => addresses.push(attribute.value.contents),
                _ => return Err(InvalidDer),
            }
        }
        Ok(addresses)
    }

    fn common_name_attributes(&self) -> impl Iterator<Item = NameAttribute<'a>> {
        const COMMON_NAME: &[u8] = &[0x55, 4, 3];
        let attributes = self.attributes().unwrap_or_default().into_iter();
        attributes.filter(|attribute| attribute.oid == COMMON_NAME)
    }

    fn attributes(&self) -> Result<Vec<NameAttribute<'a>>, InvalidDer> {
        let mut attributes = Vec::new();
        let mut sets = DerReader::new(self.contents);
        let mut set = 0;
        while !sets.is_empty() {
            let mut members = sets.inside(tag::SET)?;
            while !members.is_empty() {
                let mut attribute = members.inside(tag::SEQUENCE)?;
                let oid = attribute.contents(tag::OBJECT_IDENTIFIER)?;
                attributes.push(NameAttribute { set, oid, value: attribute.any()? });
                if attributes.len() > ATTRIBUTES_MAX {
                    return Err(InvalidDer);
                }
            }
            set += 1;
        }
        Ok(attributes)
    }
}

/// Whether a name begins with the sets of the base (RFC 5280, section 7.1).
pub(super) fn is_below(name: &[u8], base: &[u8]) -> Result<bool, InvalidDer> {
    let (name, base) = (comparable(name)?, comparable(base)?);
    Ok(name.starts_with(&base))
}

/// The name's sets, each with its attributes sorted, and texts as OpenSSL compares them.
fn comparable(der: &[u8]) -> Result<Vec<Vec<ComparableAttribute<'_>>>, InvalidDer> {
    let mut reader = DerReader::new(der);
    let name = DistinguishedName::new(reader.element(tag::SEQUENCE)?);
    reader.end()?;
    let mut sets: Vec<Vec<_>> = Vec::new();
    for attribute in name.attributes()? {
        if sets.len() <= attribute.set {
            sets.resize_with(attribute.set + 1, Vec::new);
        }
        let value = attribute.comparable_value()?;
        sets[attribute.set].push((attribute.oid, value));
    }
    sets.iter_mut().for_each(|set| set.sort());
    Ok(sets)
}

/// The type and value of an attribute.
type ComparableAttribute<'a> = (&'a [u8], Vec<u8>);

impl NameAttribute<'_> {
    /// A text without its string type, in lower case and with single spaces; other values
    /// unchanged.
    fn comparable_value(&self) -> Result<Vec<u8>, InvalidDer> {
        let is_text =
            !matches!(self.value.tag, NUMERIC_STRING | tag::UTC_TIME | tag::GENERALIZED_TIME);
        let mut text = Vec::new();
        if !is_text || !self.write_text(&mut text)? {
            return Ok(self.value.whole.to_vec());
        }
        let is_space = |byte: &u8| matches!(byte, b' ' | 9..=13);
        let words: Vec<_> = text.split(is_space).filter(|word| !word.is_empty()).collect();
        Ok(words.join(&b' ').to_ascii_lowercase())
    }

    fn write_type(&self, out: &mut Vec<u8>) -> Result<(), InvalidDer> {
        match short_name(self.oid) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => write_oid(self.oid, out)?,
        }
        out.push(b'=');
        Ok(())
    }

    fn write_rfc2253(&self, out: &mut Vec<u8>) -> Result<(), InvalidDer> {
        self.write_type(out)?;
        let mut text = Vec::new();
        if short_name(self.oid).is_some() && self.write_text(&mut text)? {
            write_escaped(&text, out);
        } else {
            out.push(b'#');
            self.value.whole.iter().for_each(|byte| push_hex(*byte, out));
        }
        Ok(())
    }

    /// Appends the value in UTF-8. Returns `false` if it is not text.
    fn write_text(&self, out: &mut Vec<u8>) -> Result<bool, InvalidDer> {
        let bytes = self.value.contents;
        let width = match self.value.tag {
            tag::UTF8_STRING => {
                out.extend_from_slice(bytes);
                return Ok(true);
            }
            NUMERIC_STRING
            | PRINTABLE_STRING
            | T61_STRING
            | IA5_STRING
            | VISIBLE_STRING
            | tag::UTC_TIME
            | tag::GENERALIZED_TIME => 1,
            BMP_STRING => 2,
            UNIVERSAL_STRING => 4,
            _ => return Ok(false),
        };
        if !bytes.len().is_multiple_of(width) {
            return Err(InvalidDer);
        }
        for character in bytes.chunks(width) {
            let code = character.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            push_utf8(code, out)?;
        }
        Ok(true)
    }

    fn write_legacy_value(&self, out: &mut Vec<u8>) {
        for byte in self.value.contents {
            match byte {
                b'/' | b'+' => out.extend_from_slice(&[b'\\', *byte]),
                b' '..=b'~' => out.push(*byte),
                _ => {
                    out.extend_from_slice(b"\\x");
                    push_hex(*byte, out);
                }
            }
        }
    }
}

/// Appends text with RFC 2253's escapes, and with control characters and bytes beyond ASCII
/// escaped.
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in text.iter().enumerate() {
        let is_last = at + 1 == text.len();
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.extend_from_slice(&[b'\\', *byte])
            }
            b' ' if at == 0 || is_last => out.extend_from_slice(b"\\ "),
            b'#' if at == 0 && !is_last => out.extend_from_slice(b"\\#"),
            0..b' ' | 0x7f.. => {
                out.push(b'\\');
                push_hex(*byte, out);
            }
            _ => out.push(*byte),
        }
    }
}

/// Appends a character as OpenSSL does: up to 31 bits, including surrogates.
fn push_utf8(code: u32, out: &mut Vec<u8>) -> Result<(), InvalidDer> {
    let (first, more) = match code {
        0..0x80 => (code, 0),
        0x80..0x800 => (0xc0 | code >> 6, 1),
        0x800..0x1_0000 => (0xe0 | code >> 12, 2),
        0x1_0000..0x11_0000 => (0xf0 | code >> 18, 3),
        _ => return Err(InvalidDer),
    };
    out.push(first as u8);
    out.extend((0..more).rev().map(|at| (0x80 | code >> (6 * at) & 0x3f) as u8));
    Ok(())
}

/// Appends an object identifier as numbers separated by dots.
fn write_oid(oid: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidDer> {
    if oid.last().is_none_or(|byte| *byte >= 0x80) {
        return Err(InvalidDer);
    }
    for (at, number) in oid.split_inclusive(|byte| *byte < 0x80).enumerate() {
        /// The most bytes of a number: 128 bits, as in an identifier made of a UUID.
        const BYTES_MAX: usize = 19;
        if number.len() > BYTES_MAX || number.len() == BYTES_MAX && number[0] > 0x83 {
            return Err(InvalidDer);
        }
        let value = number.iter().fold(0u128, |sum, byte| sum << 7 | u128::from(byte & 0x7f));
        let text = if at == 0 {
            let first = (value / 40).min(2);
            format!("{first}.{}", value - first * 40)
        } else {
            format!(".{value}")
        };
        out.extend_from_slice(text.as_bytes());
    }
    Ok(())
}

pub(super) fn push_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
}
