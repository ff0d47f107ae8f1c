//! `CDN-Cache-Control` (RFC 9213): directives for shared caches of the site, in the form of a
//! dictionary of structured fields (RFC 9651).
//!
//! A field that is not such a dictionary is ignored as a whole, as is one with a known directive of
//! the wrong type.

use super::control::{ReplyControl, SECONDS_MAX};

/// The type and the value of a member.
enum DictionaryMember<'t> {
    Boolean(bool),
    Integer(i64),
    Text(&'t [u8]),
    /// Any other type.
    Other,
}

/// The directives of the values of the field, joined with commas. `None`: the field is ignored.
pub(super) fn parse(list: &[u8]) -> Option<ReplyControl> {
    let mut control = ReplyControl::default();
    let mut reader = DictionaryReader { rest: list.trim_ascii() };
    if reader.rest.is_empty() {
        return None;
    }
    loop {
        let key = reader.key()?;
        let member = match reader.take(b'=') {
            true => reader.value()?,
            false => DictionaryMember::Boolean(true),
        };
        reader.parameters()?;
        add(&mut control, key, &member)?;
        reader.skip_spaces();
        if reader.rest.is_empty() {
            return Some(control);
        }
        reader.take(b',').then_some(())?;
        reader.skip_spaces();
    }
}

/// Adds a member. Of a repeated one the last counts.
fn add(control: &mut ReplyControl, key: &[u8], member: &DictionaryMember<'_>) -> Option<()> {
    let number = match key {
        b"max-age" => &mut control.max_age_s,
        b"s-maxage" => &mut control.s_maxage_s,
        b"stale-while-revalidate" => &mut control.updating_s,
        b"stale-if-error" => &mut control.error_s,
        word => {
            match member {
                DictionaryMember::Boolean(true) => control.say(word, b""),
                DictionaryMember::Text(names) => control.say(word, names),
                DictionaryMember::Boolean(false)
                | DictionaryMember::Integer(_)
                | DictionaryMember::Other => {}
            }
            return Some(());
        }
    };
    let DictionaryMember::Integer(seconds) = member else { return None };
    *number = Some((*seconds).clamp(0, SECONDS_MAX));
    Some(())
}

struct DictionaryReader<'t> {
    rest: &'t [u8],
}

impl<'t> DictionaryReader<'t> {
    fn key(&mut self) -> Option<&'t [u8]> {
        let begins = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
        self.rest.first().filter(|byte| begins(**byte))?;
        let is_key = |byte: u8| begins(byte) || byte.is_ascii_digit() || b"_-.".contains(&byte);
        Some(self.take_while(is_key))
    }

    /// An item or a list of items.
    fn value(&mut self) -> Option<DictionaryMember<'t>> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip_spaces();
            if self.take(b')') {
                return Some(DictionaryMember::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            matches!(self.rest.first(), Some(b' ' | b')')).then_some(())?;
        }
    }

    fn bare_item(&mut self) -> Option<DictionaryMember<'t>> {
        let (&first, rest) = self.rest.split_first()?;
        match first {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.text(),
            b'?' => {
                let (&digit, rest) = rest.split_first()?;
                self.rest = rest;
                matches!(digit, b'0' | b'1').then_some(DictionaryMember::Boolean(digit == b'1'))
            }
            b':' => {
                self.rest = rest;
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').then_some(DictionaryMember::Other)
            }
            b'@' => {
                self.rest = rest;
                match self.number()? {
                    DictionaryMember::Integer(_) => Some(DictionaryMember::Other),
                    _ => None,
                }
            }
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_token =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                self.take_while(is_token);
                Some(DictionaryMember::Other)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<DictionaryMember<'t>> {
        let is_negative = self.take(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let value = std::str::from_utf8(digits).ok()?;
        if self.take(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let is_decimal = (1..=12).contains(&value.len()) && (1..=3).contains(&fraction.len());
            return is_decimal.then_some(DictionaryMember::Other);
        }
        let number = value.parse::<i64>().ok().filter(|_| value.len() <= 15)?;
        Some(DictionaryMember::Integer(if is_negative { -number } else { number }))
    }

    fn text(&mut self) -> Option<DictionaryMember<'t>> {
        let text = &self.rest[1..];
        let mut bytes = text.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = &text[at + 1..];
                    return Some(DictionaryMember::Text(&text[..at]));
                }
                b'\\' => match bytes.next()? {
                    (_, b'"' | b'\\') => {}
                    _ => return None,
                },
                b' '..=b'~' => {}
                _ => return None,
            }
        }
        None
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip_spaces();
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'t [u8] {
        let end = self.rest.iter().position(|byte| !is_part(*byte)).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        self.rest = rest;
        part
    }

    fn skip_spaces(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::ReplyWord;
    use super::*;

    fn max_age_s(text: &str) -> Option<i64> {
        parse(text.as_bytes())?.max_age_s
    }

    #[test]
    fn members_are_directives() {
        for (text, expected) in [
            ("max-age=5", 5),
            ("max-age=5, max-age=6", 6),
            ("max-age=5;a;b=1;c=\"d\"", 5),
            ("foobar, max-age=5", 5),
            ("a=(1 \"b\" c;d);e , b=:YQ==:, c=@5, d=?0, e=1.5, f=*t/x, max-age=5", 5),
            ("max-age=99999999999", SECONDS_MAX),
            ("max-age=-5", 0),
        ] {
            assert_eq!(max_age_s(text), Some(expected), "{text}");
        }
        let control = parse(b"no-store, private=?0, no-cache=\"a, b\"").unwrap();
        assert!(control.says(ReplyWord::NoStore));
        assert!(!control.says(ReplyWord::Private) && !control.says(ReplyWord::NoCache));
        assert!(control.withholds(b"B"));
    }

    #[test]
    fn a_field_that_is_no_dictionary_is_ignored() {
        for text in [
            "",
            " ",
            ",",
            "max-age=5,",
            "max-age=10000, &&&&&",
            "max-age=\"10000\"",
            "max-age",
            "max-age=1.5",
            "max-age =5",
            "max-age= 5",
            "MaX-aGe=5",
            "max-age=1234567890123456",
            "max-age=5 6",
            "max-age=5; ;a",
            "a=\"b",
            "a=\"\\x\"",
            "a=?2",
            "a=(1,2)",
            "a=(1",
            "a=:b",
            "a=-",
            "a=@x",
            "a=1.",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
