//! Which fields of a reply are stored, and how a 304 changes those of a stored reply (RFC 9111,
//! sections 3.1, 3.2 and 4.3.4).

use wire::reply::{ReplyField, ReplyHead, ReplyName};

/// Fields that a 304 does not change: they describe the message or the body that is stored, and a
/// cookie is for one client.
const NOT_UPDATED: u32 = ReplyName::Connection.bit()
    | ReplyName::ContentEncoding.bit()
    | ReplyName::ContentLength.bit()
    | ReplyName::ContentRange.bit()
    | ReplyName::KeepAlive.bit()
    | ReplyName::SetCookie.bit()
    | ReplyName::Status.bit()
    | ReplyName::TransferEncoding.bit()
    | ReplyName::Upgrade.bit()
    | ReplyName::Vary.bit();

/// A head with the bytes that it refers to.
#[derive(Clone, Copy, Debug)]
pub struct HeadText<'h> {
    pub head: &'h ReplyHead,
    pub text: &'h [u8],
}

/// How a 304 changes a stored head.
#[derive(Debug, PartialEq, Eq)]
pub enum HeadUpdate {
    /// Not at all, except for `Date` and `Age`.
    Same,
    /// This is the new head.
    Changed(Vec<u8>),
    /// It is about another representation.
    OtherReply,
}

/// Whether the field is about one connection, so that it is neither stored nor passed on.
/// `connection`: the values of `Connection`, which lists more of them.
pub fn is_of_connection<'t>(name: &[u8], connection: impl Iterator<Item = &'t [u8]>) -> bool {
    const ALWAYS: [&[u8]; 6] = [
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
    ];
    if ALWAYS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return true;
    }
    let mut listed = connection.flat_map(|list| list.split(|byte| *byte == b','));
    // What frames the message is needed to read it again.
    let frames = matches!(
        ReplyName::of(name),
        ReplyName::ContentLength | ReplyName::TransferEncoding | ReplyName::Connection
    );
    !frames && listed.any(|own| own.trim_ascii().eq_ignore_ascii_case(name))
}

