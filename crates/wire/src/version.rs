//! The protocol version as a number that can be compared.

/// Major × 1000 + minor, as in nginx: HTTP/1.1 is 1001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16);

impl Version {
    /// A request line without a version.
    pub const HTTP_09: Version = Version(9);
    /// HTTP/1.0.
    pub const HTTP_10: Version = Version(1000);
    /// HTTP/1.1. A minor version above 1 is greater than this and treated alike.
    pub const HTTP_11: Version = Version(1001);
    /// HTTP/2.
    pub const HTTP_2: Version = Version(2000);
    /// HTTP/3.
    pub const HTTP_3: Version = Version(3000);
}

/// A version that is not specified.
impl Default for Version {
    fn default() -> Self {
        Self::HTTP_09
    }
}
