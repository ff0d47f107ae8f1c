//! The virtual server of an exchange.

use crate::exchange::Exchange;
use crate::phases;

/// Chooses the virtual server by the host that the client named, if any.
pub(crate) fn choose_server(x: &mut Exchange) {
    let request = &mut x.request;
    let host = request.head.host.of(&request.received);
    request.host.clear();
    request.host.extend_from_slice(host);
    request.host.make_ascii_lowercase();
    let generation = x.generation.clone();
    let host = std::mem::take(&mut x.request.host);
    x.server = generation.listen(x.client.listen).map_or(x.server, |l| l.names.choose(&host, x));
    x.request.host = host;
    x.location = phases::outer(x);
}
