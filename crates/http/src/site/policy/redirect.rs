//! How a location names itself in redirects.

/// How a location redirects.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedirectPolicy {
    /// Whether redirects name scheme, host and port.
    pub(crate) absolute: bool,
    /// Whether they name the server by `server_name`.
    pub(crate) server_name: bool,
    /// Whether they name the port.
    pub(crate) port: bool,
}
