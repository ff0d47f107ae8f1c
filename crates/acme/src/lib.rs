//! Certificates that the program obtains by itself, with ACME (RFC 8555): nginx-acme's directives,
//! for both subsystems.
//!
//! ```text
//! configuration --> AcmePlan: certificates, issuers
//!                      | adopted by the control thread's job, before any worker has it
//!                      v
//! state folder --> CertificateSlot <-- order of the certificate <--> issuer
//!                      |                     |
//!                  handshakes          published challenges --> workers
//! ```
//!
//! Names that only clients tell (`on_demand`) come by another way to the same tasks:
//!
//! ```text
//! handshake --> OnDemandNames --> OnDemandKeeper: ask, limits --> CertificateKeeper of the name
//! ```
//!
//! One task per certificate waits until it is due, takes the lock of its name, and drives
//! `wire::acme`. Nobody waits for it: a slot shows the stored certificate, even an expired one, or
//! else one that signs itself. Everything that must outlive the process is in the state folder.
//!
//! Deliberately absent: the protocol (`wire::acme`), TLS (`tls`), and requests, which `http`
//! answers from [`PublishedChallenges`].

mod account;
mod answer_names;
mod answers;
mod attempt;
mod certificate;
mod certificate_line;
mod challenges;
mod client;
mod counts;
mod crypto;
mod desk;
mod dns01;
mod dns_lines;
mod due;
mod failures;
mod handshake;
mod host_name;
mod issuer;
mod issuer_lines;
mod job;
mod key_name;
mod leftovers;
mod line_words;
mod lock;
mod now;
mod on_demand;
mod on_demand_keeper;
mod on_demand_lines;
mod on_demand_plan;
mod on_demand_rules;
mod orders;
mod pace;
mod permission;
mod plan;
mod requests;
mod shared_zone;
mod shown;
mod stand_in;
mod state_folder;
mod stored;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod variables;

pub use answer_names::is_token;
pub use certificate_line::{CertificateLine, ServerNameText};
pub use challenges::PublishedChallenges;
pub use handshake::answer_handshake;
pub use issuer_lines::{answers_http, build_issuers};
pub use job::AcmeJob;
pub use plan::{StateFolderLine, StateFolders};
pub use shown::stored_status;
pub use variables::{AcmeVariables, HasCertificateSlot};

use conf::Load;
use session::status::StatusBook;

