//! `$ssl_client_...`: the certificate that a client has shown.

use std::marker::PhantomData;

use net::tls::{ClientCertificate, TlsDetails};
use wire::pem;
use wire::uri::{EscapeSet, escape};
use wire::x509::X509;

use session::Session;
use session::variables::BuiltIn;

/// The variables that sessions of both subsystems have.
pub struct ClientVariables<X>(PhantomData<X>);

impl<X: Session> ClientVariables<X> {
    pub const TABLE: &[BuiltIn<X>] = &[
        BuiltIn::fresh(
            "ssl_client_cert",
            "The client's certificate in PEM, with a tab before every line but the first; \
             `$ssl_client_escaped_cert` is easier to pass on.",
            |x, out| of(x, out, write_indented),
        ),
        BuiltIn::fresh(
            "ssl_client_escaped_cert",
            "The client's certificate in PEM, escaped as in URLs.",
            |x, out| of(x, out, write_escaped),
        ),
        BuiltIn::fresh(
            "ssl_client_fingerprint",
            "The SHA-1 checksum of the client's certificate, in hexadecimal.",
            |x, out| of(x, out, write_fingerprint),
        ),
        BuiltIn::fresh(
            "ssl_client_i_dn",
            "The name of the authority that issued the client's certificate, as in RFC 2253.",
            |x, out| {
                // The variable is not found if the name cannot be parsed, as in nginx.
                parsed(x, out, |x509, out| x509.issuer.write_rfc2253(out).unwrap_or_default())
            },
        ),
        BuiltIn::fresh(
            "ssl_client_i_dn_legacy",
            "The name of the authority that issued the client's certificate, in the old form \
             `/C=.../CN=...`.",
            |x, out| parsed(x, out, |x509, out| x509.issuer.write_legacy(out).unwrap_or_default()),
        ),
        BuiltIn::fresh("ssl_client_raw_cert", "The client's certificate in PEM.", |x, out| {
            of(x, out, write_pem)
        }),
        BuiltIn::fresh(
            "ssl_client_s_dn",
            "The subject of the client's certificate, as in RFC 2253.",
            |x, out| {
                parsed(x, out, |x509, out| x509.subject.write_rfc2253(out).unwrap_or_default())
            },
        ),
        BuiltIn::fresh(
            "ssl_client_s_dn_legacy",
            "The subject of the client's certificate, in the old form `/C=.../CN=...`.",
            |x, out| parsed(x, out, |x509, out| x509.subject.write_legacy(out).unwrap_or_default()),
        ),
        BuiltIn::fresh(
            "ssl_client_serial",
            "The serial number of the client's certificate, in hexadecimal.",
            |x, out| parsed(x, out, |x509, out| x509.write_serial(out)),
        ),
        BuiltIn::fresh(
            "ssl_client_sigalg",
            "The signature algorithm that the client used in the handshake.",
            |x, out| match x.client().tls.get() {
                Some(tls) => written(out, |out| tls.write_client_signature_scheme(out)),
                None => false,
            },
        ),
        BuiltIn::fresh(
            "ssl_client_v_end",
            "The time when the client's certificate ends.",
            |x, out| parsed(x, out, |x509, out| x509.not_after.write(out)),
        ),
        BuiltIn::fresh(
            "ssl_client_v_remain",
            "The number of days until the client's certificate ends.",
            |x, out| parsed(x, out, write_days_left),
        ),
        BuiltIn::fresh(
            "ssl_client_v_start",
            "The time when the client's certificate begins.",
            |x, out| parsed(x, out, |x509, out| x509.not_before.write(out)),
        ),
        BuiltIn::fresh(
            "ssl_client_verify",
            "`SUCCESS`, `FAILED:` with the reason, or `NONE` where the client showed no \
             certificate.",
            |x, out| match x.client().tls.get() {
                Some(tls) => written(out, |out| write_result(x, tls, out)),
                None => false,
            },
        ),
    ];
}

fn written(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> bool {
    let before = out.len();
    write(out);
    out.len() > before
}

/// `false`: the client has shown no certificate, or there is nothing to say.
fn of<X: Session>(
    x: &X,
    out: &mut Vec<u8>,
    write: impl FnOnce(&ClientCertificate, &mut Vec<u8>),
) -> bool {
    let shown = x.client().tls.get().and_then(|tls| tls.client_certificate.as_ref());
    shown.is_some_and(|shown| written(out, |out| write(shown, out)))
}

fn parsed<X: Session>(
    x: &X,
    out: &mut Vec<u8>,
    write: impl FnOnce(&X509<'_>, &mut Vec<u8>),
) -> bool {
    of(x, out, |shown, out| {
        if let Ok(x509) = X509::parse(shown.leaf()) {
            write(&x509, out);
        }
    })
}

fn write_result<X: Session>(x: &X, tls: &TlsDetails, out: &mut Vec<u8>) {
    let Some(shown) = &tls.client_certificate else { return out.extend_from_slice(b"NONE") };
    match shown.verify(x.client_trust()) {
        Ok(()) => out.extend_from_slice(b"SUCCESS"),
        Err(fault) => out.extend_from_slice(format!("FAILED:{fault}").as_bytes()),
    }
}

fn write_pem(shown: &ClientCertificate, out: &mut Vec<u8>) {
    pem::encode("CERTIFICATE", shown.leaf(), out);
}

/// Each line but the first is indented by a tab, as a header field once could be.
fn write_indented(shown: &ClientCertificate, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write_pem(shown, &mut text);
    for byte in text.strip_suffix(b"\n").unwrap_or(&text) {
        out.push(*byte);
        if *byte == b'\n' {
            out.push(b'\t');
        }
    }
}

fn write_escaped(shown: &ClientCertificate, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write_pem(shown, &mut text);
    escape(EscapeSet::UriComponent, &text, out);
}

fn write_fingerprint(shown: &ClientCertificate, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in shown.sha1().as_ref() {
        out.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
}

fn write_days_left(x509: &X509<'_>, out: &mut Vec<u8>) {
    let now_seconds = i64::try_from(net::clock::unix_ms() / 1000).unwrap_or(i64::MAX);
    out.extend_from_slice(x509.days_left(now_seconds).to_string().as_bytes());
}
