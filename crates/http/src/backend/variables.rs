//! `$upstream_...`: results of attempts, as far as only HTTP has them.

use session::backend::{write_each, write_times};
use wire::reply::ReplyName;

use crate::builtin::fields::{is_named, join};
use crate::decimal;
use crate::variables::{BuiltIn, Getter, VariableTable};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_upstream_module",
    &[
        BuiltIn::fresh(
            "upstream_status",
            "The status that each server answered with, with commas between them; `-` where there \
             was no answer.",
            |x, out| {
                write_each(x, out, |attempt, out| match attempt.status.get() {
                    0 => out.push(b'-'),
                    status => decimal::write(status.into(), out),
                })
            },
        ),
        BuiltIn::fresh(
            "upstream_header_time",
            "The time until each server's reply began, in seconds with milliseconds.",
            |x, out| write_times(x, out, |attempt| attempt.header_ms.get()),
        ),
        BuiltIn::fresh(
            "upstream_response_time",
            "The time until each server's reply was complete, in seconds with milliseconds.",
            |x, out| write_times(x, out, |attempt| attempt.response_ms.get()),
        ),
        BuiltIn::fresh(
            "upstream_response_length",
            "The number of bytes of each reply's body.",
            |x, out| {
                // The body counts once the head is sent; a reply without a body counts nothing.
                let counts = (x.reply.head_sent || x.is_subrequest()) && !x.request.header_only;
                write_each(x, out, |attempt, out| {
                    decimal::write(if counts { attempt.response_length.get() } else { 0 }, out);
                })
            },
        ),
        BuiltIn::prefix(
            "upstream_http_",
            "A field of the last server's reply: `$upstream_http_server` is `Server`.",
            http,
        ),
        BuiltIn::prefix(
            "upstream_trailer_",
            "A trailer field of the last server's reply, which comes after the body.",
            trailer,
        ),
        BuiltIn::prefix(
            "upstream_cookie_",
            "The value of a cookie that the last server's reply sets.",
            cookie,
        ),
    ],
);

fn http(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let text = &x.backends.head_text;
        let fields = x.backends.head.fields.iter();
        let named = fields.filter(|field| is_named(field.name.of(text), &name));
        join(named.map(|field| field.value.of(text)), b", ", out)
            // nginx adds them, empty, to a reply of an HTTP server in order to send none.
            || (matches!(&*name, b"server" | b"date")
                && x.backends.are_http()
                && x.backends.head.status != 0)
    })
}

fn trailer(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let trailers = x.backends.trailers.borrow();
        let named = trailers.iter().filter(|(own, _)| is_named(own, &name));
        join(named.map(|(_, value)| value), b", ", out)
    })
}

fn cookie(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let text = &x.backends.head_text;
        let cookies =
            x.backends.head.fields.iter().filter(|field| field.id == ReplyName::SetCookie);
        let found =
            cookies.map(|field| field.value.of(text)).find_map(|line| value_in(line, &name));
        out.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    })
}

/// The value of the cookie that a line sets, if it has that name.
fn value_in<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let rest = start.eq_ignore_ascii_case(name).then_some(skip_spaces(rest))?;
    let value = skip_spaces(rest.strip_prefix(b"=")?);
    value.split(|&byte| byte == b';').next()
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}
