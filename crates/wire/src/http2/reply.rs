//! Whether the fields of a header block are a valid reply (RFC 9113, sections 8.2 and 8.3.2).
//!
//! Left to the caller: the meaning of the values.

use super::FieldBlock;
use super::field_rules::{check_field, check_scope, take_length};

/// The values in the head of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Reply {
    /// `:status`, from 100 to 999, but not 101.
    pub status: u16,
    /// `content-length`.
    pub content_length: Option<u64>,
}

/// Why fields are not a valid reply: what the server did, to be read after "server ".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidReply(pub &'static str);

/// Parses the fields of a reply's head, or of an interim reply.
pub fn parse(block: &FieldBlock) -> Result<Http2Reply, InvalidReply> {
    let mut fields = block.iter();
    let status = match fields.next() {
        Some((b":status", value)) => parse_status(value)?,
        _ => return Err(InvalidReply("sent no :status header")),
    };
    let mut reply = Http2Reply { status, content_length: None };
    for (name, value) in fields {
        reply.take_field(name, value).map_err(InvalidReply)?;
    }
    Ok(reply)
}

/// Three digits. HTTP/2 does not switch protocols (section 8.6).
fn parse_status(value: &[u8]) -> Result<u16, InvalidReply> {
    match value {
        b"101" => Err(InvalidReply("sent unexpected :status header 101")),
        [b'1'..=b'9', rest @ ..] if rest.len() == 2 && rest.iter().all(u8::is_ascii_digit) => {
            Ok(value.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
        }
        _ => Err(InvalidReply("sent invalid :status header")),
    }
}

impl Http2Reply {
    /// Whether the final reply is still to come.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        check_field(name, value)?;
        match name {
            b":status" => Err("sent duplicate :status header"),
            [b':', ..] => Err("sent unknown pseudo-header"),
            b"content-length" => take_length(&mut self.content_length, value),
            // Only requests may have this field.
            b"te" => Err("sent \"TE\" header"),
            _ => check_scope(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> FieldBlock {
        let mut block = FieldBlock::default();
        fields.iter().for_each(|(name, value)| block.push(name.as_bytes(), value.as_bytes()));
        block
    }

    #[test]
    fn a_reply_begins_with_its_status_alone() {
        let plain = [(":status", "200"), ("server", "x"), ("content-length", "10")];
        let reply = Http2Reply { status: 200, content_length: Some(10) };
        assert_eq!(parse(&block(&plain)), Ok(reply));
        for (fields, what) in [
            (&plain[..0], "sent no :status header"),
            (&plain[1..], "sent no :status header"),
            (&[plain[1], plain[0]], "sent no :status header"),
            (&[plain[0], plain[0]], "sent duplicate :status header"),
            (&[plain[0], plain[1], plain[0]], "sent duplicate :status header"),
            (&[plain[0], (":path", "/")], "sent unknown pseudo-header"),
            (&[plain[0], (":", "/")], "sent invalid header name"),
        ] {
            assert_eq!(parse(&block(fields)), Err(InvalidReply(what)), "{fields:?}");
        }
    }

    #[test]
    fn a_status_has_three_digits() {
        for (text, status) in [("100", 100), ("103", 103), ("204", 204), ("599", 599), ("999", 999)]
        {
            let reply = parse(&block(&[(":status", text)])).unwrap();
            assert_eq!((reply.status, reply.is_interim()), (status, status < 200), "{text}");
        }
        for text in ["", "2", "20", "2000", "099", "000", "2 0", "20x", " 200", "+20", "101"] {
            assert!(parse(&block(&[(":status", text)])).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_of_a_connection_and_invalid_ones_are_refused() {
        let refused = [
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "trailers"),
            ("Server", "capital"),
            ("a b", ""),
            ("a", "b\r\nc"),
            ("", ""),
            ("content-length", "-1"),
            ("content-length", "+1"),
            ("content-length", ""),
            ("content-length", "1, 1"),
            ("content-length", "99999999999999999999"),
        ];
        for field in refused {
            assert!(parse(&block(&[(":status", "200"), field])).is_err(), "{field:?}");
        }
        let length = ("content-length", "1");
        assert!(parse(&block(&[(":status", "200"), length, length])).is_err());
    }
}