impl<'h> HeadText<'h> {
    fn name(&self, field: &ReplyField) -> &'h [u8] {
        field.name.of(self.text)
    }

    fn value(&self, field: &ReplyField) -> &'h [u8] {
        field.value.of(self.text)
    }

    pub fn values(&self, name: &[u8]) -> impl Iterator<Item = &'h [u8]> {
        let of_name = |field: &&ReplyField| self.name(field).eq_ignore_ascii_case(name);
        self.head.fields.iter().filter(of_name).map(|field| self.value(field))
    }

    pub fn first(&self, name: ReplyName) -> Option<&'h [u8]> {
        self.head.field(name).map(|field| self.value(field))
    }

    /// The line of the status, if the protocol has one.
    fn first_line(&self) -> &'h [u8] {
        let end = match self.text.starts_with(b"HTTP/") {
            true => self.text.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            false => 0,
        };
        &self.text[..end]
    }

    /// Whether there is such a field.
    pub fn has(&self, is_such: impl Fn(&[u8]) -> bool) -> bool {
        self.head.fields.iter().any(|field| is_such(self.name(field)))
    }

    /// The head without such fields.
    pub fn without(&self, is_such: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let kept = self.head.fields.iter().filter(|field| !is_such(self.name(field)));
        self.write(kept.map(|field| (self.name(field), self.value(field))))
    }

    fn write<'f>(&self, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Vec<u8> {
        let mut out = self.first_line().to_vec();
        for (name, value) in fields {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// This stored head as the head of a 304 changes it. `is_dropped`: fields that are not stored.
    pub fn updated_by(
        &self,
        newer: HeadText<'_>,
        is_dropped: impl Fn(&[u8]) -> bool,
    ) -> HeadUpdate {
        if self.is_contradicted_by(newer) {
            return HeadUpdate::OtherReply;
        }
        let counts = |field: &&ReplyField| {
            let name = newer.name(field);
            NOT_UPDATED & field.id.bit() == 0 && !is_dropped(name)
        };
        let is_changed = |field: &ReplyField| {
            let name = newer.name(field);
            let grows_older = field.id == ReplyName::Date || name.eq_ignore_ascii_case(b"age");
            !grows_older && !self.values(name).eq(newer.values(name))
        };
        let changes: Vec<_> = newer.head.fields.iter().filter(counts).collect();
        if !changes.iter().any(|field| is_changed(field)) {
            return HeadUpdate::Same;
        }
        let is_replaced =
            |name: &[u8]| changes.iter().any(|field| newer.name(field).eq_ignore_ascii_case(name));
        let kept = self.head.fields.iter().filter(|field| !is_replaced(self.name(field)));
        let kept = kept.map(|field| (self.name(field), self.value(field)));
        let changed = changes.iter().map(|field| (newer.name(field), newer.value(field)));
        HeadUpdate::Changed(self.write(kept.chain(changed)))
    }

    /// Whether a 304 has another strong validator, or selects by other fields.
    fn is_contradicted_by(&self, newer: HeadText<'_>) -> bool {
        let (tag, newer_tag) = (self.first(ReplyName::ETag), newer.first(ReplyName::ETag));
        let is_strong = |tag: &&[u8]| !tag.starts_with(b"W/");
        let other_tag = newer_tag.filter(is_strong).is_some_and(|newer| tag != Some(newer));
        let mut vary = newer.values(b"vary").peekable();
        other_tag || vary.peek().is_some() && !self.values(b"vary").eq(vary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "HTTP/1.1 200 OK\r\nDate: old\r\nETag: \"a\"\r\nA: 1\r\nB: 1\r\nB: 2\r\n\
        Content-Length: 5\r\nVary: X\r\n\r\n";

    fn parsed(text: &str) -> ReplyHead {
        let start = text.find('\n').map_or(0, |at| at + 1);
        let mut head = ReplyHead { status: 200, ..ReplyHead::default() };
        let end = text.len();
        let mut at = start;
        for line in text[start..end].split_inclusive('\n') {
            if let Some((name, value)) = line.trim_end().split_once(": ") {
                let slice = |from: usize, length: usize| wire::Slice {
                    start: from as u32,
                    end: (from + length) as u32,
                };
                let value = slice(at + name.len() + 2, value.len());
                let id = ReplyName::of(name.as_bytes());
                head.fields.push(ReplyField { name: slice(at, name.len()), value, id });
            }
            at += line.len();
        }
        head
    }

    fn update(newer: &str) -> Result<String, HeadUpdate> {
        let newer = format!("HTTP/1.1 304 Not Modified\r\n{newer}\r\n");
        let (old, new) = (parsed(OLD), parsed(&newer));
        let old = HeadText { head: &old, text: OLD.as_bytes() };
        let new = HeadText { head: &new, text: newer.as_bytes() };
        match old.updated_by(new, |name| name == b"Dropped") {
            HeadUpdate::Changed(text) => Ok(String::from_utf8(text).unwrap()),
            other => Err(other),
        }
    }

    #[test]
    fn a_304_replaces_fields() {
        let changed =
            update("A: 2\r\nC: 3\r\nb: 2\r\nContent-Length: 9\r\nDropped: 1\r\n").unwrap();
        let expected = "HTTP/1.1 200 OK\r\nDate: old\r\nETag: \"a\"\r\nContent-Length: 5\r\n\
            Vary: X\r\nA: 2\r\nC: 3\r\nb: 2\r\n\r\n";
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_304_without_news_changes_nothing() {
        for newer in [
            "",
            "Date: new\r\n",
            "Age: 5\r\n",
            "B: 1\r\nB: 2\r\nA: 1\r\n",
            "Content-Length: 0\r\nDropped: 2\r\n",
            "ETag: \"a\"\r\nVary: X\r\n",
        ] {
            assert_eq!(update(newer), Err(HeadUpdate::Same), "{newer}");
        }
    }

    #[test]
    fn a_304_of_another_representation_is_no_update() {
        for newer in ["ETag: \"b\"\r\n", "Vary: Y\r\n", "A: 2\r\nETag: \"b\"\r\n"] {
            assert_eq!(update(newer), Err(HeadUpdate::OtherReply), "{newer}");
        }
        assert!(update("ETag: W/\"b\"\r\n").is_ok());
    }

    #[test]
    fn fields_are_left_out() {
        let head = parsed(OLD);
        let head = HeadText { head: &head, text: OLD.as_bytes() };
        assert!(head.has(|name| name == b"A") && !head.has(|name| name == b"X"));
        let text = head.without(|name| name == b"A" || name == b"Date");
        assert_eq!(text, OLD.replace("A: 1\r\n", "").replace("Date: old\r\n", "").as_bytes());
        let cgi = HeadText { head: &parsed("\nA: 1\nB: 2\n\n"), text: b"\nA: 1\nB: 2\n\n" };
        assert_eq!(cgi.without(|name| name == b"A"), b"B: 2\r\n\r\n");
    }

    #[test]
    fn fields_of_a_connection() {
        let is = |name: &str, lists: &[&str]| {
            is_of_connection(name.as_bytes(), lists.iter().map(|list| list.as_bytes()))
        };
        assert!(is("X-A", &["close, x-a"]) && is("b", &["a", "c , B"]));
        assert!(!is("X-A", &[]) && !is("X-A", &["x-ab"]));
        assert!(is("TE", &[]) && is("Proxy-Authenticate", &[]));
        assert!(!is("Content-Length", &["content-length"]));
    }
}
