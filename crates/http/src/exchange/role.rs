//! What an exchange is to its client, and what runs beside it.

use std::cell::Cell;
use std::rc::Rc;

use wire::Method;

use crate::site::LocationId;

/// What an exchange is to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It answers the client.
    #[default]
    Main,
    /// It has answered the client, and goes on for `post_action`: its further replies are dropped.
    PostAction,
    /// It is a subrequest.
    Sub(Origin),
}

/// Where a subrequest comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The location where the main request was, whose error log is used.
    pub(crate) location: LocationId,
    /// The main request's method.
    pub(crate) method: Method,
    /// How many more subrequests may be nested in it.
    pub(crate) deeper: u8,
}

/// Tasks that end with this, wherever they stand.
#[derive(Default)]
pub(crate) struct Background {
    tasks: Vec<net::Task>,
    /// Whether one of them asked for the connection to be closed.
    breaks: Rc<Cell<bool>>,
}

impl Background {
    /// Adds a task; it sets the flag to have the connection closed.
    pub(crate) fn start<F: Future<Output = ()> + 'static>(
        &mut self,
        task: impl FnOnce(Rc<Cell<bool>>) -> F,
    ) {
        self.tasks.push(net::spawn(task(self.breaks.clone())));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until all have ended; whether the connection may be used on.
    pub(super) async fn ended(&mut self) -> bool {
        let mut all_ended = true;
        for task in &mut self.tasks {
            all_ended &= task.ended().await;
        }
        self.tasks.clear();
        all_ended && !self.breaks.take()
    }

    pub(super) fn stop(&mut self) {
        self.tasks.drain(..).for_each(|task| task.stop());
        self.breaks.take();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
