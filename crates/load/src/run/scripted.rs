//! A thread's script at run time: it provides requests and receives responses.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::plan::ScriptPlan;
use crate::replies::ScriptReply;
use crate::script::{Script, ScriptError, requests_in};

pub(super) struct Scripted {
    script: Script,
    /// What `request` said when it was asked to see whether it says requests at all. Without a
    /// `request` that is all there ever is.
    first: RefCell<Option<Vec<u8>>>,
    /// Requests that it says at once.
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

    /// The state, for what others want to know of it.
    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Asks for a first request, once `init` has run.
    pub(super) fn begin(&self) -> Result<(), ScriptError> {
        let mut first = Vec::new();
        self.script.request(&mut first)?;
        self.at_once.set(requests_in(&first)? as u64);
        *self.first.borrow_mut() = Some(first);
        Ok(())
    }

    /// Requests that go out together.
    pub(super) fn at_once(&self) -> u64 {
        self.at_once.get()
    }

    /// The bytes of the next ones. Whether the script has enough with them.
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

    /// How long to wait before they are sent.
    pub(super) fn delay(&self) -> Result<Duration, ScriptError> {
        if self.script.has_delay() { self.script.delay() } else { Ok(Duration::ZERO) }
    }

    /// Whether it is to be told of replies.
    pub(super) fn listens(&self) -> bool {
        self.script.wants_response()
    }

    /// Tells it of one. Whether it has enough.
    pub(super) fn hear(&self, status: u16, heard: &ScriptReply) -> Result<bool, ScriptError> {
        let fields = heard.fields.iter().map(|(name, value)| (&name[..], &value[..]));
        self.script.response(status, fields, &heard.body)?;
        Ok(self.script.stopped())
    }
}
