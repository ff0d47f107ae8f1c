//! A request that waits in the line.

use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::line::{QueueEntry, WaitQueue};
use super::slots::ServerSlot;
use super::tally::WaitEnd;

/// A place in the queue. Dropping it frees the place, and a slot granted meanwhile goes to the next
/// request.
///
/// It is polled, given up and dropped on the thread whose clock [`super::JoinRequest::now_ms`]
/// came from.
pub struct Waiter<G> {
    line: Arc<WaitQueue<G>>,
    hold: Hold<G>,
    place: u32,
    joined_ms: u64,
}

/// What a waiter was told.
#[derive(Debug)]
pub enum WaiterAnswer<G> {
    /// It is its turn.
    Granted(Grant<G>),
    /// The last server it waited for cannot be used any more.
    NoServer,
}

/// A slot, got by waiting.
#[derive(Debug)]
pub struct Grant<G> {
    /// The slot, and with it which server.
    pub slot: ServerSlot<G>,
    /// What the previous holder left for this server.
    pub gift: Option<G>,
    /// How long it took.
    pub waited_ms: u64,
}

enum Hold<G> {
    /// A slot was free, so it never waited.
    Slot(ServerSlot<G>),
    Ticket(u64),
    Told,
}

impl<G> Waiter<G> {
    pub(super) fn served(line: &Arc<WaitQueue<G>>, slot: ServerSlot<G>, joined_ms: u64) -> Self {
        Self { line: Arc::clone(line), hold: Hold::Slot(slot), place: 0, joined_ms }
    }

    pub(super) fn queued(
        line: &Arc<WaitQueue<G>>,
        ticket: u64,
        place: u32,
        joined_ms: u64,
    ) -> Self {
        Self { line: Arc::clone(line), hold: Hold::Ticket(ticket), place, joined_ms }
    }

    /// Its place when it joined, at the server with the shortest line: 1 is the next to be served,
    /// 0 did not have to wait.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// How long it has waited.
    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.joined_ms)
    }

    /// The answer, once; until then the waker is called when there is one. Whoever asks again after
    /// the answer hears [`WaiterAnswer::NoServer`].
    pub fn poll(&mut self, context: &mut Context<'_>, now_ms: u64) -> Poll<WaiterAnswer<G>> {
        if let Hold::Ticket(ticket) = self.hold {
            let Some(entry) = self.line.answer(ticket, context.waker()) else {
                return Poll::Pending;
            };
            self.hold = Hold::Told;
            return Poll::Ready(
                self.granted(entry, now_ms).map_or(WaiterAnswer::NoServer, WaiterAnswer::Granted),
            );
        }
        Poll::Ready(match mem::replace(&mut self.hold, Hold::Told) {
            Hold::Slot(slot) => WaiterAnswer::Granted(Grant { slot, gift: None, waited_ms: 0 }),
            _ => WaiterAnswer::NoServer,
        })
    }

    /// Leaves, since its time is over; a grant that came in the last moment is not lost.
    pub fn give_up(mut self, now_ms: u64) -> Option<Grant<G>> {
        match mem::replace(&mut self.hold, Hold::Told) {
            Hold::Slot(slot) => Some(Grant { slot, gift: None, waited_ms: 0 }),
            Hold::Told => None,
            Hold::Ticket(ticket) => match self.line.quit(ticket)? {
                QueueEntry::Waiting(waiting) => {
                    let waited_ms = self.waited_ms(now_ms);
                    self.line.end(&waiting.home, WaitEnd::TimedOut { waited_ms });
                    None
                }
                entry => self.granted(entry, now_ms),
            },
        }
    }

    fn granted(&self, entry: QueueEntry<G>, now_ms: u64) -> Option<Grant<G>> {
        let QueueEntry::Granted { slot, gift, home } = entry else { return None };
        let waited_ms = self.waited_ms(now_ms);
        self.line.end(&home, WaitEnd::Granted { waited_ms });
        Some(Grant { slot, gift, waited_ms })
    }
}

impl<G> Drop for Waiter<G> {
    fn drop(&mut self) {
        let Hold::Ticket(ticket) = self.hold else { return };
        match self.line.quit(ticket) {
            Some(QueueEntry::Waiting(waiting)) => self.line.end(&waiting.home, WaitEnd::Abandoned),
            Some(QueueEntry::Granted { slot, gift, home }) => {
                self.line.end(&home, WaitEnd::Abandoned);
                match gift {
                    Some(gift) => drop(slot.release_with(gift)),
                    None => drop(slot),
                }
            }
            Some(QueueEntry::Stranded) | None => {}
        }
    }
}

impl<G> Debug for Waiter<G> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "joined at {} ms as number {}", self.joined_ms, self.place)
    }
}
