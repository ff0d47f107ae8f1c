//! A free port.

use std::net::{Ipv4Addr, TcpListener};

/// A port that is free now; the server takes it a moment later.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|err| format!("a free port: {err}"))
}
