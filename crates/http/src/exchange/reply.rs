//! The reply.

use super::filter::FilterLink;
use super::{Body, FieldName, Fields, Tunnel};
use crate::header_text::{self, Forbidden};

/// Memory of a body that is kept for the next exchange.
const SPARE_MAX: usize = 64 * 1024;

/// A reply: status, head and body.
///
/// Header fields that nearly every reply has or that filters need are members of their own; the
/// others are in `fields`, in order.
#[derive(Default)]
pub struct Reply {
    /// The status; 0 until it is set.
    pub status: u16,
    /// Status and reason as a backend sent them; empty: the standard text.
    pub reason: Vec<u8>,
    /// Whether `Server` is left to the backend's fields, even if it sent none.
    pub has_server: bool,
    /// Whether `Date` is left to the backend's fields, even if it sent none.
    pub has_date: bool,
    /// `Content-Type` without charset; empty: none.
    pub content_type: Vec<u8>,
    /// Appended to the content type as `; charset=...`; empty: none.
    pub charset: Vec<u8>,
    /// A backend's own parameters, with its `charset`, in place of `charset`.
    pub parameters: Vec<u8>,
    /// The charset to announce, if it is known; empty: the location's.
    pub override_charset: Vec<u8>,
    /// `Content-Length`; `None`: unknown, the framing shows the end.
    pub content_length: Option<u64>,
    /// `Last-Modified` in seconds since 1970. If `fields` has one too, that is sent, and conditions
    /// are checked against this.
    pub last_modified: Option<i64>,
    /// `Location` as it is sent, or a path to be completed; empty: none here.
    pub location: Vec<u8>,
    /// All other fields.
    pub fields: Fields,
    /// Fields after the body, if the framing allows them.
    pub trailers: Fields,
    pub body: Body,
    /// The tunnel that the connection becomes once the head is sent. There is no body then.
    pub tunnel: Option<Box<dyn Tunnel>>,
    /// The filters of the body, in order.
    pub(super) filters: Vec<FilterLink>,
    spare: Vec<u8>,
    /// Where the body begins in the whole that the head describes, of which a range may be cut.
    pub body_offset: u64,
    /// Whether ranges of the body may be requested.
    pub allow_ranges: bool,
    /// Whether only a single range may be requested.
    pub single_range: bool,
    /// Whether conditions of the request are not checked, because a backend has checked them.
    pub disable_not_modified: bool,
    /// Conditions are checked in the order of RFC 9110, by this time if there is no
    /// `Last-Modified`; `None`: as nginx does.
    pub standard_conditions: Option<i64>,
    /// Whether fields may follow the body, so that its framing must allow them.
    pub expect_trailers: bool,
    /// Whether it is chunked; known once the head is written.
    pub chunked: bool,
    /// Whether the client gets no `100 Continue`: errors prevent it.
    pub without_continue: bool,
    /// Bytes per second: `$limit_rate` or a backend's value; `None`: the location's setting.
    pub limit_rate: Option<u64>,
    /// Whether the head has been sent.
    pub head_sent: bool,
    /// All bytes sent.
    pub bytes_sent: u64,
    /// The bytes of the head among them.
    pub head_bytes: u64,
    /// Whether the reply was sent to its end.
    pub complete: bool,
}

impl Reply {
    /// Clears the reply, and keeps the memory.
    pub fn clear(&mut self) {
        self.clear_head();
        self.recycle();
        self.chunked = false;
        self.without_continue = false;
        self.limit_rate = None;
        self.head_sent = false;
        self.bytes_sent = 0;
        self.head_bytes = 0;
        self.complete = false;
    }

