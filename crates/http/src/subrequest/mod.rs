//! Subrequests: exchanges that request another resource of the same site for another exchange.
//!
//! ```text
//! subrequest --run--> head of the reply --the caller takes it, and pulls the body--> end
//!     |--into_body--> its body, run when it is pulled, as a part of another ([`part`])
//!     \--run_in_background--> the same in a task of the worker; the reply is dropped
//! ```
//!
//! A subrequest has its parent's client, server, request head and variables. URI, location, phases
//! and reply are its own. It borrows nothing of its parent, so it may run inside a waiting handler,
//! inside a body, or in a task of its own. Deliberately absent: a socket. It never reads more of a
//! request's body than its parent has read.
//!
//! `post_action` is here too: it is no subrequest, but runs in the same way.

mod part;
pub(crate) mod post_action;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use observe::{Level, Text};

use crate::exchange::{BackgroundTasks, Exchange, Flow, Origin, Role, Wait};
use crate::phases::{self, Ran};

/// The deepest nesting of subrequests.
pub const DEPTH_MAX: u8 = 50;

/// A subrequest. [`Exchange::end`] returns its memory to its parent.
pub(crate) struct Subrequest {
    /// The exchange, complete with the head of its reply once it has run.
    pub(crate) x: Box<Exchange>,
    /// Whether its parent survives a client disconnect, to be restored afterwards.
    outlives_client: bool,
}

impl Exchange {
    /// A `GET` of another resource, ready to run. `None`, with a line in the log: subrequests are
    /// nested too deeply.
    pub(crate) fn subrequest(&mut self, uri: &[u8], args: &[u8]) -> Option<Subrequest> {
        let deeper = match self.role {
            Role::Sub(origin) => origin.deeper,
            Role::Main | Role::PostAction => DEPTH_MAX + 1,
        };
        let Some(deeper) = deeper.checked_sub(1) else {
            let uri = Text(uri);
            let cycle = format_args!("subrequests cycle while processing \"{uri}\"");
            self.log(Level::Error, cycle);
            return None;
        };
        let (shown, args_shown) = (Text(uri), Text(args));
        self.debug(format_args!("http subrequest \"{shown}?{args_shown}\""));
        let (location, method) = (self.main_location(), self.main_method());
        let outlives_client = self.outlives_client.get();
        let spare = self.spare_subrequest.take();
        let mut x = spare.unwrap_or_else(|| {
            Box::new(Exchange::new(self.client.clone(), self.generation.clone()))
        });
        x.init_subrequest(self);
        x.role = Role::Sub(Origin { location, method, deeper });
        x.request.uri.extend_from_slice(uri);
        x.request.args.extend_from_slice(args);
        x.request.has_args = !args.is_empty();
        Some(Subrequest { x, outlives_client })
    }

    /// A subrequest for the same resource in the same location, to be answered by its backend.
    pub(crate) fn copy_of_request(&mut self) -> Option<Subrequest> {
        let (uri, args) = (self.request.uri.clone(), self.request.args.clone());
        let mut copy = self.subrequest(&uri, &args)?;
        let x = &mut copy.x;
        (x.location, x.internal) = (self.location, self.internal);
        x.captures.subject.clone_from(&self.captures.subject);
        x.captures.groups.clone_from(&self.captures.groups);
        let (own, request) = (&mut x.request, &self.request);
        own.header_only = true;
        own.head.method = request.head.method;
        own.has_args = request.has_args;
        own.uri_unchanged = request.uri_unchanged;
        own.valid_location = request.valid_location;
        Some(copy)
    }

    /// Has the backend of its location answer a subrequest in the background, as
    /// [`run_in_background`](Self::run_in_background) does with a whole one.
    pub(crate) fn ask_backend_in_background(&mut self, mut subrequest: Subrequest) {
        self.begin_in_background(&mut subrequest);
        self.start_in_background(async move {
            let x = &mut *subrequest.x;
            let generation = x.generation.clone();
            // Whatever it says, nobody is told. A reply that is stored goes on by itself.
            let _ = Wait::Backend.begin(x, &generation).await;
        });
    }

    /// Initialises a subrequest of `parent`; the caller sets the URI.
    fn init_subrequest(&mut self, parent: &mut Self) {
        self.reset(&parent.client, &parent.generation);
        (self.server, self.location) = (parent.server, parent.server().outer);
        self.request.init_subrequest(&parent.request);
        self.values.share(&mut parent.values);
        // The code that waits for a client decides whether the client is watched.
        self.outlives_client = parent.outlives_client.clone();
        self.timing = parent.timing.clone();
        self.internal = true;
        self.stage = phases::after_postread();
        self.states.begin_subrequest(&parent.states);
    }

    /// Runs a subrequest in the background. It belongs to the worker: it delays neither this
    /// exchange nor the connection's next request, and does not end with them.
    pub(crate) fn run_in_background(&mut self, mut subrequest: Subrequest) {
        self.begin_in_background(&mut subrequest);
        self.start_in_background(async move {
            if subrequest.run().await.is_ok() {
                subrequest.log();
            }
        });
    }

    fn begin_in_background(&self, subrequest: &mut Subrequest) {
        subrequest.x.outlives_client = Rc::default();
        subrequest.x.timing = None;
        subrequest.x.client = Rc::new(self.client.without_socket());
    }

    fn start_in_background(&self, task: impl Future<Output = ()> + 'static) {
        if BackgroundTasks::start(&self.generation, task).is_err() {
            let dropped = "too many background tasks, a subrequest is dropped";
            self.log(Level::Error, format_args!("{dropped}"));
        }
    }

    /// Ends a subrequest, and logs it if its last location has `log_subrequest`.
    pub(crate) fn end(&mut self, mut subrequest: Subrequest) {
        subrequest.log();
        self.outlives_client.set(subrequest.outlives_client);
        let mut x = subrequest.x;
        self.states.end_subrequest(&mut x.states);
        x.release();
        self.spare_subrequest = Some(x);
    }
}

impl Subrequest {
    /// Runs it until the head of its reply is complete; `Err`: how it ends, and its parent with it.
    pub(crate) async fn run(&mut self) -> Result<(), Flow> {
        let x = &mut *self.x;
        let mut ran = phases::run(x);
        loop {
            ran = match ran {
                Ran::Replied => return Ok(()),
                Ran::Dropped(status) => return Err(Flow::Drop(status)),
                Ran::Waits(wait) => {
                    let generation = x.generation.clone();
                    let flow = wait.begin(x, &generation).await;
                    phases::resume(x, flow)
                }
            }
        }
    }

    fn log(&mut self) {
        if self.x.location().core.log_subrequest {
            phases::log(&mut self.x);
        }
    }
}
