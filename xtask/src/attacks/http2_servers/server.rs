//! A server of HTTP/2 with an attack: its listener, and what is asked of all its connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::attack::ServerAttack;
use super::connection;
use super::state::{HostileState, ServerEvent};

const HELD_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Ends with the value, and so do its connections.
pub(super) struct HostileServer {
    pub(super) address: SocketAddr,
    shared: Arc<HostileState>,
    thread: Option<JoinHandle<()>>,
}

impl HostileServer {
    pub(super) fn start(attack: &'static ServerAttack) -> Result<Self, String> {
        let fail = |err: io::Error| err.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let shared = Arc::<HostileState>::default();
        let state = shared.clone();
        let thread = Some(thread::spawn(move || accept(&listener, attack, &state)));
        Ok(Self { address, shared, thread })
    }

    /// Waits until a reply waits for its second half.
    pub(super) fn await_held(&self) -> Result<(), String> {
        await_count(&self.shared.held, 1)
    }

    /// Waits until so many large replies are not read.
    pub(super) fn await_stalled(&self, count: usize) -> Result<(), String> {
        await_count(&self.shared.stalled, count)
    }

    /// Sends the second halves.
    pub(super) fn release(&self) {
        self.shared.tell(|| ServerEvent::Release);
    }
}

fn await_count(count: &AtomicUsize, least: usize) -> Result<(), String> {
    let end = Instant::now() + HELD_MAX;
    while count.load(Ordering::SeqCst) < least {
        if Instant::now() > end {
            return Err("requests did not get that far".to_owned());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.tell(|| ServerEvent::Over);
        let _ = TcpStream::connect(self.address);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn accept(listener: &TcpListener, attack: &'static ServerAttack, shared: &Arc<HostileState>) {
    let mut threads = Vec::new();
    for socket in listener.incoming() {
        if shared.is_over() {
            break;
        }
        let Ok(socket) = socket else { continue };
        let (sender, events) = std::sync::mpsc::channel();
        shared.senders.lock().unwrap_or_else(PoisonError::into_inner).push(sender.clone());
        let state = shared.clone();
        threads.push(thread::spawn(move || {
            // A client that has closed the connection is told nothing more.
            let _ = connection::serve(socket, attack, &state, sender, &events);
        }));
    }
    // Its connections were told by then, or see it at their start.
    shared.tell(|| ServerEvent::Over);
    threads.into_iter().for_each(|thread| drop(thread.join()));
}
