//! Messages to a worker from other threads.

use tokio::sync::mpsc;

/// Where a worker receives.
pub struct Mailbox<T>(mpsc::UnboundedReceiver<T>);

/// What other threads keep of it.
pub struct MailboxSender<T>(mpsc::UnboundedSender<T>);

/// A new pair.
pub fn mailbox<T>() -> (MailboxSender<T>, Mailbox<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (MailboxSender(sender), Mailbox(receiver))
}

impl<T> Mailbox<T> {
    /// The next message; `None` once every sender is gone.
    pub async fn next(&mut self) -> Option<T> {
        self.0.recv().await
    }
}

impl<T> MailboxSender<T> {
    /// Sends, unless the worker is gone.
    pub fn send(&self, message: T) {
        // A worker that is gone has no use for it.
        let _ = self.0.send(message);
    }
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
