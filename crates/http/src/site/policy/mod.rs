//! Settings of a location that the pipeline and the drivers read, as plain values.
//!
//! Features declare the directives and set these values. Settings that only one feature reads are
//! in [`OwnSettings`], under a type of the feature's own.

mod client_body;
mod error_pages;
mod keepalive;
mod limit_rate;
mod lingering;
mod output;
mod own;
mod redirect;
mod root;
mod types;

use std::sync::Arc;

use ::upstream::ResolverPolicy;
use conf::Predicates;
use observe::ErrorLog;

pub(crate) use client_body::{ClientBody, InFileOnly};
pub(crate) use error_pages::{ErrorPage, ErrorPages};
pub(crate) use keepalive::{Browsers, Keepalive, MSIE6, SAFARI, is_msie6};
pub(crate) use limit_rate::LimitRate;
pub(crate) use lingering::{Close, Lingering};
pub(crate) use output::Output;
pub(crate) use own::OwnSettings;
pub(crate) use redirect::RedirectPolicy;
pub(crate) use root::{Root, StandsFor};
pub(crate) use types::{Types, extension_order};

use crate::files::Access;

conf::words! {
    /// What the server reveals of itself.
    #[derive(Default)]
    pub enum ServerTokens {
        /// Its name.
        Off = "off",
        /// Its name and version.
        #[default]
        On = "on",
        /// Its name, version and build name. This program has no build name.
        Build = "build",
    }
}

/// The settings of a location that more than one feature reads.
#[derive(Default)]
pub struct Policy {
    /// `root` or `alias`.
    pub root: Option<Root>,
    /// `error_log` of this or an outer level.
    pub error_log: Arc<ErrorLog>,
    pub types: Types,
    /// The type of files without a known extension.
    pub default_type: Arc<[u8]>,
    pub server_tokens: ServerTokens,
    pub early_hints: Option<Predicates>,
    pub keepalive: Keepalive,
    /// Bodies of requests.
    pub client_body: ClientBody,
    /// Writing to the client.
    pub output: Output,
    pub http2_chunk_size: usize,
    pub limit_rate: LimitRate,
    pub lingering: Lingering,
    /// URLs in redirects.
    pub redirect: RedirectPolicy,
    pub satisfy_any: bool,
    pub auth_delay_ms: u64,
    pub internal: bool,
    pub uninitialized_variable_warn: bool,
    pub(crate) error_pages: ErrorPages,
    pub log_subrequest: bool,
    pub post_action: Option<Arc<[u8]>>,
    pub log_not_found: bool,
    /// Whether the phases of requests are measured here.
    pub timed: bool,
    pub etag: bool,
    pub gzip_vary: bool,
    /// How files are looked up.
    pub files: Access,
    /// `resolver`
    pub names: ResolverPolicy,
    /// Settings of single features.
    pub(crate) own: OwnSettings,
}

impl Policy {
    pub fn root(&self) -> &Root {
        self.root.as_ref().expect("every location has a root")
    }

    /// The name of the server in pages and fields.
    pub fn server_token(&self) -> &'static str {
        match self.server_tokens {
            ServerTokens::Off => crate::identity::identity().name,
            ServerTokens::On | ServerTokens::Build => crate::identity::token(),
        }
    }
}
