//! Refuses requests because of the TLS state of their connection.

use ::tls::ClientRefusal;
use net::tls::TlsDetails;
use observe::Level;
use wire::host::Host;

use crate::exchange::{Captures, Exchange};
use crate::phases;
use crate::site::ServerId;

/// nginx's status of a plain HTTP request to an HTTPS port.
const TO_HTTPS: u16 = 497;
/// nginx's status of a request whose client certificate is not trusted.
const CERTIFICATE_ERROR: u16 = 495;
/// nginx's status of a request without the required client certificate.
const NO_CERTIFICATE: u16 = 496;
/// The request is for another connection (RFC 9110 section 15.5.20).
const MISDIRECTED_REQUEST: u16 = 421;

/// The status to refuse the request with, if any.
pub(super) fn refusal(x: &mut Exchange) -> Option<u16> {
    if let Some(tls) = x.client.tls.get() {
        // Few servers ask for certificates.
        return match x.server().tls.clients {
            Some(_) => client_refusal(x, &tls.clone()),
            None => None,
        };
    }
    if x.client.is_plain_by_mistake.get() {
        x.log(Level::Info, format_args!("client sent plain HTTP request to HTTPS port"));
        return Some(TO_HTTPS);
    }
    None
}

/// The status to refuse a request with if its server verifies clients.
#[cold]
fn client_refusal(x: &mut Exchange, tls: &TlsDetails) -> Option<u16> {
    if let Some(negotiated) = other_server(x, tls) {
        let what = "client attempted to request the server name different from the one that was \
                    negotiated";
        x.log(Level::Info, format_args!("{what}"));
        // As in nginx, the server of the handshake answers.
        x.server = negotiated;
        x.location = phases::server_location(x);
        return Some(MISDIRECTED_REQUEST);
    }
    let refusal = x.server().tls.clients.as_ref()?.refusal(tls)?;
    x.log(Level::Info, format_args!("{refusal}"));
    Some(match refusal {
        ClientRefusal::Untrusted(_) => CERTIFICATE_ERROR,
        ClientRefusal::NoCertificate => NO_CERTIFICATE,
    })
}

/// The server named in the handshake, if the request names another host or none.
fn other_server(x: &Exchange, tls: &TlsDetails) -> Option<ServerId> {
    let negotiated = negotiated_name(tls)?;
    if x.request.host == negotiated {
        return None;
    }
    let listen = x.generation.listen(x.client.listen)?;
    let named = listen.names.named(&negotiated, &mut Captures::default(), |_, _| {});
    named.map(|(server, _)| server)
}

/// The name in the handshake, in lower case.
#[cold]
fn negotiated_name(tls: &TlsDetails) -> Option<Vec<u8>> {
    let name = tls.offered.server_name.as_deref()?;
    let mut lower = Vec::new();
    Host::parse(name)?.write_lower(name, &mut lower);
    Some(lower)
}
