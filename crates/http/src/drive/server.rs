//! The virtual server of an exchange.

use net::tls::TlsDetails;
use wire::host::Host;

use crate::exchange::Exchange;
use crate::phases;
use crate::site::{ServerId, ServerNames};

/// Chooses the virtual server by the host that the client named: in the request, or else in the
/// handshake.
pub(crate) fn choose_server(x: &mut Exchange) {
    let request = &mut x.request;
    let host = request.head.host.of(&request.received);
    request.host.clear();
    request.host.extend_from_slice(host);
    if request.head.host_has_upper {
        request.host.make_ascii_lowercase();
    }
    let generation = x.generation.clone();
    match generation.listen(x.client.listen) {
        Some(listen) if listen.names.are_several() => {
            x.server = choose_by_name(&listen.names, x);
        }
        Some(listen) => x.server = listen.names.default,
        None => {}
    }
    x.location = phases::outer(x);
}

/// The server that the client's name for it stands for.
fn choose_by_name(names: &ServerNames, x: &mut Exchange) -> ServerId {
    let host = std::mem::take(&mut x.request.host);
    let tls = x.client.tls.get().filter(|_| host.is_empty());
    let negotiated = tls.and_then(|tls| negotiated_name(tls));
    let server = names.choose(negotiated.as_ref().unwrap_or(&host), x);
    x.request.host = host;
    server
}

/// The name in the handshake, in lower case.
#[cold]
pub(super) fn negotiated_name(tls: &TlsDetails) -> Option<Vec<u8>> {
    let name = tls.offered.server_name.as_deref()?;
    let mut lower = Vec::new();
    Host::parse(name)?.write_lower(name, &mut lower);
    Some(lower)
}
