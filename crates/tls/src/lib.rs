//! TLS with clients: the settings of a server that `http {}` and `stream {}` share, and what they
//! come to.
//!
//! The directives are declared here without their prefix; each subsystem mounts them as `ssl_`.
//! Settings that `proxy_ssl_` has too have their types in [`values`]. Deliberately absent: the
//! protocol itself (`net::tls`), and which server a connection belongs to.

pub mod backend;
mod certificate_cache;
mod certificates;
pub mod client;
pub mod client_variables;
mod commands;
mod files;
mod ocsp_cache;
mod ocsp_checks;
mod ocsp_responder;
mod on_demand;
mod read_ahead;
mod server;
mod sessions;
mod slot;
mod stapling;
pub mod values;
pub mod variables;
mod verification;

use conf::{Number, Seconds, Text};

use certificate_cache::CertificateCacheRules;
use certificates::CertificateTemplate;
use commands::ConfCommand;
use files::PasswordFile;
use ocsp_cache::OcspCacheZone;
use sessions::{SessionCache, TicketKeyFile};
use values::{
    CertificateFile, NoDhparam, OcspMode, TlsCiphers, TlsGroups, TlsProtocols, VerifyClientLine,
};

pub use ocsp_checks::OcspChecks;
pub use on_demand::{DemandedCredential, OnDemandCertificates};
pub use read_ahead::read_ahead;
pub use server::{ServerTlsParts, ServerTlsSetup};
pub use slot::{CertificateSlot, MakeStandIn, SlotCertificate};
pub use verification::{ClientRefusal, ClientVerification};

