//! How a redirect to a path becomes a redirect to a URL.

use std::sync::Arc;

use conf::Result;
use net::Address;

use crate::exchange::Exchange;
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether redirects of the server itself contain scheme, host and port.
    ///
    /// ```nginx
    /// absolute_redirect off;
    /// ```
    absolute_redirect: bool = "on",
    /// Whether such redirects contain the first `server_name` instead of the name in the request.
    ///
    /// ```nginx
    /// server_name_in_redirect on;
    /// ```
    server_name_in_redirect: bool = "off",
    /// Whether such redirects contain the port.
    ///
    /// ```nginx
    /// port_in_redirect off;
    /// ```
    port_in_redirect: bool = "on",
}

/// How a location redirects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redirect {
    absolute: bool,
    server_name: bool,
    port: bool,
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.redirect = Redirect {
        absolute: conf.absolute_redirect,
        server_name: conf.server_name_in_redirect,
        port: conf.port_in_redirect,
    };
    Ok(())
}

/// Makes a `Location` that is a path a URL, where the location says so. Whether it did.
pub(crate) fn complete(x: &mut Exchange) -> bool {
    let rules = x.location().core.redirect;
    if !rules.absolute || x.reply.location.first() != Some(&b'/') {
        return false;
    }
    let mut url = b"http://".to_vec();
    if rules.server_name {
        url.extend_from_slice(&x.server().name);
    } else if !x.request.host.is_empty() {
        url.extend_from_slice(&x.request.host);
    } else {
        url.extend_from_slice(local_address(x).as_bytes());
    }
    if let Some(port) = rules.port.then(|| local_port(x)).flatten().filter(|port| *port != 80) {
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
    match &x.generation.listen(x.client.listen)?.address {
        Address::Ip(address) => Some(address.port()),
        Address::Unix(_) => None,
    }
}
