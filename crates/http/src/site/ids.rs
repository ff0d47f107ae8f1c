//! Numbers by which exchanges name parts of their site.

/// The number of a location in its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationId(pub u32);

/// The number of a virtual server in its site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerId(pub u32);
