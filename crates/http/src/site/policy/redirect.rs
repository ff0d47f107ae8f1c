//! Settings for the URLs of redirects.

/// A location's settings for the URLs of redirects.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedirectPolicy {
    /// `absolute_redirect`: whether URLs contain scheme, host and port.
    pub(crate) absolute: bool,
    /// `server_name_in_redirect`: whether the host is the server's name.
    pub(crate) server_name: bool,
    /// `port_in_redirect`: whether URLs contain the port.
    pub(crate) port: bool,
}
