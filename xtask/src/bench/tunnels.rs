//! A backend for tunnels: whoever asks is switched, answered once, and kept. No WebSocket: servers
//! between do not look at frames.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};

use std::io::Write;

use super::idle::read_to;

/// Said once by the client, and back by the backend.
pub(super) const MESSAGE: &str = "hello";

const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\n\
    Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// A running backend; dropping it closes its tunnels.
pub(super) struct Tunnels {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tunnels {
    pub(super) fn start(port: u16) -> Result<Self, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).map_err(|err| format!("{address}: {err}"))?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = Some(spawn(move || serve(&listener, &told)));
        Ok(Self { address, over, thread })
    }
}

impl Drop for Tunnels {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // A last client, so that it looks.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// One after the other: the client opens them so.
fn serve(listener: &TcpListener, over: &AtomicBool) {
    let mut kept = Vec::new();
    for client in listener.incoming() {
        if over.load(Ordering::Acquire) {
            return;
        }
        // One that fails is missed by the client.
        kept.extend(client.and_then(switch));
    }
}

fn switch(mut client: TcpStream) -> std::io::Result<TcpStream> {
    read_to(&mut client, b"\r\n\r\n")?;
    client.write_all(SWITCHED)?;
    read_to(&mut client, MESSAGE.as_bytes())?;
    client.write_all(MESSAGE.as_bytes())?;
    Ok(client)
}
