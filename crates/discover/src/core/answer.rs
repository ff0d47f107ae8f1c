//! The answers of the server.

use crate::wanted::GroupKey;

/// Which server it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweringServer {
    /// Different after a start and after a reload, which may forget lists.
    pub server: String,
    /// The groups of this owner, if the server is another one than before.
    pub owned: Vec<GroupKey>,
}

/// What the server made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAnswer {
    Made,
    /// It does not know the group.
    Unknown,
    /// The group belongs to another.
    Owned(String),
    /// The list is wrong.
    Refused(String),
    /// It cannot make this change now.
    Unmade(String),
    /// It did not answer, or makes no changes at all now.
    Failed(String),
}
