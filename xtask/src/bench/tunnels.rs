//! A backend for tunnels: whoever asks is switched, answered once, and kept. No WebSocket: servers
//! between do not look at frames.

use std::io::{Result, Write};
use std::net::TcpStream;

use super::idle::read_to;
use crate::acceptor::Acceptor;

/// Said once by the client, and back by the backend.
pub(super) const MESSAGE: &str = "hello";

const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// Starts the backend. It serves one client after the other, as they are opened.
pub(super) fn start(port: u16) -> std::result::Result<Acceptor, String> {
    let mut kept = Vec::new();
    // One that fails is missed by the client.
    let serve = move |client| kept.extend(switch(client));
    Acceptor::start(port, serve).map_err(|err| format!("port {port}: {err}"))
}

fn switch(mut client: TcpStream) -> Result<TcpStream> {
    read_to(&mut client, b"\r\n\r\n")?;
    client.write_all(SWITCHED)?;
    read_to(&mut client, MESSAGE.as_bytes())?;
    client.write_all(MESSAGE.as_bytes())?;
    Ok(client)
}
