//! The role of an exchange for its client.

use wire::Method;

use crate::site::LocationId;

/// The role of an exchange for its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It answers the client.
    #[default]
    Main,
    /// It has answered the client, and continues with `post_action`: further replies are dropped.
    PostAction,
    Sub(Origin),
}

/// The main request of a subrequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The location of the main request, whose error log is used.
    pub(crate) location: LocationId,
    pub(crate) method: Method,
    /// How many more subrequests may be nested inside.
    pub(crate) deeper: u8,
}
