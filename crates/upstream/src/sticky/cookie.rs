//! `sticky cookie`: the `Set-Cookie` field with the client's server.

use std::io::Write;

use conf::{Template, Values, VariableId};

use crate::server::Server;

/// `sticky cookie`
#[derive(Clone, Debug)]
pub struct Cookie {
    pub(crate) name: Box<[u8]>,
    /// The cookie in the request.
    pub(crate) variable: VariableId,
    pub(crate) domain: Option<Template>,
    pub(crate) path: Option<Box<[u8]>>,
    pub(crate) expires: Option<CookieExpires>,
    pub(crate) samesite: Option<Template>,
    pub(crate) httponly: bool,
    pub(crate) secure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieExpires {
    /// The latest date.
    Max,
    /// This many seconds from now.
    After(u64),
}

impl Cookie {
    /// Appends the value of `Set-Cookie`. `unix_s`: seconds since 1970.
    pub fn write(&self, server: &Server, unix_s: u64, values: &mut impl Values, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
        out.push(b'=');
        out.extend_from_slice(server.sid());
        match self.expires {
            None => {}
            Some(CookieExpires::Max) => {
                out.extend_from_slice(b"; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000");
            }
            Some(CookieExpires::After(seconds)) => {
                out.extend_from_slice(b"; expires=");
                date(unix_s.saturating_add(seconds), out);
                let _ = write!(out, "; max-age={seconds}");
            }
        }
        let mut text = Vec::new();
        attribute(b"; domain=", self.domain.as_ref(), values, &mut text, out);
        if self.httponly {
            out.extend_from_slice(b"; httponly");
        }
        if self.secure {
            out.extend_from_slice(b"; secure");
        }
        self.write_samesite(values, &mut text, out);
        if let Some(path) = &self.path {
            out.extend_from_slice(b"; path=");
            out.extend_from_slice(path);
        }
    }

    fn write_samesite(&self, values: &mut impl Values, text: &mut Vec<u8>, out: &mut Vec<u8>) {
        let Some(template) = &self.samesite else { return };
        text.clear();
        template.render(values, text);
        if !text.is_empty() {
            out.extend_from_slice(b"; samesite=");
            out.extend_from_slice(if is_samesite(text) { text } else { b"strict" });
        }
    }
}

fn attribute(
    name: &[u8],
    template: Option<&Template>,
    values: &mut impl Values,
    text: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    text.clear();
    template.into_iter().for_each(|template| template.render(values, text));
    if !text.is_empty() {
        out.extend_from_slice(name);
        out.extend_from_slice(text);
    }
}

/// Whether browsers know the value.
pub(crate) fn is_samesite(text: &[u8]) -> bool {
    [&b"strict"[..], b"lax", b"none"].iter().any(|known| known.eq_ignore_ascii_case(text))
}

/// Netscape's form, `Thu, 31-Dec-37 23:55:55 GMT`, with four digits from 2038 on, because two would
/// mean a past year.
fn date(unix_s: u64, out: &mut Vec<u8>) {
    let http = wire::date::http(i64::try_from(unix_s).unwrap_or(i64::MAX));
    // "Thu, 31 Dec 2037 23:55:55 GMT"
    let year = if &http[12..16] > b"2037".as_slice() { &http[12..16] } else { &http[14..16] };
    for part in [&http[..7], b"-", &http[8..11], b"-", year, &http[16..]] {
        out.extend_from_slice(part);
    }
}
