//! The virtual server of an exchange.

use crate::exchange::Exchange;
use crate::phases;

/// Chooses the virtual server by the host of the request. As in nginx, a request without a host,
/// which HTTP/1.0 allows, goes to the default server, whatever name the handshake had.
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
            let host = std::mem::take(&mut x.request.host);
            x.server = listen.names.choose(&host, x);
            x.request.host = host;
        }
        Some(listen) => x.server = listen.names.default,
        None => {}
    }
    x.location = phases::server_location(x);
}
