//! The rules by which replies are stored and used again: nginx's, or those of the standards.
//!
//! ```text
//! reply's fields --nginx----> Freshness --> may it be stored, until when is it fresh
//!                \-rfc9111-/                 |
//! request's fields ---request--------------> does a stored reply of that age do
//! ```
//!
//! [`nginx`] obeys each field as it reads it. [`rfc9111`] needs all fields at once; it has the
//! rules of RFC 9111 for a shared cache, with RFC 9213 (`CDN-Cache-Control`) and RFC 5861 (stale
//! replies). Which fields are stored, and how a 304 changes them, is in [`fields`].
//!
//! Deliberately absent: clocks, files and settings. Times are arguments.

pub mod control;
pub mod fields;
pub mod invalidation;
pub mod nginx;
pub mod request;
pub mod rfc9111;
mod targeted;

/// What the fields of a reply say about storing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// The last second in which the reply is fresh, since 1970; 0: the fields do not say.
    pub valid_s: i64,
    /// `stale-while-revalidate`
    pub updating_s: i64,
    /// `stale-if-error`
    pub error_s: i64,
    /// The second since which the reply ages.
    pub made_s: i64,
    /// The values of `Vary`, with `, ` between them.
    pub vary: Vec<u8>,
    /// Whether a field forbids to store it for good.
    is_refused: bool,
    /// Whether `Cache-Control` forbids to store it, unless `X-Accel-Expires` follows.
    no_cache: bool,
    /// Whether `Expires` is in the past, unless another field counts more.
    is_expired: bool,
    has_accel_expires: bool,
}

impl Freshness {
    /// Whether the reply may be stored, if it has some validity.
    pub fn is_cacheable(&self) -> bool {
        !self.is_refused && !self.no_cache && !self.is_expired
    }
}
