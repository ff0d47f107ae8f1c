//! `error_log_tag`: fields that a configuration adds to the lines of error logs in JSON.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, Values, Word};

use crate::json::JsonFields;

/// The tags of a block.
#[derive(Clone, Default)]
pub struct ErrorLogTags(Vec<ErrorLogTag>);

#[derive(Clone)]
struct ErrorLogTag {
    name: Box<str>,
    value: Template,
}

/// The tags of the main level, where there are no variables.
#[derive(Clone)]
pub struct MainLogTags(pub ErrorLogTags);

/// The most bytes in a line of tags without variables, and of those with variables.
const TAGS_MAX: usize = 512;

/// The names that lines have anyway.
const TAKEN: [&str; 21] = [
    "level",
    "timestamp",
    "pid",
    "tid",
    "cnum",
    "msg",
    "action",
    "client",
    "server",
    "request",
    "subrequest",
    "upstream",
    "host",
    "referrer",
    "errno",
    "errtext",
    "truncated",
    "bytes_received",
    "bytes_sent",
    "upstream_bytes_received",
    "upstream_bytes_sent",
];

impl Value for ErrorLogTags {
    const ARGS: RangeInclusive<usize> = 2..=2;
    const SYNTAX: &'static str = "NAME STRING";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut tags = Self::default();
        tags.repeat(from, load)?;
        Ok(tags)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.add(Template::compile(from.arg(1), from, load)?, from)
    }
}

impl Value for MainLogTags {
    const ARGS: RangeInclusive<usize> = 2..=2;
    const SYNTAX: &'static str = "NAME TEXT";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut tags = Self(ErrorLogTags::default());
        tags.repeat(from, load)?;
        Ok(tags)
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        let value = from.arg(1);
        if value.text.contains(&b'$') {
            let message = "variables are not available outside of \"http\" and \"stream\"";
            return Err(from.error_at(value, message));
        }
        self.0.add(Template::fixed(&value.text), from)
    }
}

impl ErrorLogTags {
    fn add(&mut self, value: Template, from: &Directive) -> Result<()> {
        let name = self.name(from.arg(0), from)?;
        self.0.push(ErrorLogTag { name, value });
        if self.write_fixed().is_cut() {
            let message = format!("the values of tags are longer than {TAGS_MAX} bytes together");
            return Err(from.error_at(from.arg(1), message));
        }
        Ok(())
    }

    /// Checks the name, which is written as it is.
    fn name(&self, word: &Word, from: &Directive) -> Result<Box<str>> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.@".contains(byte);
        let Some(name) = str::from_utf8(&word.text)
            .ok()
            .filter(|name| !name.is_empty() && name.bytes().all(|byte| is_plain(&byte)))
        else {
            let message = format!("invalid tag name \"{word}\"");
            return Err(from.error_at(word, message).help("Use letters, digits, and \"_-.@\"."));
        };
        if TAKEN.contains(&name) {
            let message = format!("the tag \"{name}\" is a field that the log has anyway");
            return Err(from.error_at(word, message));
        }
        if self.0.iter().any(|tag| *tag.name == *name) {
            return Err(from.error_at(word, format!("duplicate tag \"{name}\"")));
        }
        Ok(name.into())
    }

    /// Whether [`render`](Self::render) writes any.
    pub fn have_variables(&self) -> bool {
        self.0.iter().any(|tag| tag.value.as_fixed().is_none())
    }

    /// Replaces `out` by the tags with variables, as fields of a line in JSON.
    pub fn render(&self, values: &mut impl Values, out: &mut Vec<u8>) {
        let mut fields = JsonFields::further(TAGS_MAX);
        let mut value = Vec::new();
        for tag in self.0.iter().filter(|tag| tag.value.as_fixed().is_none()) {
            value.clear();
            tag.value.render(values, &mut value);
            fields.text(&tag.name, &[&value]);
        }
        out.clear();
        out.extend_from_slice(fields.as_bytes());
    }

    /// The tags without variables, as fields of a line in JSON.
    pub(super) fn fixed(&self) -> Box<[u8]> {
        self.write_fixed().as_bytes().into()
    }

    fn write_fixed(&self) -> JsonFields {
        let mut fields = JsonFields::further(TAGS_MAX);
        for tag in &self.0 {
            if let Some(value) = tag.value.as_fixed() {
                fields.text(&tag.name, &[value]);
            }
        }
        fields
    }
}