    /// Clears the head that earlier handlers made.
    pub fn clear_head(&mut self) {
        // All fields are listed, so that none is missed.
        let Self {
            status,
            reason,
            has_server,
            has_date,
            content_type,
            charset,
            parameters,
            override_charset,
            content_length,
            last_modified,
            location,
            fields,
            trailers,
            filters,
            body_offset,
            allow_ranges,
            single_range,
            disable_not_modified,
            standard_conditions,
            expect_trailers,
            // `recycle`
            body: _,
            tunnel: _,
            spare: _,
            // `clear`
            chunked: _,
            without_continue: _,
            limit_rate: _,
            head_sent: _,
            bytes_sent: _,
            head_bytes: _,
            complete: _,
        } = self;
        *status = 0;
        reason.clear();
        *has_server = false;
        *has_date = false;
        content_type.clear();
        charset.clear();
        parameters.clear();
        override_charset.clear();
        *content_length = None;
        *last_modified = None;
        location.clear();
        fields.clear();
        trailers.clear();
        filters.clear();
        *body_offset = 0;
        *allow_ranges = false;
        *single_range = false;
        *disable_not_modified = false;
        *standard_conditions = None;
        *expect_trailers = false;
    }

    /// Drops the body and its filters.
    pub(crate) fn clear_body(&mut self) {
        self.filters.clear();
        self.recycle();
    }

    /// An empty vector for a body made here, with the memory of an earlier one.
    pub fn text(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    pub(crate) fn shrink(&mut self) {
        self.spare = Vec::new();
        self.fields.shrink();
        self.trailers.shrink();
        for text in [&mut self.reason, &mut self.content_type, &mut self.location] {
            text.shrink_to_fit();
        }
    }

    /// The memory that it keeps, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let texts = [
            &self.reason,
            &self.content_type,
            &self.charset,
            &self.parameters,
            &self.override_charset,
            &self.location,
            &self.spare,
        ];
        let fields = self.fields.memory() + self.trailers.memory();
        texts.map(Vec::capacity).iter().sum::<usize>() + fields
    }

    fn recycle(&mut self) {
        self.tunnel = None;
        if self.body.is_empty() {
            return;
        }
        if let Body::Bytes(super::Bytes::Owned(mut text)) = self.body.take()
            && text.capacity() <= SPARE_MAX
        {
            text.clear();
            self.spare = text;
        }
    }

    /// Sets the target of a redirect. An empty target is sent as well.
    pub fn set_location(&mut self, location: Vec<u8>) {
        self.fields.remove(b"Location");
        if location.is_empty() {
            self.fields.append(b"Location", b"");
        }
        self.location = location;
    }

    /// Makes the head valid for writing. `Err`: the name of an invalid field.
    pub(crate) fn unfold(&mut self) -> Result<(), Vec<u8>> {
        // These are mostly empty; all other values come from the configuration or were parsed.
        for (name, text) in
            [(&b"Location"[..], &mut self.location), (b"Content-Type", &mut self.charset)]
        {
            if !header_text::is_clean(text) {
                header_text::unfold(text, 0).map_err(|Forbidden| name.to_vec())?;
            }
        }
        self.fields.unfold().map_or(Ok(()), Err)
    }

    /// Writes the line `Content-Type`, with the charset, if there is a type.
    pub fn write_content_type(&self, out: &mut Vec<u8>) {
        if self.content_type.is_empty() {
            return;
        }
        out.extend_from_slice(b"Content-Type: ");
        self.write_media_type(out);
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the content type, with the charset.
    pub fn write_media_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.content_type);
        if !self.parameters.is_empty() {
            out.extend_from_slice(&self.parameters);
        } else if !self.charset.is_empty() {
            out.extend_from_slice(b"; charset=");
            out.extend_from_slice(&self.charset);
        }
    }

    pub fn set_content_type(&mut self, content_type: &[u8]) {
        self.content_type.clear();
        self.content_type.extend_from_slice(content_type);
        self.parameters.clear();
    }

    /// Sets the type from a field's value. The charset is separated from the type, as filters need
    /// it; the value is sent unchanged unless a filter changes the charset, as in nginx.
    #[inline]
    pub(crate) fn parse_content_type(&mut self, value: &[u8]) {
        self.set_content_type(value);
        self.charset.clear();
        let mut at = 0;
        while let Some(offset) = memchr::memchr(b';', &value[at..]) {
            let semicolon = at + offset;
            let rest = &value[semicolon + 1..];
            let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
            let parameter = &rest[spaces..];
            if parameter.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"charset=")) {
                let charset = &parameter[8..];
                let charset = charset.strip_prefix(b"\"").unwrap_or(charset);
                let charset = charset.strip_suffix(b"\"").unwrap_or(charset);
                self.content_type.truncate(semicolon);
                self.parameters.extend_from_slice(&value[semicolon..]);
                self.charset.extend_from_slice(charset);
                return;
            }
            at = semicolon + 1;
        }
    }

    /// Sets the entity tag that nginx gives a file.
    pub fn set_etag(&mut self, modified: i64, size: u64) {
        const LENGTH_MAX: usize = 2 * 16 + b"\"-\"".len();
        let mut text = [b'"'; LENGTH_MAX];
        let before = write_hexadecimal(size, &mut text[..LENGTH_MAX - 1]) - 1;
        text[before] = b'-';
        let start = write_hexadecimal(modified as u64, &mut text[..before]) - 1;
        self.fields.append(b"ETag", &text[start..]);
    }

    /// Removes statements of the head about the body's bytes, because a filter will change these.
    /// Call it for replies without a body too: a 304 has the entity tag that the 200 had.
    pub(crate) fn forget_bytes_of_body(&mut self) {
        self.content_length = None;
        self.allow_ranges = false;
        self.fields.remove_known(FieldName::AcceptRanges);
        self.weaken_etag();
    }

    /// Makes a strong entity tag weak. Removes an invalid one, as nginx does.
    fn weaken_etag(&mut self) {
        let Some(tag) = self.fields.known(FieldName::ETag) else { return };
        match tag {
            [b'W', b'/', _, ..] => {}
            [b'"', ..] => {
                let weak = [b"W/", tag].concat();
                self.fields.set_value(FieldName::ETag, &weak);
            }
            _ => self.fields.remove_known(FieldName::ETag),
        }
    }

    /// Bytes sent after the head.
    pub fn body_bytes_sent(&self) -> u64 {
        self.bytes_sent.saturating_sub(self.head_bytes)
    }

    /// Answers with a complete body.
    pub fn set_bytes(&mut self, body: super::Bytes) {
        self.content_length = Some(body.len() as u64);
        self.body = Body::Bytes(body);
    }
}

