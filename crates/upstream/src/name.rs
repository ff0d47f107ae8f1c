//! The name of a group, under which its state outlives configurations.

use conf::Subsystem;

/// The name of a group. Groups of different subsystems share nothing, whatever their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupName {
    pub subsystem: Subsystem,
    pub name: Box<[u8]>,
}

impl GroupName {
    /// The name of a group of this subsystem.
    pub fn new(subsystem: Subsystem, name: &[u8]) -> Self {
        Self { subsystem, name: name.into() }
    }

    /// The name under which the group counts.
    pub fn metric_name(&self) -> Vec<u8> {
        let subsystem: &[u8] = match self.subsystem {
            Subsystem::Main => b"main",
            Subsystem::Http => b"http",
            Subsystem::Stream => b"stream",
        };
        [subsystem, &self.name].join(&0)
    }
}
