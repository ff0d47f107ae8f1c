//! What an exchange is to its client, and the subrequests that it has of its own.

use std::cell::Cell;
use std::rc::Rc;

use wire::Method;

use super::Exchange;
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

/// The subrequests of an exchange.
#[derive(Default)]
pub(crate) struct Subrequests {
    /// The memory of one that is over.
    pub(crate) spare: Option<Box<Exchange>>,
    /// Those that run beside it, each in a task of its own.
    pub(crate) background: Background,
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

    /// Waits until all have ended; whether the connection may be used on.
    async fn ended(&mut self) -> bool {
        let mut all_ended = true;
        for task in &mut self.tasks {
            all_ended &= task.ended().await;
        }
        self.tasks.clear();
        all_ended && !self.breaks.take()
    }

    fn stop(&mut self) {
        self.tasks.drain(..).for_each(|task| task.stop());
        self.breaks.take();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Exchange {
    /// Whether it is a subrequest.
    pub fn is_subrequest(&self) -> bool {
        matches!(self.role, Role::Sub(_))
    }

    /// The method of the main request: `$request_method`.
    pub fn main_method(&self) -> Method {
        match self.role {
            Role::Sub(origin) => origin.method,
            Role::Main | Role::PostAction => self.request.head.method,
        }
    }

    /// The location where the main request is, or was when it asked.
    pub(crate) fn main_location(&self) -> LocationId {
        match self.role {
            Role::Sub(origin) => origin.location,
            Role::Main | Role::PostAction => self.location,
        }
    }

    /// Whether subrequests run beside it.
    pub(crate) fn has_background(&self) -> bool {
        self.subrequests.as_ref().is_some_and(|own| !own.background.tasks.is_empty())
    }

    /// Waits for them; whether the connection may be used on.
    pub(crate) async fn background_ended(&mut self) -> bool {
        match &mut self.subrequests {
            Some(own) => own.background.ended().await,
            None => true,
        }
    }

    /// Ends them where they stand.
    pub(crate) fn stop_background(&mut self) {
        if let Some(own) = &mut self.subrequests {
            own.background.stop();
        }
    }
}
