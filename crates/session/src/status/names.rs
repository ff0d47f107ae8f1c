//! The names under which zones are counted.

use conf::Subsystem;

/// Zones of servers and of locations have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneLevel {
    Server,
    Location,
}

/// The name of a zone's metric; `key`: of one value of its key.
pub(super) fn metric_name(
    subsystem: Subsystem,
    level: ZoneLevel,
    zone: &[u8],
    key: Option<&[u8]>,
) -> Vec<u8> {
    let level = match (subsystem, level) {
        (Subsystem::Stream, _) => b"stream\0",
        (_, ZoneLevel::Server) => b"server\0",
        (_, ZoneLevel::Location) => b"place\0\0",
    };
    let mut name = [&level[..], zone].concat();
    if let Some(key) = key {
        name.push(0);
        name.extend_from_slice(key);
    }
    name
}
