//! From a parsed head to an exchange under way.

use wire::{Known, Version};

use crate::exchange::{Exchange, Flow};
use crate::phases::{self, Ran};
use crate::site::ServerId;

/// Settles server, path and framing, and runs the phases.
pub(crate) fn begin(x: &mut Exchange) -> Ran {
    let requests = x.client.requests.get() + 1;
    x.client.requests.set(requests);
    x.request.header_only = x.request.head.method == wire::Method::Head;
    let generation = x.generation.clone();
    let host_ok = set_host(x);
    x.server = generation.listen(x.client.listen).map_or(x.server, |l| l.names.choose(x));
    x.location = phases::outer(x);
    let here = &generation.location(x.location).core;
    x.keepalive =
        wants_keepalive(x) && here.keepalive_timeout_ms > 0 && requests < here.keepalive_requests;
    if !host_ok {
        return phases::step(x, Flow::Status(400));
    }
    set_path(x);
    phases::run(x)
}

fn set_host(x: &mut Exchange) -> bool {
    let Some(field) = x.request.head.field(Known::Host) else {
        return x.request.head.version < Version::HTTP_11;
    };
    let text = field.value.of(&x.request.received);
    match wire::host::Host::parse(text) {
        Some(host) => {
            host.write_lower(text, &mut x.request.host);
            true
        }
        None => false,
    }
}

fn set_path(x: &mut Exchange) {
    let request = &mut x.request;
    let path = request.head.path.of(&request.received);
    request.uri.extend_from_slice(path);
    if let Some(args) = request.head.args {
        request.args.extend_from_slice(args.of(&request.received));
    }
    let _ = ServerId(0);
}

fn wants_keepalive(x: &Exchange) -> bool {
    let default = x.request.head.version >= Version::HTTP_11;
    match x.request.field(Known::Connection) {
        Some(value) if value.eq_ignore_ascii_case(b"close") => false,
        Some(value) if value.eq_ignore_ascii_case(b"keep-alive") => true,
        _ => default,
    }
}
