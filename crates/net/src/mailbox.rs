//! Messages to a worker from other threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, lock};

/// The receiving end, used by a worker.
pub struct Mailbox<T>(Arc<Mutex<Mail<T>>>);

/// The sending end, used by other threads.
pub struct MailboxSender<T>(Arc<Mutex<Mail<T>>>);

struct Mail<T> {
    messages: VecDeque<T>,
    senders: usize,
    is_open: bool,
    /// The task that waits for a message, or for the last sender to be dropped.
    receiver: Option<Waker>,
}

/// A connected pair.
pub fn mailbox<T>() -> (MailboxSender<T>, Mailbox<T>) {
    let messages = VecDeque::new();
    let mail = Arc::new(Mutex::new(Mail { messages, senders: 1, is_open: true, receiver: None }));
    (MailboxSender(mail.clone()), Mailbox(mail))
}

impl<T> Mailbox<T> {
    /// The next message; `None` once all senders are dropped.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next message; `None` once all senders are dropped.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut mail = lock(&self.0);
        match mail.messages.pop_front() {
            None if mail.senders > 0 => {
                mail.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            next => Poll::Ready(next),
        }
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let mut mail = lock(&self.0);
        mail.is_open = false;
        let messages = std::mem::take(&mut mail.messages);
        drop(mail);
        // Dropped without the lock: a message may contain a sender of this mailbox.
        drop(messages);
    }
}

impl<T> MailboxSender<T> {
    /// Sends a message; dropped if the mailbox is gone.
    pub fn send(&self, message: T) {
        let mut mail = lock(&self.0);
        if mail.is_open {
            mail.messages.push_back(message);
            let receiver = mail.receiver.take();
            drop(mail);
            receiver.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        lock(&self.0).senders += 1;
        Self(self.0.clone())
    }
}

impl<T> Drop for MailboxSender<T> {
    fn drop(&mut self) {
        let mut mail = lock(&self.0);
        mail.senders -= 1;
        if mail.senders == 0 {
            let receiver = mail.receiver.take();
            drop(mail);
            receiver.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(all(not(weir_loom), test))]
mod tests {
    use std::thread;

    use super::*;
    use crate::event_loop;

    #[test]
    fn messages_arrive_in_order_until_the_last_sender_is_dropped() {
        const SENDERS: usize = 4;
        const EACH: usize = 1_000;
        let (sender, mut mailbox) = mailbox();
        let senders: Vec<_> = (0..SENDERS).map(|_| sender.clone()).collect();
        drop(sender);
        let threads = senders.into_iter().enumerate().map(|(which, sender)| {
            thread::spawn(move || (0..EACH).for_each(|count| sender.send((which, count))))
        });
        let threads: Vec<_> = threads.collect();
        event_loop::run(async {
            let mut next = [0; SENDERS];
            while let Some((which, count)) = mailbox.next().await {
                assert_eq!(count, next[which], "in their order");
                next[which] += 1;
            }
            assert_eq!(next, [EACH; SENDERS]);
        })
        .unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn messages_without_a_receiver_are_dropped() {
        let (sender, mailbox) = mailbox();
        let kept = Arc::new(());
        sender.send(kept.clone());
        drop(mailbox);
        sender.send(kept.clone());
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}

#[cfg(all(weir_loom, test))]
mod loom {
    use ::loom::future::block_on;
    use ::loom::thread;

    use super::*;

    /// Preemptions per execution, so that the model ends within seconds.
    const PREEMPTIONS: usize = 2;

    #[test]
    fn no_message_is_missed_and_the_end_is_seen() {
        let mut model = ::loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let (sender, mut mailbox) = mailbox();
            let other = sender.clone();
            let threads = [sender, other].map(|sender| thread::spawn(move || sender.send(1)));
            let received = block_on(async {
                let mut received = 0;
                while let Some(message) = mailbox.next().await {
                    received += message;
                }
                received
            });
            assert_eq!(received, 2);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
