//! The variables that every exchange has.

use wire::Known;

use super::Variable;
use crate::exchange::Exchange;

type Get = fn(&mut Exchange, &mut Vec<u8>) -> bool;

const TABLE: &[(&[u8], Get)] = &[
    (b"args", |x, out| some(out, &x.request.args)),
    (b"host", |x, out| some(out, &x.request.host)),
    (b"http_host", |x, out| maybe(out, x.request.field(Known::Host))),
    (b"request_uri", |x, out| some(out, x.request.text(x.request.head.target))),
    (b"status", |x, out| some(out, format!("{:03}", x.reply.status).as_bytes())),
    (b"uri", |x, out| some(out, &x.request.uri)),
];

pub(super) fn variable(name: &[u8]) -> Option<Variable> {
    let get = TABLE.iter().find(|(known, _)| *known == name)?.1;
    Some(Variable::fresh(get))
}

fn some(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

fn maybe(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}
