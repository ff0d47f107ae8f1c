//! What every location has: where files are, types, logs, names; and what the driver asks of one.

use std::sync::Arc;

use conf::{Predicates, Result};
use observe::{ErrorLog, MainLog};

use crate::exchange::{Exchange, Flow};
use crate::features::error_page::ErrorPages;
use crate::features::root::Root;
use crate::features::types::Types;
use crate::features::{
    charset, client_body, keepalive, limit_rate, lingering, output, redirect, referer, resolver,
    secure_link, userid,
};
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Where errors of requests are logged, and from which level on. It replaces the main
    /// `error_log` here.
    ///
    /// Syntax: FILE | stderr | syslog:server=ADDRESS[,...] [LEVEL]
    /// Default: that of the block around
    ///
    /// ```nginx
    /// server {
    ///     error_log /var/log/weir/example.com.log;
    /// }
    /// ```
    error_log: Option<ErrorLog>,
    /// What the field `Server` and error pages say: the name and version (`on`), the name (`off`),
    /// or also the name of the build (`build`).
    ///
    /// Differs: the name is Weir's own unless the program is called `nginx`.
    ///
    /// ```nginx
    /// server_tokens off;
    /// ```
    server_tokens: ServerTokens = "on",
    /// Passes responses 103 of a backend on to the client if one of these is neither empty nor `0`.
    early_hints: Option<Predicates>,
}

conf::words! {
    /// How much the server says of itself.
    #[derive(Default)]
    pub enum ServerTokens {
        /// Its name.
        Off = "off",
        /// Its name and version.
        #[default]
        On = "on",
        /// With the name of the build, which nobody has given ours.
        Build = "build",
    }
}

/// What the core and the driver ask of a location.
#[derive(Default)]
pub struct Here {
    /// `root` or `alias`.
    pub root: Option<Root>,
    /// `error_log` of this or an outer level.
    pub error_log: Arc<ErrorLog>,
    /// MIME types by extension.
    pub types: Types,
    /// The type of what has no known extension.
    pub default_type: Arc<[u8]>,
    /// `server_tokens`
    pub server_tokens: ServerTokens,
    /// `early_hints`
    pub early_hints: Option<Predicates>,
    /// Keeping connections.
    pub keepalive: keepalive::Keepalive,
    /// Bodies of requests.
    pub client_body: client_body::ClientBody,
    /// Writing to the client.
    pub output: output::Output,
    /// How fast.
    pub limit_rate: limit_rate::LimitRate,
    /// Closing while the client sends.
    pub lingering: lingering::Lingering,
    /// From paths to URLs.
    pub redirect: redirect::Redirect,
    /// `satisfy any`.
    pub satisfy_any: bool,
    /// `auth_delay`
    pub auth_delay_ms: u64,
    /// `valid_referers`
    pub referers: referer::Referers,
    /// `secure_link` and its companions.
    pub secure_link: secure_link::SecureLink,
    /// `userid`
    pub userid: userid::UserId,
    /// `internal`.
    pub internal: bool,
    /// `uninitialized_variable_warn`.
    pub uninitialized_variable_warn: bool,
    /// What is done about errors.
    pub error_pages: ErrorPages,
    /// `log_subrequest`.
    pub log_subrequest: bool,
    /// `subrequest_output_buffer_size`.
    pub subrequest_output_buffer_size: u64,
    /// `post_action`.
    pub post_action: Option<Arc<[u8]>>,
    /// `log_not_found`.
    pub log_not_found: bool,
    /// `etag`.
    pub etag: bool,
    /// `charset`.
    pub charset: charset::Announced,
    /// How files are looked at.
    pub files: crate::files::Access,
    /// `resolver`
    pub names: resolver::Names,
    /// `health_check`
    pub health_check: Option<Arc<crate::health::LocationCheck>>,
}

impl Here {
    /// The way from a path to a file.
    pub fn root(&self) -> &Root {
        self.root.as_ref().expect("every location has a root")
    }

    /// How the server names itself in pages and fields.
    pub fn server_token(&self) -> &'static str {
        match self.server_tokens {
            ServerTokens::Off => crate::identity::identity().name,
            ServerTokens::On | ServerTokens::Build => crate::identity::token(),
        }
    }
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.error_log = match &conf.error_log {
        Some(log) => Arc::new(log.clone()),
        None => place.load.registry.of::<MainLog>().0.clone(),
    };
    place.core.server_tokens = conf.server_tokens;
    place.core.early_hints = conf.early_hints.clone();
    Ok(())
}

/// What a location asks of a request before its handlers see it.
pub(crate) fn admit(x: &mut Exchange) -> Flow {
    let here = &x.location().core;
    if here.internal && !x.internal {
        return Flow::Status(404);
    }
    x.keepalive = x.keepalive && here.keepalive.admits(x);
    client_body::admit(x)
}
