//! Servers under measurement, as processes: started on their processors, always stopped at the end,
//! and the kernel's accounts of them. For `weir lab` and `cargo xtask`. Deliberately absent: the
//! kinds of servers, and the measurements.

pub mod certificate;
pub mod machine;
pub mod procfs;
pub mod server;
pub mod topology;
