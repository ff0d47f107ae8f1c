//! The head of a reply as a cache stores it: as the backend sent it, in the family's own form.

use wire::reply::ReplyHead;

use super::cgi::Cgi;
use super::fastcgi::{FastcgiStart, stored_head};
use super::http1::Http1Start;
use super::{HeadEvent, ReplyLength, ReplyReader, Start};

/// How a family's heads are written into cache files, and read again.
pub(crate) struct StoredForm {
    /// A reader of one reply to a request, which may be a HEAD request.
    reader: fn(to_head: bool) -> Box<dyn ReplyReader>,
    /// Appends the stored form of a head, whose text was unwrapped.
    write: fn(text: &[u8], out: &mut Vec<u8>),
}

/// Heads of HTTP/1, which replies of HTTP/2 are given as well.
pub(crate) const HTTP1: StoredForm = StoredForm {
    reader: |to_head| Box::new(Http1Start { to_head, ..Http1Start::default() }.start()),
    write: write_text,
};

/// Heads of SCGI and uwsgi.
pub(crate) const CGI: StoredForm =
    StoredForm { reader: |to_head| Box::new(Cgi::new(to_head)), write: write_text };

/// Heads of FastCGI, in records.
pub(crate) const FASTCGI: StoredForm = StoredForm {
    reader: |to_head| {
        let catch_stderr = std::sync::Arc::default();
        Box::new(FastcgiStart { to_head, keep_conn: false, catch_stderr }.start())
    },
    write: stored_head,
};

/// The form of a stored head, whose family is not known.
pub(crate) fn form_of(stored: &[u8]) -> &'static StoredForm {
    match stored {
        // The version of a record.
        [1, ..] => &FASTCGI,
        _ if stored.starts_with(b"HTTP/") => &HTTP1,
        _ => &CGI,
    }
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
}

impl StoredForm {
    pub(crate) fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        (self.write)(text, out);
    }

    /// Reads a stored head: the length of its text, which is at the front of `input` then, and that
    /// of the body. `None`: it is invalid.
    pub(crate) fn read(
        &self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
        to_head: bool,
    ) -> Option<(usize, ReplyLength)> {
        let mut reader = (self.reader)(to_head);
        loop {
            match reader.head(input, head) {
                Ok(HeadEvent::Complete { bytes, body }) => return Some((bytes, body)),
                Ok(HeadEvent::Log(_)) => {}
                Ok(HeadEvent::Partial | HeadEvent::Interim(_)) | Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_head_is_read_as_it_was_received() {
        let long = format!("Status: 404 None\nX-Long: {}\n\n", "x".repeat(40_000));
        for (form, text) in [
            (&HTTP1, "HTTP/1.1 404 None\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (&CGI, "Status: 404 None\nA: b\n\n"),
            (&FASTCGI, "Status: 404 None\r\nA: b\r\n\r\n"),
            (&FASTCGI, &long),
        ] {
            let (mut input, mut head) = (Vec::new(), ReplyHead::default());
            form.write(text.as_bytes(), &mut input);
            let read = form.read(&mut input, &mut head, false);
            assert_eq!(read, Some((text.len(), ReplyLength::Unknown)));
            assert_eq!((head.status, &input[..text.len()]), (404, text.as_bytes()));
            let cut = &text.as_bytes()[..text.len() - 1];
            let mut input = Vec::new();
            form.write(cut, &mut input);
            assert_eq!(form.read(&mut input, &mut ReplyHead::default(), false), None);
        }
    }
}
