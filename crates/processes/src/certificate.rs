//! Self-signed certificates for servers under measurement, by openssl(1).

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an ECDSA P-256 key and a certificate of it for 127.0.0.1 and localhost.
pub fn make(key: &Path, certificate: &Path) -> Result<(), String> {
    with_key(&["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], key, certificate)
}

/// The same with an RSA key of 2048 bits.
pub fn make_rsa(key: &Path, certificate: &Path) -> Result<(), String> {
    with_key(&["rsa:2048"], key, certificate)
}

fn with_key(kind: &[&str], key: &Path, certificate: &Path) -> Result<(), String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey"]).args(kind);
    openssl.args(["-subj", "/CN=localhost", "-addext"]);
    openssl.args(["subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout"]);
    openssl.arg(key).arg("-out").arg(certificate).stdin(Stdio::null());
    let output = openssl.output().map_err(|error| format!("openssl: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}
