//! `log_format`: a line as pieces of text, variables, and variables of the log.
//!
//! The log computes some variables itself: their values are those at the time of writing, not
//! cached ones. They never need escaping.

use std::sync::Arc;

use conf::{Directive, Load, Result, VariableId, Word};

use super::escape::LogEscape;
use super::json::{self, JsonField};
use super::logged::{LogVariable, LoggedSession};

/// A compiled format.
pub(super) struct LogFormat<X> {
    escape: LogEscape,
    pieces: Box<[FormatPiece<X>]>,
}

enum FormatPiece<X> {
    Text(Box<[u8]>),
    Own(LogVariable<X>),
    Variable(VariableId),
    /// A field of the built-in format `json`.
    Field(JsonField<X>),
}

const COMBINED_NAME: &[u8] = b"combined";

/// A format and its name.
type NamedFormat<X> = (Box<[u8]>, Arc<LogFormat<X>>);

/// The formats defined so far.
pub(super) struct Formats<X> {
    named: Vec<NamedFormat<X>>,
    combined: Option<Arc<LogFormat<X>>>,
    json: Option<Arc<LogFormat<X>>>,
    /// The log's own variables that formats of the configuration have.
    own: Vec<&'static [u8]>,
}

impl<X> Default for Formats<X> {
    fn default() -> Self {
        Self { named: Vec::new(), combined: None, json: None, own: Vec::new() }
    }
}

impl<X: LoggedSession> Formats<X> {
    /// The format with a name, which is compared without case, among those defined so far.
    pub(super) fn named(name: &[u8], load: &mut Load<'_>) -> Option<Arc<LogFormat<X>>> {
        if name.eq_ignore_ascii_case(COMBINED_NAME) {
            return Self::combined(load);
        }
        let formats = load.registry.of::<Self>();
        let found = formats.named.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, format)| format.clone())
    }

    /// The format `json`, once all lines have been read: the configuration's own, or else the
    /// built-in one, which is compiled at its first use.
    pub(super) fn json(load: &mut Load<'_>) -> Arc<LogFormat<X>> {
        let known = Self::named(json::NAME, load);
        if let Some(known) = known.or_else(|| load.registry.of::<Self>().json.clone()) {
            return known;
        }
        let format = Arc::new(LogFormat::json(load));
        load.registry.of::<Self>().json = Some(format.clone());
        format
    }

    /// The built-in format, if there is one; it is compiled at its first use.
    pub(super) fn combined(load: &mut Load<'_>) -> Option<Arc<LogFormat<X>>> {
        let text = X::COMBINED?;
        if let Some(known) = &load.registry.of::<Self>().combined {
            return Some(known.clone());
        }
        let format = Self::built_in(text, load);
        load.registry.of::<Self>().combined = Some(format.clone());
        Some(format)
    }

    /// A format without a name. The text must be well-formed.
    pub(super) fn built_in(text: &str, load: &mut Load<'_>) -> Arc<LogFormat<X>> {
        let mut pieces = Pieces::default();
        pieces.read(text.as_bytes(), None, load).expect("it is well-formed");
        Arc::new(pieces.finish(LogEscape::Default))
    }
}

/// Whether a `log_format` has this variable, which the log computes itself.
pub fn formats_have<X: LoggedSession>(own: &[u8], load: &mut Load<'_>) -> bool {
    load.registry.of::<Formats<X>>().own.contains(&own)
}

