//! Subrequests that run beside their parent, each in a task of its own.

use std::cell::Cell;
use std::rc::Rc;

use super::Subrequest;
use crate::exchange::Exchange;

/// The tasks. They end with this, wherever they stand.
#[derive(Default)]
pub(super) struct Background {
    tasks: Vec<net::Task>,
    /// Whether one of them asked for the connection to be closed.
    breaks: Rc<Cell<bool>>,
}

impl Background {
    pub(super) fn start(&mut self, mut subrequest: Subrequest) {
        let breaks = self.breaks.clone();
        self.tasks.push(net::spawn(async move {
            match subrequest.run().await {
                Ok(()) => subrequest.log(),
                Err(_) => breaks.set(true),
            }
        }));
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