conf::directives! {
    in MAIN | SERVER;

    /// A file with the server's certificate, followed by its intermediate certificates, in PEM. The
    /// private key may be in the same file. Several lines give certificates for different kinds
    /// of keys, such as RSA and ECDSA. `data:` is followed by the certificates themselves.
    ///
    /// With variables, such as `$ssl_server_name`, certificates are read during the handshake, with
    /// the rights of the worker process; see `ssl_certificate_cache`.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: keys of OpenSSL engines and stores are not supported.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    /// }
    /// ```
    certificate: Vec<CertificateTemplate>,
    /// The file with the private key of the certificate, in PEM: the first line is for the first
    /// `ssl_certificate`, and so on. RSA, ECDSA (P-256, P-384, P-521) and Ed25519 keys are
    /// supported. With variables, it is read during the handshake.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: keys of OpenSSL engines and stores are not supported.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    /// }
    /// ```
    certificate_key: Vec<CertificateTemplate>,
    /// Caches certificates and keys whose names have variables: up to `max=` files, of which those
    /// that were not used for `inactive=` (10s) make room first. After `valid=` (60s), a file that
    /// has changed is read again. Encrypted keys are not cached.
    ///
    /// Syntax: max=NUMBER [inactive=TIME] [valid=TIME]
    /// Syntax: off
    /// Default: off
    /// Differs: one cache for all workers.
    ///
    /// ```nginx
    /// ssl_certificate /etc/weir/$ssl_server_name.pem;
    /// ssl_certificate_key /etc/weir/$ssl_server_name.key;
    /// ssl_certificate_cache max=1000 inactive=20s valid=1m;
    /// ```
    certificate_cache: CertificateCacheRules = "off",
    /// Whether certificates are compressed for clients of TLS 1.3 that can decompress them.
    ///
    /// Differs: with zlib only. Brotli and Zstandard, which some clients prefer, are not supported.
    ///
    /// ```nginx
    /// ssl_certificate_compression on;
    /// ```
    certificate_compression: bool = "off",
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
    /// Whether clients that ask for it get the certificate's status along with the certificate: an
    /// OCSP response of its issuer, so that they need not ask the issuer themselves. Responses are
    /// requested when clients come, and replaced every hour; until the first one is there, clients
    /// get none. The issuer's certificate is taken from the file of `ssl_certificate`, or that of
    /// `ssl_trusted_certificate`.
    ///
    /// The responder's host is looked up by `resolver`; without one, when the configuration is
    /// read.
    ///
    /// Differs: responses outlive a reload.
    ///
    /// ```nginx
    /// ssl_stapling on;
    /// resolver 127.0.0.1;
    /// ```
    stapling: bool = "off",
    /// A file with the response for `ssl_stapling`, in DER. The responder is not asked then.
    ///
    /// Syntax: FILE
    stapling_file: Option<CertificateFile>,
    /// The URL of the responder for `ssl_stapling`, instead of the one in the certificate. Only
    /// `http://` is possible.
    ///
    /// Syntax: URL
    ///
    /// ```nginx
    /// ssl_stapling_responder http://ocsp.example.com/;
    /// ```
    stapling_responder: Option<Text>,
    /// Whether responses for `ssl_stapling` have to be signed by the issuer of the certificate, or
    /// by a responder that it has authorized. If not, the signer's certificate in the response is
    /// enough.
    ///
    /// Differs: the issuer in the file of `ssl_certificate` is trusted, also without
    /// `ssl_trusted_certificate`.
    ///
    /// ```nginx
    /// ssl_stapling_verify on;
    /// ```
    stapling_verify: bool = "off",
    /// Where sessions are kept for clients that resume one without a ticket. `shared` caches belong
    /// to all workers, and servers may use the same one; a session is found only by the server that
    /// it was made with.
    ///
    /// Syntax: off | none | builtin[:NUMBER] | [builtin[:NUMBER]] shared:NAME:SIZE
    /// Differs: `builtin` is one cache for all workers, too; beside `shared` it has no effect.
    ///
    /// ```nginx
    /// ssl_session_cache shared:tls:10m;
    /// ```
    session_cache: SessionCache = "none",
    /// Whether clients get session tickets, with which they resume a session.
    ///
    /// ```nginx
    /// ssl_session_tickets off;
    /// ```
    session_tickets: bool = "on",
    /// A file with the key of session tickets: 48 or 80 random bytes. The key of the first line
    /// encrypts, the others only decrypt. Without a file, keys are made by the program, change
    /// every hour, and are shared by all workers, also after a reload or an upgrade.
    ///
    /// Syntax: FILE
    /// Differs: tickets are not those of nginx, so nginx and Weir cannot resume each other's
    /// sessions.
    ///
    /// ```nginx
    /// ssl_session_ticket_key /etc/weir/ticket.key;
    /// ```
    session_ticket_key: Vec<TicketKeyFile>,
    /// How long a session can be resumed.
    ///
    /// ```nginx
    /// ssl_session_timeout 1h;
    /// ```
    session_timeout: Seconds = "300s",
    /// A file with passwords of private keys, one in a line. Each is tried.
    ///
    /// Syntax: FILE
    ///
    /// ```nginx
    /// ssl_password_file /etc/weir/tls.pass;
    /// ```
    password_file: Option<PasswordFile>,
    /// Parameters for key exchange by finite-field Diffie-Hellman.
    ///
    /// Syntax: FILE
    /// Differs: no effect, with a warning; such suites do not exist, and the file is not read.
    dhparam: Option<NoDhparam>,
    /// A command of OpenSSL's configuration. `Ciphersuites` selects suites of TLS 1.3,
    /// `CipherString` those of TLS 1.2, and `Groups` or `Curves` the groups. `Protocol`,
    /// `MinProtocol` and `MaxProtocol` turn versions on and off; `Certificate` and `PrivateKey` are
    /// a certificate and its key. `Options` takes `SessionTicket` and `ServerPreference`.
    ///
    /// Syntax: NAME VALUE
    /// Differs: other commands have no effect, with a warning.
    ///
    /// ```nginx
    /// ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    /// ```
    conf_command: Vec<ConfCommand>,
    /// Whether clients are asked for a certificate, which `ssl_client_certificate` and
    /// `ssl_trusted_certificate` have to trust. With `on` they need one, with `optional` they may
    /// have one. `optional_no_ca` also admits one whose authority is unknown: then
    /// `$ssl_client_verify` says whether it is trusted, and something else has to decide. In
    /// `http {}` a client that is not admitted gets 400, for which `error_page` has the statuses
    /// 495 (not trusted) and 496 (none). In `stream {}` its connection is closed.
    ///
    /// Differs: `$ssl_client_verify` and the reply go by the files of the server that the request
    /// belongs to, also where the handshake was another server's because the client has named none.
    /// A session that is resumed is verified again. RSA keys need 2048 bits.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    ///     ssl_verify_client on;
    ///     ssl_client_certificate /etc/weir/clients.pem;
    /// }
    /// ```
    verify_client: VerifyClientLine = "off",
    /// A file with the certificates of the authorities that clients' certificates are trusted by,
    /// in PEM. Their names are sent to clients, which choose a certificate by them.
    ///
    /// Syntax: FILE
    /// Differs: a wildcard is excluded with each name that it stands for (name constraints).
    ///
    /// ```nginx
    /// ssl_client_certificate /etc/weir/clients.pem;
    /// ```
    client_certificate: Option<CertificateFile>,
    /// A file with further trusted certificates, in PEM, whose names are not sent to clients.
    ///
    /// Syntax: FILE
    ///
    /// ```nginx
    /// ssl_trusted_certificate /etc/weir/more-clients.pem;
    /// ```
    trusted_certificate: Option<CertificateFile>,
    /// How many certificates may stand between a client's and the trusted one.
    ///
    /// ```nginx
    /// ssl_verify_depth 2;
    /// ```
    verify_depth: Number = "1",
    /// A file with lists of revoked certificates, in PEM. Each authority in a client's chain must
    /// have one.
    ///
    /// Syntax: FILE
    ///
    /// ```nginx
    /// ssl_crl /etc/weir/revoked.pem;
    /// ```
    crl: Option<CertificateFile>,
    /// Whether the responders (OCSP) of their issuers are asked if clients' certificates were
    /// revoked: with `on` about all certificates of the chain but the trusted one, with `leaf`
    /// about the client's own. They are asked after the handshake, once for each connection. A
    /// client whose certificate was revoked, or whose responder does not answer, is turned away
    /// like one that is not trusted. The responder's host is looked up by `resolver`.
    ///
    /// Differs: a request on a connection whose handshake was that of a server without `ssl_ocsp`
    /// is refused.
    ///
    /// ```nginx
    /// server {
    ///     listen 443 ssl;
    ///     ssl_certificate /etc/weir/example.com.pem;
    ///     ssl_certificate_key /etc/weir/example.com.key;
    ///     ssl_verify_client on;
    ///     ssl_client_certificate /etc/weir/clients.pem;
    ///     ssl_ocsp on;
    ///     resolver 127.0.0.1;
    /// }
    /// ```
    ocsp: OcspMode = "off",
    /// The URL of the responder for `ssl_ocsp`, instead of those in the certificates. Only
    /// `http://` is possible.
    ///
    /// Syntax: URL
    ///
    /// ```nginx
    /// ssl_ocsp_responder http://ocsp.example.com/;
    /// ```
    ocsp_responder: Option<Text>,
    /// A cache of the statuses that responders gave, for all workers, used as long as the
    /// responses are valid, or an hour. Servers may use the same one.
    ///
    /// ```nginx
    /// ssl_ocsp_cache shared:ocsp:10m;
    /// ```
    ocsp_cache: OcspCacheZone = "off",
}
