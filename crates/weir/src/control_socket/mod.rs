//! The control socket of the process that decides: HTTP/1.1 with JSON over a Unix socket that only
//! its owner may use.
//!
//! It reads requests and writes replies. Deliberately absent: what a request means.

mod connection;
mod place;
pub mod replies;

use std::rc::Rc;

use net::{Listener, MailboxSender, Task};
use observe::Errno;
use session::steering::SteeringCall;

use crate::log::alert;

pub use place::{ControlPlace, SocketPlace};

/// The most connections at a time; others wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;

/// A control socket that is served until this is dropped.
pub struct ControlSocket {
    place: SocketPlace,
    accepting: Task,
}

impl ControlSocket {
    /// Serves a socket. `make` turns a request into an event.
    pub fn serve<E: 'static>(
        place: SocketPlace,
        events: &MailboxSender<E>,
        make: impl Fn(SteeringCall) -> E + 'static,
    ) -> Option<Self> {
        let listener = place.listener().and_then(Listener::new);
        let listener = listener
            .inspect_err(|error| alert!("the control socket cannot be used{}", Errno(error)))
            .ok()?;
        let events = events.clone();
        let pass_on = Rc::new(move |call| events.send(make(call)));
        Some(Self { place, accepting: net::spawn(accept(listener, pass_on)) })
    }

    /// Where it is.
    pub fn place(&self) -> &SocketPlace {
        &self.place
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.accepting.stop();
    }
}

async fn accept(listener: Listener, pass_on: Rc<impl Fn(SteeringCall) + 'static>) {
    let open = Rc::new(());
    loop {
        let accepted = listener.accept().await;
        match accepted {
            Ok((socket, _)) if Rc::strong_count(&open) <= CONNECTIONS_MAX => {
                net::spawn(connection::serve(socket, pass_on.clone(), open.clone()));
            }
            // It is closed at once.
            Ok(_) => {}
            Err(error) => return alert!("accept() on the control socket failed{}", Errno(&error)),
        }
    }
}
