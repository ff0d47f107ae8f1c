//! Variables named after a field, argument or cookie: `$http_...`, `$arg_...`, `$cookie_...`.
//!
//! Names of variables have no capitals and no hyphens, so names of fields are compared without
//! them.

use wire::Known;

use crate::exchange::{Exchange, Request};
use crate::variables::{BuiltIn, Getter};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh(
        "http_host",
        "The field `Host` as the client sent it; `$host` is never empty and has no port.",
        |x, out| known(x, Known::Host, b", ", out),
    ),
    BuiltIn::fresh(
        "http_user_agent",
        "The field `User-Agent` of the request: which browser or program asks.",
        |x, out| known(x, Known::UserAgent, b", ", out),
    ),
    BuiltIn::fresh(
        "http_referer",
        "The field `Referer` of the request: the page with the link.",
        |x, out| known(x, Known::Referer, b", ", out),
    ),
    BuiltIn::fresh(
        "http_via",
        "The fields `Via` of the request, with commas between them.",
        |x, out| known(x, Known::Via, b", ", out),
    ),
    BuiltIn::fresh(
        "http_x_forwarded_for",
        "The fields `X-Forwarded-For` of the request, with commas between them.",
        |x, out| known(x, Known::XForwardedFor, b", ", out),
    ),
    BuiltIn::fresh(
        "http_cookie",
        "The fields `Cookie` of the request, with semicolons between them.",
        |x, out| known(x, Known::Cookie, b"; ", out),
    ),
    BuiltIn::fresh("content_type", "The field `Content-Type` of the request.", |x, out| {
        known(x, Known::ContentType, b", ", out)
    }),
    BuiltIn::prefix(
        "http_",
        "A field of the request, in lower case and with underscores: `$http_accept_language` is \
         `Accept-Language`.",
        http,
    ),
    BuiltIn::prefix(
        "arg_",
        "An argument of the request, as it was sent: `$arg_page` is `2` for `/list?page=2`.",
        arg,
    ),
    BuiltIn::prefix("cookie_", "The value of a cookie that the client sent.", cookie),
];

fn http(name: Box<[u8]>) -> Getter {
    let may_be_nameless = is_nameless(&name);
    Box::new(move |x, out| {
        let request = &x.request;
        let hides = may_be_nameless && !x.server().reading.head.underscores_in_headers;
        let fields = request.head.fields.iter();
        let named = fields.filter(|field| {
            let field = request.text(field.name);
            is_named(field, &name) && !(hides && is_nameless(field))
        });
        join(named.map(|field| request.text(field.value)), b", ", out)
    })
}

/// Whether a name consists of underscores only. Unless `underscores_in_headers` is on, nginx
/// ignores underscores in names, so that no variable has the value of such a field.
fn is_nameless(name: &[u8]) -> bool {
    name.iter().all(|&byte| byte == b'_')
}

fn known(x: &Exchange, known: Known, between: &[u8], out: &mut Vec<u8>) -> bool {
    join(values(&x.request, known), between, out)
}

fn values(request: &Request, known: Known) -> impl Iterator<Item = &[u8]> {
    request.head.fields_of(known).map(|field| request.text(field.value))
}

pub(crate) fn join<'v>(
    values: impl Iterator<Item = &'v [u8]>,
    between: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let mut found = false;
    for value in values {
        if found {
            out.extend_from_slice(between);
        }
        out.extend_from_slice(value);
        found = true;
    }
    found
}

/// Whether a field has the name in a variable's name.
pub(crate) fn is_named(field: &[u8], name: &[u8]) -> bool {
    let folded = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
    field.len() == name.len() && field.iter().zip(name).all(|(byte, own)| folded(byte) == *own)
}

fn arg(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let mut args = x.request.args.split(|&byte| byte == b'&');
        match args.find_map(|arg| value_of(arg, &name)) {
            Some(value) if !name.is_empty() => {
                out.extend_from_slice(value);
                true
            }
            _ => false,
        }
    })
}

/// The text after `name=`.
fn value_of<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(rest)?.strip_prefix(b"=")
}

fn cookie(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let found = values(&x.request, Known::Cookie).find_map(|line| cookie_in(line, &name));
        out.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    })
}

/// The value of the first cookie with that name. There may be spaces around its `=`.
pub(crate) fn cookie_in<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    line.split(|&byte| byte == b';').find_map(|cookie| {
        let (start, rest) = skip_spaces(cookie).split_at_checked(name.len())?;
        let rest = start.eq_ignore_ascii_case(name).then_some(skip_spaces(rest))?;
        Some(skip_spaces(rest.strip_prefix(b"=")?))
    })
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}
