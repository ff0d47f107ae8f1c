//! Whether the fields of a header block are a valid request (RFC 9113, sections 8.2 and 8.3).
//!
//! Left to the caller: the meaning of the values. The path, the method and the host are checked
//! when a head is built from them (`RequestHead::build`).

use super::FieldBlock;
use super::field_rules::{check_field, check_scope, take_length};

/// The values in a request's head. Each is part of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFields<'b> {
    /// `:method`.
    pub method: &'b [u8],
    /// `:scheme`.
    pub scheme: &'b [u8],
    /// `:path`.
    pub path: &'b [u8],
    /// `:authority`, which may be missing.
    pub authority: Option<&'b [u8]>,
    /// `content-length`.
    pub content_length: Option<u64>,
    /// The number of `cookie` fields; a client may split the cookies into several.
    pub cookies: usize,
    /// The number of pseudo-header fields, which come before the others.
    pub pseudo_count: usize,
    /// Whether there is a `te`.
    has_te: bool,
}

/// Why fields are not a valid request: what the client did, in nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRequest(pub &'static str);

/// Parses the fields of a request's head.
pub fn parse(block: &FieldBlock) -> Result<RequestFields<'_>, InvalidRequest> {
    let mut request = RequestFields::default();
    let mut is_past_pseudo = false;
    for (name, value) in block.iter() {
        check_field(name, value).map_err(InvalidRequest)?;
        if name.starts_with(b":") {
            if is_past_pseudo {
                return Err(InvalidRequest("sent out of order pseudo-headers"));
            }
            request.take_pseudo(name, value)?;
            request.pseudo_count += 1;
        } else {
            is_past_pseudo = true;
            request.take_field(name, value).map_err(InvalidRequest)?;
        }
    }
    let missing = match request {
        RequestFields { method: b"", .. } => "sent no :method header",
        RequestFields { scheme: b"", .. } => "sent no :scheme header",
        RequestFields { path: b"", .. } => "sent no :path header",
        _ => return Ok(request),
    };
    Err(InvalidRequest(missing))
}

/// Checks trailers: they have neither pseudo-header fields nor fields about the message or its
/// connection (RFC 9113, section 8.1; RFC 9110, section 6.5.1).
pub(super) fn check_trailers(block: &FieldBlock) -> Result<(), &'static str> {
    for (name, value) in block.iter() {
        match name {
            [b':', ..] => return Err("sent pseudo-header in trailers"),
            b"host" => return Err("sent \"Host\" header in trailers"),
            b"content-length" => return Err("sent \"Content-Length\" header in trailers"),
            _ => {
                check_field(name, value)?;
                RequestFields::default().take_field(name, value)?;
            }
        }
    }
    Ok(())
}

impl<'b> RequestFields<'b> {
    fn take_pseudo(&mut self, name: &[u8], value: &'b [u8]) -> Result<(), InvalidRequest> {
        let (place, duplicate, empty) = match name {
            b":method" => {
                let texts = ("sent duplicate :method header", "sent empty :method header");
                (&mut self.method, texts.0, texts.1)
            }
            b":scheme" => {
                let texts = ("sent duplicate :scheme header", "sent empty :scheme header");
                (&mut self.scheme, texts.0, texts.1)
            }
            b":path" => {
                let texts = ("sent duplicate :path header", "sent empty :path header");
                (&mut self.path, texts.0, texts.1)
            }
            b":authority" if self.authority.is_some() => {
                return Err(InvalidRequest("sent duplicate \":authority\" header"));
            }
            b":authority" => {
                self.authority = Some(value);
                return Ok(());
            }
            _ => return Err(InvalidRequest("sent unknown pseudo-header")),
        };
        if !place.is_empty() {
            return Err(InvalidRequest(duplicate));
        }
        if value.is_empty() {
            return Err(InvalidRequest(empty));
        }
        *place = value;
        if name == b":scheme" && !is_scheme(value) {
            return Err(InvalidRequest("sent invalid :scheme header"));
        }
        Ok(())
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match name {
            b"cookie" => self.cookies += 1,
            b"content-length" => take_length(&mut self.content_length, value)?,
            // As in nginx, a second `te` is invalid even with this value.
            b"te" if self.has_te || !value.eq_ignore_ascii_case(b"trailers") => {
                return Err("sent invalid \"TE\" header");
            }
            b"te" => self.has_te = true,
            _ => check_scope(name)?,
        }
        Ok(())
    }
}

fn is_scheme(value: &[u8]) -> bool {
    let later = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    value[0].is_ascii_alphabetic() && value.iter().all(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

    fn block(fields: &[(&str, &str)]) -> FieldBlock {
        let mut block = FieldBlock::default();
        fields.iter().for_each(|(name, value)| block.push(name.as_bytes(), value.as_bytes()));
        block
    }

    #[test]
    fn pseudo_header_fields_come_first_once_and_complete() {
        let plain = block(&GET);
        let request = parse(&plain).unwrap();
        assert_eq!((request.method, request.path), (&b"GET"[..], &b"/"[..]));
        assert_eq!((request.authority, request.pseudo_count), (Some(&b"a"[..]), 4));
        assert!(parse(&block(&GET[..3])).unwrap().authority.is_none());
        for missing in 0..3 {
            let mut fields = GET.to_vec();
            fields.remove(missing);
            assert!(parse(&block(&fields)).is_err(), "{missing}");
        }
        for (index, field) in GET.iter().enumerate() {
            let twice = block(&[&GET[..], &[*field]].concat());
            assert!(parse(&twice).is_err(), "{field:?}");
            let mut empty = GET.to_vec();
            empty[index].1 = "";
            assert_eq!(parse(&block(&empty)).is_ok(), index == 3, "{field:?}");
        }
        let late = [&[("a", "b")], &GET[..]].concat();
        assert_eq!(parse(&block(&late)), Err(InvalidRequest("sent out of order pseudo-headers")));
        for other in [":status", ":protocol", ":"] {
            assert!(parse(&block(&[&GET[..], &[(other, "x")]].concat())).is_err(), "{other}");
        }
    }

    #[test]
    fn fields_of_a_connection_are_refused() {
        let refused = [
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("Accept", "capital"),
            ("a b", ""),
            ("a", "b\r\nc"),
            ("", ""),
            ("content-length", "-1"),
            ("content-length", ""),
            ("content-length", "99999999999999999999"),
        ];
        for field in refused {
            assert!(parse(&block(&[&GET[..], &[field]].concat())).is_err(), "{field:?}");
        }
        let taken = [("te", "Trailers"), ("content-length", "10"), ("cookie", "a"), ("a_b", "c")];
        let block = block(&[&GET[..], &taken].concat());
        let request = parse(&block).unwrap();
        assert_eq!((request.content_length, request.cookies), (Some(10), 1));
    }
}
