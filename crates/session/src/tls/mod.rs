//! TLS with clients: the settings of a server that `http {}` and `stream {}` share, and what they
//! come to.
//!
//! The directives are declared here without their prefix; each subsystem mounts them as `ssl_`.
//! Settings that `proxy_ssl_` has too have their types in [`values`]. Deliberately absent: the
//! protocol itself (`net::tls`), and which server a connection belongs to.

mod files;
mod server;
pub mod values;

use values::{CertificateFile, TlsCiphers, TlsGroups, TlsProtocols};

pub use server::ServerTlsParts;

conf::directives! {
    in MAIN | SERVER;

    /// A file with the server's certificate, followed by its intermediate certificates, in PEM. The
    /// private key may be in the same file. Several lines give certificates for different kinds
    /// of keys, such as RSA and ECDSA. `data:` is followed by the certificates themselves.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: variables, and keys of OpenSSL engines and stores, are not supported.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    /// }
    /// ```
    certificate: Vec<CertificateFile>,
    /// The file with the private key of the certificate, in PEM: the first line is for the first
    /// `ssl_certificate`, and so on. RSA, ECDSA (P-256, P-384, P-521) and Ed25519 keys are
    /// supported.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: variables, and keys of OpenSSL engines and stores, are not supported.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    /// }
    /// ```
    certificate_key: Vec<CertificateFile>,
    /// The versions of TLS that are spoken.
    ///
    /// Differs: SSLv2, SSLv3, TLSv1 and TLSv1.1 do not exist; naming them is a warning, and naming
    /// nothing else an error.
    ///
    /// ```nginx
    /// ssl_protocols TLSv1.3;
    /// ```
    protocols: TlsProtocols = "TLSv1.2 TLSv1.3",
    /// The cipher suites of TLS 1.2, in OpenSSL's notation. The suites of TLS 1.3 are always on.
    ///
    /// Differs: there are only suites with ephemeral elliptic-curve keys and AES-GCM or
    /// ChaCha20-Poly1305. Other names select nothing; a list that leaves nothing is an error.
    ///
    /// ```nginx
    /// ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256;
    /// ```
    ciphers: TlsCiphers = "HIGH:!aNULL:!MD5",
    /// The groups to exchange keys with, best first; `auto` stands for
    /// `X25519MLKEM768:X25519:prime256v1:secp384r1`.
    ///
    /// Differs: there are X25519, prime256v1, secp384r1, X25519MLKEM768, SecP256r1MLKEM768 and
    /// MLKEM768. Others are ignored with a warning, and a list that leaves nothing is an error.
    ///
    /// ```nginx
    /// ssl_ecdh_curve X25519:prime256v1;
    /// ```
    ecdh_curve: TlsGroups = "auto",
    /// Whether the server's order of cipher suites counts instead of the client's.
    ///
    /// ```nginx
    /// ssl_prefer_server_ciphers on;
    /// ```
    prefer_server_ciphers: bool = "off",
    /// Whether the server rejects handshakes: with an `unrecognized_name` alert, and without a
    /// certificate. In the default server it keeps clients out that name no other server.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl default_server;
    ///     ssl_reject_handshake on;
    /// }
    /// ```
    reject_handshake: bool = "off",
}
