//! The lines of `more_set_headers`, `more_set_input_headers` and their kin.

use std::ops::RangeInclusive;

use conf::{Absent, Directive, Error, Inherited, Load, Result, Template, Value, Word};
use wire::Known;

/// The lines that apply in a block, in the order in which they run: outer blocks first.
#[derive(Clone, Default)]
pub(crate) struct HeaderEdits(Vec<EditLine>);

/// One line: what to change, and on which conditions.
#[derive(Clone, Default)]
pub(crate) struct EditLine {
    /// The statuses that it applies to; none: all.
    statuses: Vec<u16>,
    /// The media types that it applies to; none: all.
    types: Vec<Box<[u8]>>,
    /// Whether fields are added to those of the same name.
    pub(crate) appends: bool,
    /// Whether only fields that are present are replaced.
    pub(crate) replaces_only: bool,
    pub(crate) edits: Vec<FieldEdit>,
}

#[derive(Clone)]
pub(crate) struct FieldEdit {
    pub(crate) name: Box<[u8]>,
    pub(crate) change: FieldChange,
}

#[derive(Clone)]
pub(crate) enum FieldChange {
    /// An empty value removes the field.
    Set(Template),
    Remove,
    /// Removes all fields whose names begin with the name.
    RemovePrefixed,
}

/// Fields that say where a body ends. Weir writes them itself.
pub(crate) fn is_framing(name: &[u8]) -> bool {
    [&b"Content-Length"[..], b"Transfer-Encoding"].iter().any(|n| name.eq_ignore_ascii_case(n))
}

/// Fields of a reply of which there is one at most.
const SINGLE: [&[u8]; 6] =
    [b"Server", b"Date", b"Content-Type", b"Location", b"Last-Modified", b"ETag"];

impl HeaderEdits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &EditLine> {
        self.0.iter()
    }
}

impl Absent for HeaderEdits {
    fn absent() -> Self {
        Self::default()
    }
}

impl Value for HeaderEdits {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Changed;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Ok(Self(vec![EditLine::parse(from, load)?]))
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.0.push(EditLine::parse(from, load)?);
        Ok(())
    }
    fn complete(&mut self, outer: &Self) {
        self.0.splice(0..0, outer.0.iter().cloned());
    }
    fn handed_down(&self) -> Self {
        self.clone()
    }
}

impl EditLine {
    /// Whether the line applies to a message with this status and media type.
    pub(crate) fn applies(&self, status: u16, media_type: &[u8]) -> bool {
        let is_type = |listed: &[u8]| listed.eq_ignore_ascii_case(media_type);
        (self.statuses.is_empty() || self.statuses.contains(&status))
            && (self.types.is_empty() || self.types.iter().any(|listed| is_type(listed)))
    }

    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut line = Self::default();
        let mut words = from.args.iter();
        while let Some(word) = words.next() {
            match &*word.text {
                [b'-', ..] => line.option(word, &mut words, from)?,
                _ => line.edits.push(FieldEdit::parse(word, from, load)?),
            }
        }
        if line.edits.is_empty() {
            return Err(from.error("no field is named"));
        }
        match line.edits.iter().find(|edit| line.appends && edit.is_single()) {
            Some(edit) => Err(from.error(format!(
                "\"{}\" cannot be added with \"-a\": a response has one at most",
                String::from_utf8_lossy(&edit.name)
            ))),
            None => Ok(line),
        }
    }

    /// Reads an option. The module takes lists in one word or in several options.
    fn option<'w>(
        &mut self,
        option: &Word,
        words: &mut impl Iterator<Item = &'w Word>,
        from: &Directive,
    ) -> Result<()> {
        let (of_reply, sets) = (!is_of_request(from), sets(from));
        match &*option.text {
            b"-a" if of_reply && sets => self.appends = true,
            b"-r" if !of_reply && sets => self.replaces_only = true,
            b"-t" => {
                let list = argument(option, words, from)?;
                self.types.extend(items(list).map(Into::into));
            }
            b"-s" if of_reply => {
                let list = argument(option, words, from)?;
                for item in items(list) {
                    self.statuses.push(status(item).ok_or_else(|| bad_status(list, item, from))?);
                }
            }
            _ => {
                let message = format!("invalid option \"{option}\"");
                return Err(from.error_at(option, message));
            }
        }
        Ok(())
    }
}

fn is_of_request(from: &Directive) -> bool {
    from.name.text.ends_with(b"_input_headers")
}

/// Whether the line sets fields; others remove them.
fn sets(from: &Directive) -> bool {
    from.name.text.starts_with(b"more_set_")
}

fn argument<'w>(
    option: &Word,
    words: &mut impl Iterator<Item = &'w Word>,
    from: &Directive,
) -> Result<&'w Word> {
    let missing = || from.error_at(option, format!("option \"{option}\" takes an argument"));
    words.next().ok_or_else(missing)
}

fn items(list: &Word) -> impl Iterator<Item = &[u8]> {
    list.text.split(|byte| matches!(byte, b' ' | b'\t')).filter(|item| !item.is_empty())
}

fn status(text: &[u8]) -> Option<u16> {
    let status = str::from_utf8(text).ok()?.parse().ok()?;
    (100..=999).contains(&status).then_some(status)
}

fn bad_status(list: &Word, item: &[u8], from: &Directive) -> Error {
    from.error_at(list, format!("invalid status \"{}\"", String::from_utf8_lossy(item)))
}

impl FieldEdit {
    /// Reads `Name: value`, `Name:` or `Name`.
    fn parse(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let refuse = |message: &str| Err(from.error_at(word, format!("\"{word}\" {message}")));
        let colon = word.text.iter().position(|byte| *byte == b':').unwrap_or(word.text.len());
        let name = word.text[..colon].trim_ascii();
        let value = word.text[colon..].strip_prefix(b":").unwrap_or_default().trim_ascii_start();
        let (name, is_prefix) = match name {
            [name @ .., b'*'] if !sets(from) => (name, true),
            _ => (name, false),
        };
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        if (name.is_empty() && !is_prefix) || !name.iter().all(is_token) {
            return refuse("does not begin with the name of a field");
        }
        // Without its length, a response can still be chunked.
        let is_possible =
            !is_of_request(from) && !sets(from) && Known::of(name) == Known::ContentLength;
        if is_framing(name) && !is_possible {
            return refuse("would make the length of the body wrong");
        }
        if !is_of_request(from) && Known::of(name) == Known::Connection {
            return refuse("is a field that Weir writes for each connection");
        }
        let change = match (is_prefix, sets(from) && !value.is_empty()) {
            (true, _) => FieldChange::RemovePrefixed,
            (false, true) => {
                let value = Word { text: value.into(), ..word.clone() };
                FieldChange::Set(Template::compile(&value, from, load)?)
            }
            (false, false) => FieldChange::Remove,
        };
        Ok(Self { name: name.into(), change })
    }

    fn is_single(&self) -> bool {
        SINGLE.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }
}
