//! `$proxy_...`: properties of the request to a backend.

use wire::Known;

use crate::exchange::Exchange;
use crate::variables::{BuiltIn, VariableTable, number, some};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_proxy_module",
    &[
        BuiltIn::fresh("proxy_host", "The name and port that `proxy_pass` names.", |x, out| {
            let to = &x.backends.request_to;
            to.begun && some(out, &to.host)
        }),
        BuiltIn::fresh(
            "proxy_port",
            "The port that `proxy_pass` names, or the usual one of its scheme.",
            |x, out| {
                let to = &x.backends.request_to;
                to.begun && some(out, &to.port)
            },
        ),
        BuiltIn::cached(
            "proxy_add_x_forwarded_for",
            "The request's `X-Forwarded-For` with `$remote_addr` behind it.",
            add_forwarded,
        ),
        BuiltIn::fresh(
            "proxy_internal_body_length",
            "The length of the body that is sent to the server; for the program's own use.",
            |x, out| {
                let to = &x.backends.request_to;
                to.length.filter(|_| to.begun).is_some_and(|length| number(out, length))
            },
        ),
        BuiltIn::fresh(
            "proxy_internal_chunked",
            "`chunked` where the body is sent to the server in chunks; for the program's own use.",
            |x, out| {
                let to = &x.backends.request_to;
                to.begun && to.chunked && some(out, b"chunked")
            },
        ),
    ],
);

/// The addresses that the client has forwarded, and last the client's own.
fn add_forwarded(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    for field in x.request.head.fields_of(Known::XForwardedFor) {
        out.extend_from_slice(x.request.text(field.value));
        out.extend_from_slice(b", ");
    }
    some(out, x.client.address())
}
