//! `$ssl_...`: what a client's session has agreed on.

use std::marker::PhantomData;

use net::tls::TlsDetails;

use crate::Session;
use crate::variables::{BuiltIn, some};

/// The variables that sessions of both subsystems have.
pub struct TlsVariables<X>(PhantomData<X>);

impl<X: Session> TlsVariables<X> {
    /// Their table.
    pub const TABLE: &[BuiltIn<X>] = &[
        BuiltIn::fresh("ssl_alpn_protocol", |x, out| {
            of(x, out, |tls, out| tls.protocol.iter().for_each(|name| out.extend_from_slice(name)))
        }),
        BuiltIn::fresh("ssl_cipher", |x, out| of(x, out, TlsDetails::write_cipher)),
        BuiltIn::fresh("ssl_ciphers", |x, out| of(x, out, TlsDetails::write_ciphers)),
        BuiltIn::fresh("ssl_curve", |x, out| of(x, out, TlsDetails::write_group)),
        BuiltIn::fresh("ssl_curves", |x, out| of(x, out, TlsDetails::write_groups)),
        BuiltIn::fresh("ssl_early_data", |x, out| {
            of(x, out, |tls, out| out.extend_from_slice(if tls.is_early() { b"1" } else { b"" }))
        }),
        BuiltIn::fresh("ssl_ech_outer_server_name", |_, _| false),
        BuiltIn::fresh("ssl_ech_status", |_, _| false),
        BuiltIn::fresh("ssl_protocol", |x, out| {
            of(x, out, |tls, out| out.extend_from_slice(tls.version.as_bytes()))
        }),
        BuiltIn::fresh("ssl_server_name", |x, out| {
            let tls = x.client().tls.get();
            let name = tls.and_then(|tls| tls.offered.server_name.as_deref());
            name.is_some_and(|name| some(out, name))
        }),
        BuiltIn::fresh("ssl_session_id", |x, out| of(x, out, TlsDetails::write_session_id)),
        BuiltIn::fresh("ssl_session_reused", |x, out| {
            of(x, out, |tls, out| out.push(if tls.is_resumed { b'r' } else { b'.' }))
        }),
        BuiltIn::fresh("ssl_sigalg", |x, out| of(x, out, TlsDetails::write_signature_scheme)),
        BuiltIn::fresh("ssl_sigalgs", |x, out| of(x, out, TlsDetails::write_signature_schemes)),
    ];
}

/// `false`: the connection is not encrypted, or there is nothing to say.
fn of<X: Session>(x: &X, out: &mut Vec<u8>, write: impl FnOnce(&TlsDetails, &mut Vec<u8>)) -> bool {
    let Some(tls) = x.client().tls.get() else { return false };
    let before = out.len();
    write(tls, out);
    out.len() > before
}
