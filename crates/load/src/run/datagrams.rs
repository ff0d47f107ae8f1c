//! A client of an echo server over UDP.
//!
//! It sends one datagram at a time. After a timeout it uses a new socket, so that a late reply is
//! not mistaken for the next one.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use net::{Address, Datagram, Timer};

use super::failure::{RunFailure, rest_after};
use super::pace::PaceClient;
use super::shared::ThreadShared;

const DATAGRAM_MAX: usize = 65_536;

pub(super) struct DatagramClient {
    shared: Rc<ThreadShared>,
    client: Rc<PaceClient>,
    server: SocketAddr,
    from: Option<SocketAddr>,
    timer: Timer,
    buffer: Vec<u8>,
}

impl DatagramClient {
    /// Client `number`, counted over all threads; `None` for a server without an IP address.
    pub(super) fn new(shared: Rc<ThreadShared>, address: &Address, number: u64) -> Option<Self> {
        let Address::Ip(server) = *address else { return None };
        Some(Self {
            client: shared.pace.add_client(),
            from: shared.plan.source(number).map(|ip| SocketAddr::new(ip, 0)),
            server,
            timer: Timer::new(),
            buffer: vec![0; DATAGRAM_MAX],
            shared,
        })
    }

    /// Runs turns until it is stopped.
    pub(super) async fn run(mut self) {
        self.shared.pace.done();
        let mut socket = None;
        loop {
            let turn = poll_fn(|cx| self.shared.pace.poll_turn(&self.client, cx)).await;
            let begun = turn.intended.unwrap_or_else(Instant::now);
            if turn.intended.is_some() && turn.in_time {
                self.shared.is_late(begun.elapsed());
            }
            let done = self.exchange(&mut socket, begun).await;
            if let Err(failure) = done {
                socket = None;
                failure.count(1, &mut self.shared.tally.borrow_mut().errors);
            }
            self.shared.pace.done();
            if let Err(failure) = done {
                rest_after(failure).await;
            }
        }
    }

    async fn exchange(
        &mut self,
        socket: &mut Option<Datagram>,
        begun: Instant,
    ) -> Result<(), RunFailure> {
        let socket = match socket {
            Some(socket) => socket,
            None => {
                let opened = Datagram::connect_from(self.from, self.server);
                socket.insert(opened.map_err(|(_, error)| RunFailure::of_connect(&error))?)
            }
        };
        let shared = Rc::clone(&self.shared);
        let sent = &shared.plan.mix.at(shared.next_number()).bytes;
        // The kernel reports a closed port at the next call.
        socket.send(sent).map_err(|error| of_datagram(&error, RunFailure::Write))?;
        self.timer.set(shared.plan.timeout_ms());
        let received = {
            let mut receiving = pin!(socket.receive(&mut self.buffer));
            let received = poll_fn(|cx| match receiving.as_mut().poll(cx) {
                Poll::Ready(received) => {
                    Poll::Ready(received.map_err(|error| of_datagram(&error, RunFailure::Reset)))
                }
                Poll::Pending => self.timer.poll(cx).map(|()| Err(RunFailure::Timeout)),
            });
            received.await?
        };
        shared.tally.borrow_mut().bytes += received as u64;
        if self.buffer[..received] != sent[..] {
            return Err(RunFailure::Invalid);
        }
        shared.replied(0, begun, Instant::now());
        Ok(())
    }
}

fn of_datagram(error: &io::Error, otherwise: RunFailure) -> RunFailure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => RunFailure::Refused,
        _ => otherwise,
    }
}
