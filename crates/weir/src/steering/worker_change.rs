//! A change as every worker process makes it, as bytes on the way.

use http::CachePurgeChange;
use session::keyval::KeyvalChange;
use upstream::roster::GroupChange;

/// A change that every worker process makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerChange {
    /// Of the servers of a group.
    Servers(GroupChange),
    /// Of a table of `keyval`.
    Keyval(KeyvalChange),
    /// Of what a cache has.
    Purge(CachePurgeChange),
}

const SERVERS: u8 = 0;
const KEYVAL: u8 = 1;
const PURGE: u8 = 2;

impl WorkerChange {
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, bytes) = match self {
            Self::Servers(change) => (SERVERS, change.to_bytes()),
            Self::Keyval(change) => (KEYVAL, change.to_bytes()),
            Self::Purge(change) => (PURGE, change.to_bytes()),
        };
        [&[kind], &*bytes].concat()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&SERVERS, rest) => GroupChange::from_bytes(rest).map(Self::Servers),
            (&KEYVAL, rest) => KeyvalChange::from_bytes(rest).map(Self::Keyval),
            (&PURGE, rest) => CachePurgeChange::from_bytes(rest).map(Self::Purge),
            _ => None,
        }
    }
}
