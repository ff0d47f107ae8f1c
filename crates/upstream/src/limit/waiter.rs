//! A request in the queue.

use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::queue::{QueueEntry, WaitQueue};
use super::slots::ServerSlot;
use super::stats::WaitEnd;

/// A place in the queue. Dropping it frees the position, and a slot granted meanwhile goes to the
/// next request.
///
/// It is polled, given up and dropped on the thread whose clock [`super::JoinRequest::now_ms`]
/// came from.
pub struct Waiter<H> {
    queue: Arc<WaitQueue<H>>,
    hold: Hold<H>,
    position: u32,
    joined_ms: u64,
}

#[derive(Debug)]
pub enum WaiterAnswer<H> {
    Granted(Grant<H>),
    /// The last server that it waited for can no longer be used.
    NoServer,
}

/// A slot that was waited for.
#[derive(Debug)]
pub struct Grant<H> {
    /// The slot; it names the server.
    pub slot: ServerSlot<H>,
    /// The connection that the previous holder hands over.
    pub handoff: Option<H>,
    pub waited_ms: u64,
}

enum Hold<H> {
    /// A slot was free, so it never waited.
    Slot(ServerSlot<H>),
    Ticket(u64),
    Told,
}

impl<H> Waiter<H> {
    pub(super) fn served(queue: &Arc<WaitQueue<H>>, slot: ServerSlot<H>, joined_ms: u64) -> Self {
        Self { queue: Arc::clone(queue), hold: Hold::Slot(slot), position: 0, joined_ms }
    }

    pub(super) fn queued(
        queue: &Arc<WaitQueue<H>>,
        ticket: u64,
        position: u32,
        joined_ms: u64,
    ) -> Self {
        Self { queue: Arc::clone(queue), hold: Hold::Ticket(ticket), position, joined_ms }
    }

    /// Its position when it joined, at the server with the shortest queue: 1 is next, 0 did not
    /// have to wait.
    pub fn position(&self) -> u32 {
        self.position
    }

    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.joined_ms)
    }

    /// The result, once. Polled again after that, it is [`WaiterAnswer::NoServer`].
    pub fn poll(&mut self, context: &mut Context<'_>, now_ms: u64) -> Poll<WaiterAnswer<H>> {
        if let Hold::Ticket(ticket) = self.hold {
            let Some(entry) = self.queue.answer(ticket, context.waker()) else {
                return Poll::Pending;
            };
            self.hold = Hold::Told;
            return Poll::Ready(
                self.granted(entry, now_ms).map_or(WaiterAnswer::NoServer, WaiterAnswer::Granted),
            );
        }
        Poll::Ready(match mem::replace(&mut self.hold, Hold::Told) {
            Hold::Slot(slot) => WaiterAnswer::Granted(Grant { slot, handoff: None, waited_ms: 0 }),
            _ => WaiterAnswer::NoServer,
        })
    }

    /// Leaves because its time is over. A slot granted at the last moment is returned.
    pub fn give_up(mut self, now_ms: u64) -> Option<Grant<H>> {
        match mem::replace(&mut self.hold, Hold::Told) {
            Hold::Slot(slot) => Some(Grant { slot, handoff: None, waited_ms: 0 }),
            Hold::Told => None,
            Hold::Ticket(ticket) => match self.queue.quit(ticket)? {
                QueueEntry::Waiting(waiting) => {
                    let waited_ms = self.waited_ms(now_ms);
                    self.queue.end(&waiting.home, WaitEnd::TimedOut { waited_ms });
                    None
                }
                entry => self.granted(entry, now_ms),
            },
        }
    }

    fn granted(&self, entry: QueueEntry<H>, now_ms: u64) -> Option<Grant<H>> {
        let QueueEntry::Granted { slot, handoff, home } = entry else { return None };
        let waited_ms = self.waited_ms(now_ms);
        self.queue.end(&home, WaitEnd::Granted { waited_ms });
        Some(Grant { slot, handoff, waited_ms })
    }
}

impl<H> Drop for Waiter<H> {
    fn drop(&mut self) {
        let Hold::Ticket(ticket) = self.hold else { return };
        match self.queue.quit(ticket) {
            Some(QueueEntry::Waiting(waiting)) => self.queue.end(&waiting.home, WaitEnd::Abandoned),
            Some(QueueEntry::Granted { slot, handoff, home }) => {
                self.queue.end(&home, WaitEnd::Abandoned);
                match handoff {
                    Some(handoff) => drop(slot.release_with(handoff)),
                    None => drop(slot),
                }
            }
            Some(QueueEntry::Stranded) | None => {}
        }
    }
}

impl<H> Debug for Waiter<H> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "joined at {} ms as number {}", self.joined_ms, self.position)
    }
}
