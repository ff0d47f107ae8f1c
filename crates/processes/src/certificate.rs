//! Self-signed certificates for servers under measurement, by openssl(1).

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an ECDSA P-256 key and a certificate of it for 127.0.0.1 and localhost.
pub fn make(key: &Path, certificate: &Path) -> Result<(), String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt"]);
    openssl.args(["ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost", "-addext"]);
    openssl.args(["subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout"]);
    openssl.arg(key).arg("-out").arg(certificate).stdin(Stdio::null());
    let output = openssl.output().map_err(|error| format!("openssl: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}
