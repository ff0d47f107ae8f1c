//! Servers under measurement, as processes: started on their processors, stopped however the
//! measurement ends, and what the kernel accounts to them. For `weir lab` and `cargo xtask`.
//! Deliberately absent: what a server is, and what is measured.

pub mod certificate;
pub mod procfs;
pub mod server;