/// Writes a number in base 16 at the end of the slice. Returns where it begins.
fn write_hexadecimal(mut number: u64, out: &mut [u8]) -> usize {
    let mut start = out.len();
    loop {
        start -= 1;
        out[start] = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
        if number == 0 {
            return start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reply;
    use crate::exchange::FieldName;

    #[test]
    fn entity_tags() {
        for (modified, size, tag) in [
            (0, 0, "\"0-0\""),
            (0x1234_5678, 0xabc, "\"12345678-abc\""),
            (i64::MAX, u64::MAX, "\"7fffffffffffffff-ffffffffffffffff\""),
        ] {
            let mut reply = Reply::default();
            reply.set_etag(modified, size);
            assert_eq!(reply.fields.known(FieldName::ETag), Some(tag.as_bytes()));
        }
    }

    #[test]
    fn changed_bytes_make_an_entity_tag_weak() {
        for (before, after) in [
            ("\"1\"", Some("W/\"1\"")),
            ("W/\"1\"", Some("W/\"1\"")),
            ("W/", None),
            ("1", None),
            ("", None),
        ] {
            let mut reply = Reply::default();
            reply.fields.append(b"etag", before.as_bytes());
            reply.forget_bytes_of_body();
            assert_eq!(reply.fields.known(FieldName::ETag), after.map(str::as_bytes), "{before}");
        }
    }
}
