//! The reader of a document.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::error::{JsonError, JsonProblem};
use super::limits::JsonLimits;
use super::value::{JsonMember, JsonNumber, JsonObject, JsonValue};

type Parsed<T> = Result<T, JsonError>;

/// Reads a document.
pub fn parse(input: &[u8], limits: JsonLimits) -> Parsed<JsonValue<'_>> {
    if input.len() > limits.bytes_max {
        return Err(JsonError { problem: JsonProblem::TooLong, at: limits.bytes_max });
    }
    let invalid = |error: core::str::Utf8Error| JsonError {
        problem: JsonProblem::InvalidUtf8,
        at: error.valid_up_to(),
    };
    let text = core::str::from_utf8(input).map_err(invalid)?;
    let mut parser = JsonParser { text, at: 0, depth: 0, values: 0, limits };
    let value = parser.value()?;
    match parser.peek_token() {
        None => Ok(value),
        Some(_) => Err(parser.error(JsonProblem::TextBehindEnd)),
    }
}

struct JsonParser<'a> {
    text: &'a str,
    /// The offset of the next byte.
    at: usize,
    /// The number of open lists and objects.
    depth: u8,
    /// The number of values so far.
    values: usize,
    limits: JsonLimits,
}

impl<'a> JsonParser<'a> {
    fn value(&mut self) -> Parsed<JsonValue<'a>> {
        let first = self.peek_token();
        self.values += 1;
        if self.values > self.limits.values_max {
            return Err(self.error(JsonProblem::TooMany));
        }
        match first {
            Some(b'"') => self.text().map(JsonValue::Text),
            Some(b'{') => self.nested(Self::object).map(JsonValue::Object),
            Some(b'[') => self.nested(Self::list).map(JsonValue::List),
            Some(b'-' | b'0'..=b'9') => self.number().map(JsonValue::Number),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Parsed<JsonValue<'a>> {
        let words = [
            ("null", JsonValue::Null),
            ("true", JsonValue::Bool(true)),
            ("false", JsonValue::Bool(false)),
        ];
        let rest = &self.text[self.at..];
        let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
        let (word, value) = found.ok_or_else(|| self.error(JsonProblem::NoValue))?;
        self.at += word.len();
        Ok(value)
    }

    /// Reads a list or an object, whose opening bracket comes next.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= self.limits.depth_max {
            return Err(self.error(JsonProblem::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        let inside = read(self)?;
        self.depth -= 1;
        Ok(inside)
    }

    fn list(&mut self) -> Parsed<Vec<JsonValue<'a>>> {
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if self.take(b']') {
                return Ok(values);
            }
            self.expect(b',', JsonProblem::NoCommaInList)?;
        }
    }

    fn object(&mut self) -> Parsed<JsonObject<'a>> {
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(JsonObject(members));
        }
        loop {
            members.push(self.member()?);
            if self.take(b'}') {
                return sorted(members);
            }
            self.expect(b',', JsonProblem::NoCommaInObject)?;
        }
    }

    fn member(&mut self) -> Parsed<JsonMember<'a>> {
        if self.peek_token() != Some(b'"') {
            return Err(self.error(JsonProblem::NoName));
        }
        let at = self.at;
        let name = self.text()?;
        self.expect(b':', JsonProblem::NoColon)?;
        Ok(JsonMember { name, value: self.value()?, at })
    }

    fn number(&mut self) -> Parsed<JsonNumber<'a>> {
        let start = self.at;
        self.take_byte(b"-");
        let has_integer = self.take_byte(b"0") || self.digits();
        let has_fraction = !self.take_byte(b".") || self.digits();
        let has_exponent = !self.take_byte(b"eE") || {
            self.take_byte(b"+-");
            self.digits()
        };
        let goes_on = matches!(self.peek(), Some(b'0'..=b'9'));
        match has_integer && has_fraction && has_exponent && !goes_on {
            true => Ok(JsonNumber(&self.text[start..self.at])),
            false => Err(self.error(JsonProblem::InvalidNumber)),
        }
    }

    /// Passes digits; false if there is none.
    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.take_byte(b"0123456789") {}
        self.at > start
    }

    /// Reads a text, whose opening quote comes next.
    fn text(&mut self) -> Parsed<Cow<'a, str>> {
        let quote = self.at;
        self.at += 1;
        let plain = self.plain(quote)?;
        if self.take_byte(b"\"") {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = String::from(plain);
        while !self.take_byte(b"\"") {
            text.push(self.escape()?);
            text.push_str(self.plain(quote)?);
        }
        Ok(Cow::Owned(text))
    }

    /// Passes characters up to a quote or an escape.
    fn plain(&mut self, quote: usize) -> Parsed<&'a str> {
        let rest = &self.text[self.at..];
        let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let Some(length) = rest.bytes().position(is_special) else {
            return Err(JsonError { problem: JsonProblem::OpenText, at: quote });
        };
        self.at += length;
        match self.peek() {
            Some(0..=0x1f) => Err(self.error(JsonProblem::ControlCharacter)),
            _ => Ok(&rest[..length]),
        }
    }

    /// Reads an escape, whose backslash comes next.
    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let wrong = |problem| JsonError { problem, at: start };
        let letter = self.text.as_bytes().get(self.at + 1);
        self.at += 2;
        Ok(match letter {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hexadecimal().ok_or(wrong(JsonProblem::InvalidEscape))?;
                let units = match first {
                    0xd800..=0xdbff => [Some(first), self.second_half()],
                    _ => [Some(first), None],
                };
                let mut decoded = char::decode_utf16(units.into_iter().flatten());
                let lone = wrong(JsonProblem::LoneSurrogate);
                decoded.next().and_then(Result::ok).ok_or(lone)?
            }
            _ => return Err(wrong(JsonProblem::InvalidEscape)),
        })
    }

    /// The second half of a character that takes two escapes.
    fn second_half(&mut self) -> Option<u16> {
        self.text[self.at..].starts_with("\\u").then_some(())?;
        self.at += 2;
        self.hexadecimal()
    }

    /// Four hexadecimal digits.
    fn hexadecimal(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }

    fn error(&self, problem: JsonProblem) -> JsonError {
        JsonError { problem, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes white space; returns the byte behind it.
    fn peek_token(&mut self) -> Option<u8> {
        while self.take_byte(b" \t\r\n") {}
        self.peek()
    }

    /// Passes white space and that byte, if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        self.peek_token();
        self.take_byte(&[byte])
    }

    fn expect(&mut self, byte: u8, problem: JsonProblem) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    /// Passes one of these bytes, if it comes next.
    fn take_byte(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(is_next);
        is_next
    }
}

/// Sorts members by name; an error for the later one of two with the same name.
fn sorted(mut members: Vec<JsonMember<'_>>) -> Parsed<JsonObject<'_>> {
    members.sort_unstable_by(|a, b| (&a.name, a.at).cmp(&(&b.name, b.at)));
    match members.windows(2).find(|pair| pair[0].name == pair[1].name) {
        None => Ok(JsonObject(members)),
        Some(pair) => Err(JsonError { problem: JsonProblem::DuplicateName, at: pair[1].at }),
    }
}
