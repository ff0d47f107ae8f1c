//! The built-in pages, byte for byte those of nginx, and the browsers that need special ones.

use memchr::memmem;
use wire::Known;
use wire::uri::{EscapeSet, escape};

use crate::exchange::Exchange;

/// Added to pages for browsers that replace a short page by their own.
pub(super) const PADDING: &[u8] = b"\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n\
<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n";

/// Writes the page of a status. Returns false if nginx has none, and answers with an empty body.
pub(super) fn write(status: u16, server_token: &str, out: &mut Vec<u8>) -> bool {
    let Some(title) = title(status) else { return false };
    let detail = matches!(status, 494..=497).then(|| &title["400 ".len()..]);
    let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
    put("<html>\r\n<head><title>");
    put(title);
    put("</title></head>\r\n<body>\r\n<center><h1>");
    put(if detail.is_some() { "400 Bad Request" } else { title });
    put("</h1></center>\r\n");
    if let Some(detail) = detail {
        put("<center>");
        put(detail);
        put("</center>\r\n");
    }
    put("<hr><center>");
    put(server_token);
    put("</center>\r\n</body>\r\n</html>\r\n");
    true
}

/// The title of a page. For 302 and 401 it differs from the reason of the status line.
fn title(status: u16) -> Option<&'static str> {
    match status {
        302 => Some("302 Found"),
        401 => Some("401 Authorization Required"),
        494 => Some("400 Request Header Or Cookie Too Large"),
        495 => Some("400 The SSL certificate error"),
        496 => Some("400 No required SSL certificate was sent"),
        497 => Some("400 The plain HTTP request was sent to HTTPS port"),
        498 => Some("404 Not Found"),
        304 | ..300 => None,
        _ => wire::status_text(status),
    }
}

/// Writes a page that redirects to `url`.
pub(super) fn write_refresh(url: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=");
    escape(EscapeSet::Refresh, url, out);
    out.extend_from_slice(b"\"></head><body></body></html>\r\n");
}

/// Whether the browser replaces a short page by its own.
pub(super) fn shows_its_own(x: &Exchange) -> bool {
    let Some(agent) = x.request.field(Known::UserAgent) else { return false };
    if memmem::find(agent, b"Opera").is_some() {
        return false;
    }
    names_msie(agent)
        || memmem::find(agent, b"Gecko/").is_none() && memmem::find(agent, b"Chrome/").is_some()
}

/// Whether the browser is MSIE, and not Opera that claims to be.
pub(super) fn is_msie(x: &Exchange) -> bool {
    let agent = x.request.field(Known::UserAgent).unwrap_or_default();
    names_msie(agent) && memmem::find(agent, b"Opera").is_none()
}

/// Whether the agent contains `MSIE ` and the length of a version.
fn names_msie(agent: &[u8]) -> bool {
    memmem::find(agent, b"MSIE ").is_some_and(|at| at + 7 < agent.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_redirects_and_errors_have_pages() {
        for status in [0, 200, 201, 204, 304, 305, 599] {
            let mut out = Vec::new();
            assert!(!super::write(status, "x", &mut out) && out.is_empty(), "{status}");
        }
    }

    #[test]
    fn the_url_of_a_refresh_is_escaped() {
        let mut out = Vec::new();
        super::write_refresh(b"/a b\"<>?x&y", &mut out);
        assert!(String::from_utf8(out).unwrap().contains("URL=/a%20b%22%3C%3E?x&y\">"));
    }
}
