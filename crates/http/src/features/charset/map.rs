//! `charset_map`: the charsets of the configuration, and the tables between them.

use std::sync::Arc;

use conf::{Directive, Load, Result, Word};

use super::utf8::{self, Decoded};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharsetId(usize);

/// All charsets and maps.
#[derive(Clone, Default)]
pub(super) struct Charsets {
    names: Vec<Box<[u8]>>,
    maps: Vec<CharsetMap>,
}

#[derive(Clone)]
struct CharsetMap {
    source: CharsetId,
    target: CharsetId,
    forward: Recoding,
    backward: Recoding,
}

/// The conversion from one charset to another.
#[derive(Clone)]
pub(super) enum Recoding {
    /// Byte by byte.
    Bytes(Arc<[u8; 256]>),
    ToUtf8(Arc<[Sequence; 256]>),
    FromUtf8(Arc<Pages>),
}

/// The bytes of characters up to U+FFFF, by high byte and then by low byte; 0 if the charset lacks
/// the character.
pub(super) type Pages = [Option<Box<[u8; 256]>>; 256];

/// A character in UTF-8, of at most three bytes.
#[derive(Clone, Copy)]
pub(super) struct Sequence {
    bytes: [u8; 3],
    len: u8,
}

impl Sequence {
    fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 3];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { bytes, len: text.len() as u8 })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Recoding {
    pub(super) fn changes_length(&self) -> bool {
        !matches!(self, Self::Bytes(_))
    }
}

impl Charsets {
    /// The charsets that were declared so far, to add to.
    pub(super) fn of<'l>(load: &'l mut Load<'_>) -> &'l mut Self {
        Arc::make_mut(load.registry.of::<Arc<Self>>())
    }

    /// All charsets, after the whole configuration was read.
    pub(super) fn shared(load: &mut Load<'_>) -> Arc<Self> {
        load.registry.of::<Arc<Self>>().clone()
    }

    pub(super) fn add(&mut self, name: &[u8]) -> CharsetId {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.into());
            CharsetId(self.names.len() - 1)
        })
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<CharsetId> {
        self.names.iter().position(|own| own.eq_ignore_ascii_case(name)).map(CharsetId)
    }

    pub(super) fn name(&self, id: CharsetId) -> &[u8] {
        &self.names[id.0]
    }

    /// The conversion between two charsets, by a map in either direction.
    pub(super) fn recoding(&self, from: CharsetId, to: CharsetId) -> Option<&Recoding> {
        self.maps.iter().rev().find_map(|map| match (from, to) {
            there if there == (map.source, map.target) => Some(&map.forward),
            back if back == (map.target, map.source) => Some(&map.backward),
            _ => None,
        })
    }
}

/// Reads a `charset_map`.
pub(super) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let charsets = Charsets::of(load);
    let (first, second) = (from.arg(0), from.arg(1));
    let (source, target) = (charsets.add(&first.text), charsets.add(&second.text));
    if source == target {
        return Err(from.error(format!(
            "\"charset_map\" between the same charsets \"{first}\" and \"{second}\""
        )));
    }
    if is_utf8(first) {
        return Err(from
            .error("\"charset_map\" with \"utf-8\" charset should be given in the second column"));
    }
    // nginx compares with the first map only. Of other duplicates, the last one wins.
    if let Some(map) = charsets.maps.first()
        && [(source, target), (target, source)].contains(&(map.source, map.target))
    {
        return Err(
            from.error(format!("duplicate \"charset_map\" between \"{first}\" and \"{second}\""))
        );
    }
    let lines = from.block.as_deref().unwrap_or_default();
    let (forward, backward) = if is_utf8(second) { with_utf8(lines)? } else { bytes(lines)? };
    charsets.maps.push(CharsetMap { source, target, forward, backward });
    Ok(())
}

fn is_utf8(name: &Word) -> bool {
    name.text.eq_ignore_ascii_case(b"utf-8")
}

/// Tables between two charsets of bytes. ASCII stays the same; other unmapped bytes become question
/// marks.
fn bytes(lines: &[Directive]) -> Result<(Recoding, Recoding)> {
    let ascii: [u8; 256] = std::array::from_fn(ascii_or(b'?'));
    let (mut forward, mut backward) = (ascii, ascii);
    for line in lines {
        let (source, word) = entry(line)?;
        let target = hex_byte(&word.text).ok_or_else(|| invalid(word, line))?;
        forward[usize::from(source)] = target;
        backward[usize::from(target)] = source;
    }
    Ok((Recoding::Bytes(Arc::new(forward)), Recoding::Bytes(Arc::new(backward))))
}

fn with_utf8(lines: &[Directive]) -> Result<(Recoding, Recoding)> {
    let single = |byte| Sequence { bytes: [byte, 0, 0], len: 1 };
    let mut forward: [Sequence; 256] = std::array::from_fn(|byte| single(ascii_or(b'?')(byte)));
    let mut backward = [const { None }; 256];
    backward[0] = Some(Box::new(std::array::from_fn(ascii_or(0))));
    for line in lines {
        let (source, word) = entry(line)?;
        let (sequence, character) = utf8_value(&word.text).ok_or_else(|| invalid(word, line))?;
        forward[usize::from(source)] = sequence;
        let page = backward[usize::from(character >> 8)].get_or_insert_with(|| Box::new([0; 256]));
        page[usize::from(character & 0xff)] = source;
    }
    Ok((Recoding::ToUtf8(Arc::new(forward)), Recoding::FromUtf8(Arc::new(backward))))
}

fn ascii_or(other: u8) -> impl Fn(usize) -> u8 {
    move |byte| if byte < 128 { byte as u8 } else { other }
}

/// `A0 B0`: the byte, and the word for its replacement.
fn entry(line: &Directive) -> Result<(u8, &Word)> {
    let [target] = &line.args[..] else { return Err(line.error("invalid parameters number")) };
    if line.block.is_some() {
        return Err(line.error("unexpected \"{\""));
    }
    let source = hex_byte(&line.name.text).ok_or_else(|| invalid(&line.name, line))?;
    Ok((source, target))
}

fn invalid(word: &Word, line: &Directive) -> conf::Error {
    line.error_at(word, format!("invalid value \"{word}\""))
}

fn hex_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let value = text.iter().try_fold(0_u32, |value, byte| {
        Some(value.saturating_mul(16).saturating_add(digit(byte)?))
    })?;
    u8::try_from(value).ok().filter(|_| !text.is_empty())
}

/// Two or three bytes in hexadecimal that encode one character. A single byte is invalid, because
/// ASCII is mapped already.
fn utf8_value(text: &[u8]) -> Option<(Sequence, u16)> {
    let pairs = text.chunks(2).map(|pair| hex_byte(pair).filter(|_| pair.len() == 2));
    let bytes = pairs.collect::<Option<Vec<u8>>>()?;
    let sequence = Sequence::new(&bytes).filter(|_| !bytes.is_empty())?;
    match utf8::decode(&bytes) {
        Decoded::Character(character, _) => Some((sequence, u16::try_from(character).ok()?)),
        Decoded::Invalid(_) | Decoded::Incomplete => None,
    }
}
