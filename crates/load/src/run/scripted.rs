//! A thread's script during a run: it provides requests and receives replies.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::plan::ScriptPlan;
use crate::replies::ScriptReply;
use crate::script::{Script, ScriptError, requests_in};

pub(super) struct Scripted {
    script: Script,
    /// The result of the first call of `request`. Without a `request` function, it is used for all
    /// requests.
    first: RefCell<Option<Vec<u8>>>,
    /// The number of requests that it returns at once.
    at_once: Cell<u64>,
}

impl Scripted {
    /// Loads the script into a state of this thread.
    pub(super) fn load(plan: &ScriptPlan) -> Result<Self, ScriptError> {
        let script = Script::load(&plan.name, &plan.source, &plan.target)?;
        if let Some(address) = plan.target.addrs.first() {
            script.set_addr(*address);
        }
        Ok(Self { script, first: RefCell::default(), at_once: Cell::new(1) })
    }

    /// The state, for other threads.
    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Gets a first request, after `init` has run.
    pub(super) fn begin(&self) -> Result<(), ScriptError> {
        let mut first = Vec::new();
        self.script.request(&mut first)?;
        self.at_once.set(requests_in(&first)? as u64);
        *self.first.borrow_mut() = Some(first);
        Ok(())
    }

    /// The number of requests to send together.
    pub(super) fn at_once(&self) -> u64 {
        self.at_once.get()
    }

    /// Appends the next requests. Returns whether the script has stopped the thread.
    pub(super) fn fill(&self, output: &mut Vec<u8>) -> Result<bool, ScriptError> {
        let mut first = self.first.borrow_mut();
        if !self.script.has_request()
            && let Some(bytes) = &*first
        {
            output.extend_from_slice(bytes);
            return Ok(false);
        }
        match first.take() {
            Some(bytes) => output.extend_from_slice(&bytes),
            None => self.script.request(output)?,
        }
        Ok(self.script.stopped())
    }

    /// The delay before they are sent.
    pub(super) fn delay(&self) -> Result<Duration, ScriptError> {
        if self.script.has_delay() { self.script.delay() } else { Ok(Duration::ZERO) }
    }

    /// Whether it wants replies.
    pub(super) fn listens(&self) -> bool {
        self.script.wants_response()
    }

    /// Passes a reply to it. Returns whether the script has stopped the thread.
    pub(super) fn hear(&self, status: u16, heard: &ScriptReply) -> Result<bool, ScriptError> {
        let fields = heard.fields.iter().map(|(name, value)| (&name[..], &value[..]));
        self.script.response(status, fields, &heard.body)?;
        Ok(self.script.stopped())
    }
}
