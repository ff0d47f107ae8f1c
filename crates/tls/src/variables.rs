//! `$ssl_...`: what a client's session has agreed on.

use std::marker::PhantomData;

use net::tls::TlsDetails;

use session::Session;
use session::variables::{BuiltIn, some};

/// The variables that sessions of both subsystems have.
pub struct TlsVariables<X>(PhantomData<X>);

impl<X: Session> TlsVariables<X> {
    pub const TABLE: &[BuiltIn<X>] = &[
        BuiltIn::fresh(
            "ssl_alpn_protocol",
            "The protocol that was chosen with ALPN, such as `h2`; empty without one.",
            |x, out| {
                of(x, out, |tls, out| {
                    tls.protocol.iter().for_each(|name| out.extend_from_slice(name))
                })
            },
        ),
        BuiltIn::fresh("ssl_cipher", "The cipher suite, in OpenSSL's words.", |x, out| {
            of(x, out, TlsDetails::write_cipher)
        }),
        BuiltIn::fresh(
            "ssl_ciphers",
            "The cipher suites that the client offered, with colons between them; unknown ones as \
             numbers.",
            |x, out| of(x, out, TlsDetails::write_ciphers),
        ),
        BuiltIn::fresh(
            "ssl_curve",
            "The group that keys were exchanged with, such as `X25519`.",
            |x, out| of(x, out, TlsDetails::write_group),
        ),
        BuiltIn::fresh(
            "ssl_curves",
            "The groups that the client offered, with colons between them; unknown ones as \
             numbers.",
            |x, out| of(x, out, TlsDetails::write_groups),
        ),
        BuiltIn::fresh(
            "ssl_early_data",
            "`1` while the handshake is unfinished, so that the request is early data, which may \
             be a replay; otherwise empty.",
            |x, out| {
                of(x, out, |tls, out| {
                    out.extend_from_slice(if tls.is_early() { b"1" } else { b"" })
                })
            },
        ),
        BuiltIn::fresh(
            "ssl_ech_outer_server_name",
            "Always empty: encrypted client hello is not supported.",
            |_, _| false,
        ),
        BuiltIn::fresh(
            "ssl_ech_status",
            "Always empty: encrypted client hello is not supported.",
            |_, _| false,
        ),
        BuiltIn::fresh("ssl_protocol", "The version of TLS: `TLSv1.2` or `TLSv1.3`.", |x, out| {
            of(x, out, |tls, out| out.extend_from_slice(tls.version.as_bytes()))
        }),
        BuiltIn::fresh(
            "ssl_server_name",
            "The server name that the client asked for (SNI).",
            |x, out| {
                let tls = x.client().tls.get();
                let name = tls.and_then(|tls| tls.offered.server_name.as_deref());
                name.is_some_and(|name| some(out, name))
            },
        ),
        BuiltIn::fresh(
            "ssl_session_id",
            "The identifier of the TLS session, in hexadecimal.",
            |x, out| of(x, out, TlsDetails::write_session_id),
        ),
        BuiltIn::fresh(
            "ssl_session_reused",
            "`r` where a session was resumed, otherwise `.`.",
            |x, out| of(x, out, |tls, out| out.push(if tls.is_resumed { b'r' } else { b'.' })),
        ),
        BuiltIn::fresh(
            "ssl_sigalg",
            "The signature algorithm that the server used in the handshake.",
            |x, out| of(x, out, TlsDetails::write_signature_scheme),
        ),
        BuiltIn::fresh(
            "ssl_sigalgs",
            "The signature algorithms that the client offered, with colons between them.",
            |x, out| of(x, out, TlsDetails::write_signature_schemes),
        ),
    ];
}

/// `false`: the connection is not encrypted, or there is nothing to say.
fn of<X: Session>(x: &X, out: &mut Vec<u8>, write: impl FnOnce(&TlsDetails, &mut Vec<u8>)) -> bool {
    let Some(tls) = x.client().tls.get() else { return false };
    let before = out.len();
    write(tls, out);
    out.len() > before
}
