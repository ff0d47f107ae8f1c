//! The main state of a script: it sets up the threads before a run, and reports after it.

use std::net::SocketAddr;
use std::sync::mpsc;

use net::MailboxSender;

use super::plan::ScriptPlan;
use super::thread::ThreadOrder;
use crate::results::Results;
use crate::script::{LuaValue, Script, ScriptError, ScriptSummary, ScriptThread};

pub(super) struct Director(Script);

impl Director {
    pub(super) fn load(plan: &ScriptPlan) -> Result<Self, ScriptError> {
        Ok(Self(Script::load(&plan.name, &plan.source, &plan.target)?))
    }

    /// Calls `setup` for a thread and begins it; as in wrk, one thread after the other.
    pub(super) fn begin(
        &self,
        thread: &MailboxSender<ThreadOrder>,
        plan: &ScriptPlan,
    ) -> Result<(), ScriptError> {
        self.0.setup(Remote(thread.clone()))?;
        let arguments = plan.arguments.clone();
        Remote(thread.clone()).ask(move |script| script.init(&arguments))?
    }

    /// Calls `done` with the results.
    pub(super) fn done(&self, results: &Results) -> Result<(), ScriptError> {
        let (tally, errors) = (&results.tally, &results.tally.errors);
        let summary = ScriptSummary {
            duration: results.elapsed,
            requests: tally.replies,
            bytes: tally.bytes,
            connect: errors.refused + errors.unreachable + errors.handshake,
            read: errors.reset + errors.closed + errors.short + errors.invalid,
            write: errors.write,
            status: tally.bad_statuses(),
            timeout: errors.timeout,
        };
        self.0.done(&summary, &tally.latency_us, &tally.rate)
    }
}

/// A thread, as other threads see it. It answers before its first connection and after its end.
struct Remote(MailboxSender<ThreadOrder>);

impl Remote {
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Script) -> T + Send + 'static,
    ) -> Result<T, ScriptError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.0.send(ThreadOrder::Ask(Box::new(move |script| {
            // The caller waits for the answer.
            let _ = answer.send(question(script));
        })));
        answered.recv().map_err(|_| ScriptError::new("the thread has ended"))
    }
}

impl ScriptThread for Remote {
    fn addr(&self) -> Option<SocketAddr> {
        self.ask(Script::addr).ok().flatten()
    }

    fn set_addr(&self, addr: SocketAddr) {
        let _ = self.ask(move |script| script.set_addr(addr));
    }

    fn get(&self, name: &str) -> Result<LuaValue, ScriptError> {
        let name = name.to_owned();
        self.ask(move |script| script.get(&name))?
    }

    fn set(&self, name: &str, value: LuaValue) -> Result<(), ScriptError> {
        let name = name.to_owned();
        self.ask(move |script| script.set(&name, &value))?
    }
}
