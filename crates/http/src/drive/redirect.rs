//! Turns the path in a redirect into the URL for the client.

use net::Address;

use crate::exchange::Exchange;

/// Turns a `Location` that is a path into a URL, if `absolute_redirect` is on. Returns whether it
/// did.
pub(crate) fn complete(x: &mut Exchange) -> bool {
    let rules = x.location().core.redirect;
    if !rules.absolute || x.reply.location.first() != Some(&b'/') {
        return false;
    }
    let (scheme, default_port) = x.client.scheme();
    let mut url = [scheme.as_bytes(), b"://"].concat();
    if rules.server_name {
        url.extend_from_slice(&x.server().name);
    } else if !x.request.host.is_empty() {
        url.extend_from_slice(&x.request.host);
    } else {
        url.extend_from_slice(local_address(x).as_bytes());
    }
    if let Some(port) =
        rules.port.then(|| local_port(x)).flatten().filter(|port| *port != default_port)
    {
        url.extend_from_slice(format!(":{port}").as_bytes());
    }
    url.extend_from_slice(&x.reply.location);
    x.reply.location = url;
    true
}

fn local_address(x: &Exchange) -> String {
    x.client.local().map_or_else(|| "unix:".to_owned(), |address| address.ip().to_string())
}

fn local_port(x: &Exchange) -> Option<u16> {
    let listen = x.generation.listen(x.client.listen)?;
    if listen.server_port.is_some() {
        return listen.server_port;
    }
    match &listen.address {
        Address::Ip(address) => Some(address.port()),
        Address::Udp(_) | Address::Unix(_) => None,
    }
}
