//! What an exchange is to its client.

use wire::Method;

use crate::site::LocationId;

/// What an exchange is to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It answers the client.
    #[default]
    Main,
    /// It has answered the client, and goes on for `post_action`: its further replies are dropped.
    PostAction,
    /// It is a subrequest.
    Sub(Origin),
}

/// Where a subrequest comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The location where the main request was, whose error log is used.
    pub(crate) location: LocationId,
    /// The main request's method.
    pub(crate) method: Method,
    /// How many more subrequests may be nested in it.
    pub(crate) deeper: u8,
}
