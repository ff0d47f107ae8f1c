//! What every location has: where files are, types, keepalive, timeouts, limits.

use std::sync::Arc;

use conf::{Milliseconds, Number, Offset, Result};
use observe::{ErrorLog, MainLog};

use crate::exchange::{Exchange, Flow};
use crate::features::error_page::ErrorPages;
use crate::features::root::Root;
use crate::features::types::Types;
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Sets where errors are logged, and from which level on.
    error_log: Option<ErrorLog>,
    /// How long an idle keepalive connection stays open.
    keepalive_timeout: Milliseconds = "75s",
    /// Requests served through one keepalive connection.
    keepalive_requests: Number = "1000",
    /// Time between two writes to the client.
    send_timeout: Milliseconds = "60s",
    /// Largest allowed body of a request; 0: any.
    client_max_body_size: Offset = "1m",
    /// Whether redirects within the server name scheme, host and port.
    absolute_redirect: bool = "on",
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
    /// Idle time of keepalive connections; 0: no keepalive.
    pub keepalive_timeout_ms: u64,
    /// Requests per connection.
    pub keepalive_requests: u64,
    /// Time between writes.
    pub send_timeout_ms: u64,
    /// Largest request body; 0: any.
    pub client_max_body_size: u64,
    /// `satisfy any`.
    pub satisfy_any: bool,
    /// `auth_delay`
    pub auth_delay_ms: u64,
    /// `internal`.
    pub internal: bool,
    /// `uninitialized_variable_warn`.
    pub uninitialized_variable_warn: bool,
    /// What is done about errors.
    pub error_pages: ErrorPages,
    /// `log_not_found`.
    pub log_not_found: bool,
    /// `etag`.
    pub etag: bool,
    /// `absolute_redirect`.
    pub absolute_redirect: bool,
    /// How files are looked at.
    pub files: crate::files::Access,
}

impl Here {
    /// The way from a path to a file.
    pub fn root(&self) -> &Root {
        self.root.as_ref().expect("every location has a root")
    }

    /// How the server names itself in pages and fields.
    pub fn server_token(&self) -> &'static str {
        crate::identity::token()
    }
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.error_log = match &conf.error_log {
        Some(log) => Arc::new(log.clone()),
        None => place.load.registry.of::<MainLog>().0.clone(),
    };
    place.core.keepalive_timeout_ms = conf.keepalive_timeout.0;
    place.core.keepalive_requests = conf.keepalive_requests.0;
    place.core.send_timeout_ms = conf.send_timeout.0;
    place.core.client_max_body_size = conf.client_max_body_size.0;
    place.core.absolute_redirect = conf.absolute_redirect;
    Ok(())
}

/// What a location asks of a request before its handlers see it.
pub(crate) fn admit(x: &mut Exchange) -> Flow {
    let here = &x.location().core;
    if here.internal && !x.internal {
        return Flow::Status(404);
    }
    let allowed = here.client_max_body_size;
    match None::<u64> {
        Some(length) if allowed != 0 && length > allowed => Flow::Status(413),
        _ => Flow::Next,
    }
}