/// `log_format name [escape=default|json|none] string ...`
pub fn declare<X: LoggedSession>(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = from.arg(0);
    let known = |(known, _): &(Box<[u8]>, _)| *known == name.text;
    if X::COMBINED.is_some() && &*name.text == COMBINED_NAME
        || load.registry.of::<Formats<X>>().named.iter().any(known)
    {
        let message = format!("duplicate \"log_format\" name \"{name}\"");
        return Err(from.error_at(name, message));
    }
    let mut words = &from.args[1..];
    let mut escape = LogEscape::Default;
    if let Some(kind) = words[0].text.strip_prefix(b"escape=") {
        escape = LogEscape::of(kind).ok_or_else(|| {
            let kind = String::from_utf8_lossy(kind);
            from.error_at(&words[0], format!("unknown log format escaping \"{kind}\""))
        })?;
        words = &words[1..];
    }
    let mut pieces = Pieces::default();
    for word in words {
        pieces
            .read(&word.text, Some(word), load)
            .map_err(|message| from.error_at(word, message))?;
    }
    let format = Arc::new(pieces.finish(escape));
    load.registry.of::<Formats<X>>().named.push((name.text.clone(), format));
    Ok(())
}

impl<X: LoggedSession> LogFormat<X> {
    /// The built-in format `json`.
    fn json(load: &mut Load<'_>) -> Self {
        let text = |text: &[u8]| FormatPiece::Text(text.into());
        let mut pieces = vec![text(b"{\"time\":\""), FormatPiece::Own(json::time), text(b"\"")];
        pieces.extend(json::fields(load).into_iter().map(FormatPiece::Field));
        pieces.push(text(b"}"));
        Self { escape: LogEscape::None, pieces: pieces.into() }
    }

    /// Appends the line without a line end.
    pub(super) fn write(&self, x: &mut X, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                FormatPiece::Text(text) => out.extend_from_slice(text),
                FormatPiece::Own(own) => own(x, out),
                FormatPiece::Field(field) => field.write(x, out),
                FormatPiece::Variable(id) => {
                    let start = out.len();
                    match x.variable(*id, out) {
                        true => self.escape.apply(out, start),
                        false => out.extend_from_slice(self.escape.absent()),
                    }
                }
            }
        }
    }
}

/// A format as it is read. The words of a format form one text, but a variable's name must not
/// cross their borders.
struct Pieces<X> {
    list: Vec<FormatPiece<X>>,
    text: Vec<u8>,
}

impl<X> Default for Pieces<X> {
    fn default() -> Self {
        Self { list: Vec::new(), text: Vec::new() }
    }
}

impl<X: LoggedSession> Pieces<X> {
    fn read(
        &mut self,
        mut rest: &[u8],
        word: Option<&Word>,
        load: &mut Load<'_>,
    ) -> std::result::Result<(), String> {
        while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
            self.text.extend_from_slice(&rest[..dollar]);
            let (name, after) = reference(&rest[dollar..])?;
            self.end_text();
            self.list.push(match X::OWN.iter().find(|(own, _)| *own == name) {
                Some((name, own)) => {
                    if word.is_some() {
                        load.registry.of::<Formats<X>>().own.push(name);
                    }
                    FormatPiece::Own(*own)
                }
                None => FormatPiece::Variable(load.names.number(name, word.map(|word| word.span))),
            });
            rest = after;
        }
        self.text.extend_from_slice(rest);
        Ok(())
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.list.push(FormatPiece::Text(std::mem::take(&mut self.text).into()));
        }
    }

    fn finish(mut self, escape: LogEscape) -> LogFormat<X> {
        self.end_text();
        LogFormat { escape, pieces: self.list.into() }
    }
}

/// The name after the `$` at the start of `text`, and the rest. A name may begin with a digit.
fn reference(text: &[u8]) -> std::result::Result<(&[u8], &[u8]), String> {
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let invalid = || format!("invalid parameter \"{}\"", shown(text));
    let in_braces = text.get(1) == Some(&b'{');
    let inside = if in_braces { &text[2..] } else { &text[1..] };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = inside.iter().position(|byte| !is_name(byte)).unwrap_or(inside.len());
    let (name, mut after) = inside.split_at(length);
    if in_braces && !inside.is_empty() {
        after = after.strip_prefix(b"}").ok_or_else(|| {
            let name = shown(name);
            format!("the closing bracket in \"{name}\" variable is missing")
        })?;
    }
    if name.is_empty() { Err(invalid()) } else { Ok((name, after)) }
}
