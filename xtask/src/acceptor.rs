//! A listening socket on loopback whose clients are served by a function, until it is dropped.

use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};

/// A running thread with its socket.
pub(crate) struct Acceptor {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Accepts at this port, 0 being any. What `serve` holds goes when this is dropped.
    pub(crate) fn start(
        port: u16,
        mut serve: impl FnMut(TcpStream) + Send + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = spawn(move || {
            let clients = listener.incoming().take_while(|_| !told.load(Ordering::Acquire));
            clients.flatten().for_each(&mut serve);
        });
        Ok(Self { address, over, thread: Some(thread) })
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // A last client, so that it looks.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_it_keeps_is_closed_when_it_goes() {
        let mut kept = Vec::new();
        let acceptor = Acceptor::start(0, move |client| kept.push(client)).expect("a port");
        let port = acceptor.address.port();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it accepts");
        drop(acceptor);
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}