conf::directives! {
    declare {
        /// A certificate authority that certificates are obtained from. Lines inside:
        /// - `uri URL`: the ACME directory of the authority; required
        /// - `accept_terms_of_service`: agrees to the authority's terms, which most require
        /// - `contact ADDRESS`: where the authority may write to; `mailto:` is added
        /// - `challenge http-01 | tls-alpn-01 | dns-01`: how the server shows that it has a name;
        ///   http-01
        /// - `dns_update SERVER... zone=NAME key=FILE|data:KEY [ttl=TIME]`: adds and removes
        ///   records of a zone for dns-01 by signed updates (RFC 2136). The file is one of
        ///   tsig-keygen(8); KEY is `[ALGORITHM:]NAME:SECRET`, with `hmac-sha256`, `hmac-sha384` or
        ///   `hmac-sha512`. TIME is 1m. One line for each zone
        /// - `dns_hook PROGRAM [ARGUMENT...]`: a program that does so instead, called with
        ///   `add|remove NAME VALUE` behind its own arguments
        /// - `dns_check authoritative | off | SERVER...`: who has to show the record before the
        ///   authority is told: all name servers of the zone, nobody, or these servers;
        ///   authoritative
        /// - `dns_timeout TIME`: how long the program may run, and how long it may take until the
        ///   record is seen; 2m
        /// - `staging_uri URL`: a directory of the authority for trials, where a certificate is
        ///   ordered first if the last attempt has failed
        /// - `account_key ALGORITHM[:SIZE] | FILE`: the key of the account: `ecdsa:256`,
        ///   `ecdsa:384`, `ecdsa:521`, `rsa:2048`, `rsa:3072` or `rsa:4096`, made when it is
        ///   needed, or a file
        /// - `external_account_key ID FILE | data:KEY`: binds the account to one at the
        ///   authority; the key is in base64url
        /// - `on_demand ask=URI [names=N] [new_per_hour=N] [wait=TIME] [unused=TIME]`: allows
        ///   `acme_certificate ... on_demand`. A name gets a certificate if `URI?domain=NAME`
        ///   answers 200. `names` (1000) is the most names in all, `new_per_hour` (60) the most new
        ///   ones; a handshake waits for `wait` (10s) at most; a name that no client has told for
        ///   `unused` (30d) is not renewed
        /// - `profile NAME [require]`: the profile of certificates
        /// - `preferred_chain NAME`: the chain whose topmost certificate was issued by this name
        /// - `common_name_in_csr on | off`: whether requests have a common name; off
        /// - `ssl_trusted_certificate FILE`: authorities that sign the certificate of the ACME
        ///   server; the system's if there is none
        /// - `ssl_verify on | off`: whether that certificate is verified; on
        /// - `state_path FOLDER | off`: where accounts, keys and certificates are kept; `acme_NAME`
        ///   below the prefix
        ///
        /// Differs: not in nginx's sources; as in nginx-acme. Without a `resolver`, the system
        /// looks up names. Failures outlive a reload and a restart. See docs/acme.md.
        ///
        /// ```nginx
        /// acme_issuer letsencrypt {
        ///     uri https://acme-v02.api.letsencrypt.org/directory;
        ///     accept_terms_of_service;
        /// }
        /// ```
        acme_issuer(1..=1) {} in MAIN => issuer_lines::declare;
        /// The memory for certificates that worker processes share.
        ///
        /// Syntax: zone=NAME:SIZE
        /// Differs: not in nginx's sources; as in nginx-acme. No effect: all workers are threads of
        /// one process.
        ///
        /// ```nginx
        /// acme_shared_zone zone=ngx_acme_shared:1m;
        /// ```
        acme_shared_zone(1..=1) in MAIN => shared_zone::declare;
    }

    in SERVER;

    /// Obtains a certificate and renews it. The names are those given, or those of `server_name`;
    /// `.example.com` stands for `example.com` and `www.example.com`. Wildcards need issuers with
    /// `challenge dns-01`; with those, `.example.com` stands for `example.com` and `*.example.com`.
    /// Of several issuers, the next one is asked when one is not available or has reached its
    /// limits. `key=` is the kind of key: `ecdsa:256` (default), `ecdsa:384`, `ecdsa:521`,
    /// `rsa:2048`, `rsa:3072`, `rsa:4096`.
    ///
    /// With `on_demand` instead of names, clients tell the names: a certificate is obtained in the
    /// handshake of the first client that names a host, if `on_demand ask=` of the first issuer
    /// allows it. Other clients are shown `ssl_certificate`, or one that signs itself.
    ///
    /// The server shows the certificate if it has no `ssl_certificate`, or if that is
    /// `$acme_certificate`. Until there is one, it shows one that signs itself.
    ///
    /// Syntax: ISSUER[,ISSUER...] [NAME... | on_demand] [key=ALGORITHM[:SIZE]]
    /// Differs: not in nginx's sources; as in nginx-acme, which has no lists of issuers, has no
    /// `on_demand`, and needs `ssl_certificate`.
    ///
    /// ```nginx
    /// acme_issuer letsencrypt {
    ///     uri https://acme-v02.api.letsencrypt.org/directory;
    ///     accept_terms_of_service;
    /// }
    /// server {
    ///     listen 80;
    ///     listen 443 ssl;
    ///     server_name example.com www.example.com;
    ///     acme_certificate letsencrypt;
    /// }
    /// ```
    acme_certificate: Option<CertificateLine>,
}

/// Completes the certificates of a subsystem, after all its servers were compiled.
pub fn finish(load: &mut Load<'_>) {
    let has_names = on_demand_plan::OnDemandBook::finish(load);
    if plan::PlanBook::finish(load) || has_names {
        load.own.of::<StatusBook>().show_more(shown::show);
    }
}

impl Conf {
    /// The line of a server, if it has one.
    pub fn line(&self) -> Option<&CertificateLine> {
        self.acme_certificate.as_ref()
    }
}
