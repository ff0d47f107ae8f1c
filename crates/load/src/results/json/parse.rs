//! Text to JSON, strictly: RFC 8259 and nothing beside it, no name twice in a map.

use super::Json;

/// Maps and lists within each other.
const DEPTH_MAX: usize = 16;
/// Fields of one map: there are 999 statuses.
const FIELDS_MAX: usize = 1000;

/// Reads a text that is one value. An error says in which line and column.
pub(super) fn parse(text: &[u8]) -> Result<Json, String> {
    let text = str::from_utf8(text)
        .map_err(|error| format!("{}: not UTF-8", place(&text[..error.valid_up_to()])))?;
    let mut parser = JsonParser { text, at: 0 };
    parser.whole().map_err(|what| format!("{}: {what}", place(&text.as_bytes()[..parser.at])))
}

/// The place after what was read.
fn place(read: &[u8]) -> String {
    let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = read.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    format!("line {line}, column {column}")
}

struct JsonParser<'t> {
    text: &'t str,
    at: usize,
}

type What = &'static str;

impl JsonParser<'_> {
    fn whole(&mut self) -> Result<Json, What> {
        let value = self.value(0)?;
        if self.peek().is_some() { Err("unexpected text after the value") } else { Ok(value) }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    /// Takes the next byte that is no white space if it is this one.
    fn takes(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Result<Json, What> {
        if depth > DEPTH_MAX {
            return Err("nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z') => self.word(),
            Some(_) => Err("expected a value"),
            None => Err("unexpected end of the text"),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Json, What> {
        let mut fields: Vec<(_, Json)> = Vec::new();
        self.at += 1;
        if self.takes(b'}') {
            return Ok(Json::Map(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err("expected a field name");
            }
            let name = self.text()?.into();
            if fields.iter().any(|(known, _)| *known == name) {
                return Err("duplicate field");
            }
            if fields.len() == FIELDS_MAX {
                return Err("too many fields");
            }
            if !self.takes(b':') {
                return Err("expected a colon");
            }
            fields.push((name, self.value(depth + 1)?));
            if self.takes(b'}') {
                return Ok(Json::Map(fields));
            }
            if !self.takes(b',') {
                return Err("expected a comma or }");
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, What> {
        let mut items = Vec::new();
        self.at += 1;
        if self.takes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            if !self.takes(b',') {
                return Err("expected a comma or ]");
            }
        }
    }

    fn word(&mut self) -> Result<Json, What> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let value = match &rest[..length] {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ => return Err("expected a value"),
        };
        self.at += length;
        Ok(value)
    }

    fn number(&mut self) -> Result<Json, What> {
        let rest = &self.text[self.at..];
        let length = number(rest.as_bytes()).ok_or("invalid number")?;
        let number: f64 = rest[..length].parse().map_err(|_| "invalid number")?;
        if number.is_infinite() {
            return Err("number too large");
        }
        self.at += length;
        Ok(Json::Number(number))
    }

    fn text(&mut self) -> Result<String, What> {
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c| matches!(c, '"' | '\\' | '\0'..='\x1f'));
            let plain = plain.ok_or("unterminated string")?;
            text += &rest[..plain];
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => text.push(self.escape()?),
                _ => return Err("control character in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, What> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(b'"' | b'\\' | b'/') => letter.map(char::from),
            Some(b'b') => Some('\x08'),
            Some(b'f') => Some('\x0c'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(b'u') => return self.unit_or_pair().ok_or("invalid character escape"),
            _ => None,
        };
        let plain = plain.ok_or("unknown escape")?;
        self.at += 2;
        Ok(plain)
    }

    /// A character by its UTF-16: one unit, or two that are a pair.
    fn unit_or_pair(&mut self) -> Option<char> {
        let first = self.unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) {
            units.push(self.unit()?);
        }
        char::decode_utf16(units).next()?.ok()
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.text.as_bytes().get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.at += 6;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    }
}

/// How long the number is that stands at the start (RFC 8259 section 6).
fn number(text: &[u8]) -> Option<usize> {
    let byte = |at: usize| text.get(at).copied();
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let some_digits = |at: usize| Some(at + digits(at)).filter(|end| *end > at);

    let start = usize::from(byte(0) == Some(b'-'));
    let mut end = if byte(start) == Some(b'0') { start + 1 } else { some_digits(start)? };
    if byte(end) == Some(b'.') {
        end = some_digits(end + 1)?;
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        end = some_digits(end + 1 + sign)?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value() {
        let text = r#" {"t": "a\"\\\/\b\f\n\r\t\u0041\uD834\uDD1Eé", "n": [0, -0.5, 1e3, 2E-2, 10],
            "none": null, "yes": true, "no": false, "list": [ ], "map": {}} "#;
        let numbers = [0.0, -0.5, 1000.0, 0.02, 10.0].map(Json::Number).into_iter();
        let expected = Json::map([
            ("t", "a\"\\/\x08\x0c\n\r\tA\u{1d11e}é".into()),
            ("n", numbers.collect()),
            ("none", Json::Null),
            ("yes", true.into()),
            ("no", false.into()),
            ("list", Json::List(Vec::new())),
            ("map", Json::map([])),
        ]);
        assert_eq!(parse(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn what_is_written_is_read() {
        let value = Json::map([
            ("text", "a \"b\" \\ \n\u{7f}\u{1d11e}".into()),
            ("list", [1.5, f64::INFINITY, 1e300, 5e-324].into_iter().map(Json::from).collect()),
        ]);
        assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
    }

    const BAD: [(&str, &str); 33] = [
        ("", "line 1, column 1: unexpected end of the text"),
        ("[1,\n 2", "line 2, column 3: expected a comma or ]"),
        ("[1,]", "line 1, column 4: expected a value"),
        ("[1 2]", "line 1, column 4: expected a comma or ]"),
        ("[", "line 1, column 2: unexpected end of the text"),
        ("{\"a\": 1,}", "line 1, column 9: expected a field name"),
        ("{a: 1}", "line 1, column 2: expected a field name"),
        ("{\"a\" 1}", "line 1, column 6: expected a colon"),
        ("{\"a\": 1; }", "line 1, column 8: expected a comma or }"),
        ("{\"a\": 1, \"a\": 2}", "line 1, column 13: duplicate field"),
        ("1 2", "line 1, column 3: unexpected text after the value"),
        ("nul", "line 1, column 1: expected a value"),
        ("nulll", "line 1, column 1: expected a value"),
        ("NaN", "line 1, column 1: expected a value"),
        ("'a'", "line 1, column 1: expected a value"),
        ("-", "line 1, column 1: invalid number"),
        ("01", "line 1, column 2: unexpected text after the value"),
        ("1.", "line 1, column 1: invalid number"),
        ("1e", "line 1, column 1: invalid number"),
        ("1e+", "line 1, column 1: invalid number"),
        (".5", "line 1, column 1: expected a value"),
        ("+1", "line 1, column 1: expected a value"),
        ("1e999", "line 1, column 1: number too large"),
        ("\"a", "line 1, column 2: unterminated string"),
        ("\"a\nb\"", "line 1, column 3: control character in a string"),
        ("\"\\x\"", "line 1, column 2: unknown escape"),
        ("\"\\", "line 1, column 2: unknown escape"),
        ("\"\\é\"", "line 1, column 2: unknown escape"),
        ("\"\\u12\"", "line 1, column 2: invalid character escape"),
        ("\"\\u+123\"", "line 1, column 2: invalid character escape"),
        ("\"\\ud800\"", "line 1, column 8: invalid character escape"),
        ("\"\\udc00\"", "line 1, column 8: invalid character escape"),
        ("\"\\ud800\\u0041\"", "line 1, column 14: invalid character escape"),
    ];

    #[test]
    fn what_is_refused() {
        for (text, expected) in BAD {
            assert_eq!(parse(text.as_bytes()), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(parse(b"\"\n\xff\""), Err("line 2, column 1: not UTF-8".into()));
        let deep = "[".repeat(DEPTH_MAX + 2);
        assert_eq!(
            parse(deep.as_bytes()),
            Err(format!("line 1, column {}: nested too deeply", deep.len()))
        );
    }
}
