//! Tags of cached replies: the fields that have them.

use conf::{Directive, Error, Result, Word};
use wire::reply::ReplyHead;

use super::super::protocol::stored;

/// The most fields with tags.
const FIELDS_MAX: usize = 16;
/// The field that caches on the way to the client need as well (RFC 9875).
const PASSED_ON: &[u8] = b"cache-groups";

/// `tags=` of `*_cache_path`: the names of fields with tags, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagFields(Box<[Box<[u8]>]>);

impl TagFields {
    /// The names in a text such as `Surrogate-Key,Cache-Tag`.
    pub(super) fn parse(text: &[u8], word: &Word, from: &Directive) -> Result<Self> {
        let names: Box<[_]> = text.split(|byte| *byte == b',').collect();
        let is_name = |name: &&[u8]| {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !name.is_empty() && name.iter().all(is_part)
        };
        if names.len() > FIELDS_MAX || !names.iter().all(is_name) {
            return Err(invalid(word, from));
        }
        Ok(Self(names.iter().map(|name| name.to_ascii_lowercase().into()).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of fields that only caches read, so that clients do not get them.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|name| &**name).filter(|name| *name != PASSED_ON)
    }

    /// The values of a reply's fields, with line feeds between them.
    pub(super) fn values_of(&self, head: &ReplyHead, text: &[u8]) -> Vec<u8> {
        let mut values = Vec::new();
        if self.is_empty() {
            return values;
        }
        for field in &head.fields {
            let name = field.name.of(text);
            if self.0.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                values.extend_from_slice(field.value.of(text));
                values.push(b'\n');
            }
        }
        values
    }

    /// The values of the fields in a stored head, of whatever family.
    pub(super) fn values_in(&self, stored: &[u8]) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let (mut input, mut head) = (stored.to_vec(), ReplyHead::default());
        match stored::form_of(stored).read(&mut input, &mut head, false) {
            Some((bytes, _)) => self.values_of(&head, &input[..bytes]),
            None => Vec::new(),
        }
    }
}

fn invalid(word: &Word, from: &Directive) -> Error {
    let error = from.error_at(word, format!("invalid tags value \"{word}\""));
    error.help("it is a list of field names with commas: \"tags=Surrogate-Key,Cache-Tag\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_in_stored_heads_of_every_family() {
        let fields =
            TagFields(["surrogate-key", "cache-groups"].map(|n| n.as_bytes().into()).into());
        let rest = "A: b\r\nSurrogate-Key: a b\r\ncache-groups: \"c\"\r\nSURROGATE-KEY: d\r\n\r\n";
        let mut records = Vec::new();
        stored::FASTCGI.write(rest.as_bytes(), &mut records);
        let http = format!("HTTP/1.1 200 OK\r\n{rest}");
        let cgi = format!("Status: 200 OK\r\n{rest}");
        for stored in [http.as_bytes(), cgi.as_bytes(), &records] {
            assert_eq!(fields.values_in(stored), b"a b\n\"c\"\nd\n");
        }
        assert_eq!(fields.values_in(b"HTTP/1.1 200 OK\r\nSurrogate-Key: a"), b"");
        assert_eq!(fields.hidden().collect::<Vec<_>>(), [b"surrogate-key"]);
    }
}
