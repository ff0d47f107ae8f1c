//! `$ssl_...`: what the client's session has agreed on.

use net::tls::TlsDetails;

use crate::exchange::Exchange;
use crate::variables::{BuiltIn, some};

/// `$ssl_protocol` and the others.
pub(crate) const VARIABLES: &[BuiltIn] = &[
    BuiltIn::fresh("ssl_alpn_protocol", |x, out| {
        of(x, out, |tls, out| tls.protocol.iter().for_each(|name| out.extend_from_slice(name)))
    }),
    BuiltIn::fresh("ssl_cipher", |x, out| of(x, out, TlsDetails::write_cipher)),
    BuiltIn::fresh("ssl_ciphers", |x, out| of(x, out, TlsDetails::write_ciphers)),
    BuiltIn::fresh("ssl_curve", |x, out| of(x, out, TlsDetails::write_group)),
    BuiltIn::fresh("ssl_curves", |x, out| of(x, out, TlsDetails::write_groups)),
    BuiltIn::fresh("ssl_protocol", |x, out| {
        of(x, out, |tls, out| out.extend_from_slice(tls.version.as_bytes()))
    }),
    BuiltIn::fresh("ssl_server_name", |x, out| {
        let tls = x.client.tls.get();
        let name = tls.and_then(|tls| tls.offered.server_name.as_deref());
        name.is_some_and(|name| some(out, name))
    }),
    BuiltIn::fresh("ssl_sigalgs", |x, out| of(x, out, TlsDetails::write_signature_schemes)),
    BuiltIn::fresh("ssl_session_reused", |x, out| {
        of(x, out, |tls, out| out.push(if tls.is_resumed { b'r' } else { b'.' }))
    }),
];

/// `false`: the connection is not encrypted, or there is nothing to say.
fn of(x: &Exchange, out: &mut Vec<u8>, write: impl FnOnce(&TlsDetails, &mut Vec<u8>)) -> bool {
    let Some(tls) = x.client.tls.get() else { return false };
    let before = out.len();
    write(tls, out);
    out.len() > before
}
