//! Requests at the master's control socket.
//!
//! | path | answer |
//! |---|---|
//! | `GET /ready` | 200 while a worker process serves and none is to end, else 503 |
//! | `GET /status` | the master and its worker processes |
//! | `GET /upstreams` | the servers of all groups |
//! | `POST /reload` | the result of a reload, and what it logged, once it is over |
//! | `/9/…/upstreams/NAME/servers/…` | the servers of groups, as in NGINX Plus's API |

use net::MailboxSender;
use session::status::Program;
use session::steering::{SteeringCall, SteeringReply};
use upstream::api::SpecRefusal;

use super::child::ChildStage;
use super::event::MasterEvent;
use super::{Ending, Master};
use crate::control_socket::{ControlPlace, ControlSocket, SocketPlace, replies};
use crate::log::{alert, notice};
use crate::steering;

/// The most requests that wait for the end of a reload.
const RELOAD_CALLS_MAX: usize = 64;

/// The control socket, and the requests that wait for a reload.
#[derive(Default)]
pub(super) struct MasterCalls {
    place: ControlPlace,
    socket: Option<ControlSocket>,
    reloads: Vec<MailboxSender<SteeringReply>>,
    /// Whether the last reload is in use; `None`: it has been answered for.
    is_reloaded: Option<bool>,
}

impl MasterCalls {
    pub(super) fn new(place: ControlPlace) -> Self {
        Self { place, ..Self::default() }
    }

    /// Called when a configuration is read.
    pub(super) fn reload_begins(&mut self) {
        if self.is_reloaded.replace(false).is_none() && self.reloads.is_empty() {
            observe::begin_copies();
        }
    }

    /// Called when a configuration has come into use.
    pub(super) fn reload_done(&mut self) {
        self.is_reloaded = Some(true);
    }
}

impl Master {
    /// Opens the control socket that the configuration names, unless it is open. `again`: another
    /// program had it.
    pub(super) fn open_control_socket(&mut self, again: bool) {
        let calls = &mut self.calls;
        let named = self.plan.loaded.settings.control_socket.as_ref();
        let Some(path) = calls.place.fixed.as_ref().or(named).cloned() else {
            calls.socket = None;
            return;
        };
        let is_open = calls.socket.as_ref().is_some_and(|socket| socket.place().path() == path);
        if is_open && !again {
            return;
        }
        calls.socket = None;
        let opened = match calls.place.open.take().filter(|open| open.path() == path) {
            Some(open) => Ok(open),
            None => SocketPlace::open(&path, again),
        };
        match opened {
            Ok(place) => {
                calls.socket = ControlSocket::serve(place, &self.events, MasterEvent::Asked);
            }
            Err(error) => {
                let error = observe::Errno(&error);
                alert!("the control socket \"{}\" cannot be opened{error}", path.display());
            }
        }
    }

    /// Answers a request at the control socket, now or later.
    pub(super) fn called(&mut self, mut call: SteeringCall) {
        let path = call.request.path.clone();
        let reply = match (&*call.request.method, &*path) {
            (b"GET" | b"HEAD", b"/ready") => self.readiness(),
            (b"GET" | b"HEAD", b"/status") => replies::json(200, self.status()),
            (b"POST", b"/reload") => return self.reload_for(call),
            (_, b"/ready" | b"/status" | b"/reload") => {
                let refused = SpecRefusal::new(405, "method disabled", "MethodDisabled");
                steering::refusal(&refused, &call.request)
            }
            (_, b"/upstreams") => {
                let (sites, rosters) = (&self.plan.loaded.sites, &self.plan.rosters);
                replies::json(200, steering::listing(sites, rosters))
            }
            _ => match replies::api_path(&path) {
                Ok(rest) => {
                    call.request.path = rest.into();
                    return self.steer(call);
                }
                Err(refused) => steering::refusal(&refused, &call.request),
            },
        };
        call.reply.send(reply);
    }

    fn readiness(&self) -> SteeringReply {
        let serves = self.children.iter().any(|child| child.stage == ChildStage::Serving);
        let is_ready = serves && self.ending == Ending::Not && !self.not_accepting;
        replies::readiness(is_ready, self.number)
    }

    fn status(&self) -> String {
        let workers = self.children.iter().map(|child| {
            let stage = match child.stage {
                ChildStage::Starting => "starting",
                ChildStage::Serving => "serving",
                ChildStage::Leaving => "leaving",
            };
            format!("{{\"pid\":{},\"stage\":\"{stage}\"}}", child.pid)
        });
        let name = crate::name::name();
        format!(
            "{{\"name\":\"{}\",\"version\":\"{}\",\"pid\":{},\"generation\":{},\"reloading\":{},\
             \"upgrading\":{},\"worker_processes\":[{}]}}",
            name.word,
            name.version,
            net::process::id(),
            self.number,
            self.is_reloading(),
            self.upgrade.is_running(),
            workers.collect::<Vec<_>>().join(","),
        )
    }

    pub(super) fn is_reloading(&self) -> bool {
        self.opening.is_some() || self.pending.is_some()
    }

    fn reload_for(&mut self, call: SteeringCall) {
        let may_not = self.plan.origin.is_trial || self.upgrade.is_running();
        if may_not || self.ending != Ending::Not || self.calls.reloads.len() >= RELOAD_CALLS_MAX {
            let refused = SpecRefusal::new(503, "the server cannot reload now", "CannotReload");
            return call.reply.send(steering::refusal(&refused, &call.request));
        }
        if !call.request.origin.is_empty() {
            let text = "the request comes from another site";
            let refused = SpecRefusal::new(403, text, "ForeignOrigin");
            return call.reply.send(steering::refusal(&refused, &call.request));
        }
        if self.calls.reloads.is_empty() {
            observe::begin_copies();
        }
        self.calls.reloads.push(call.reply);
        notice!("reconfiguring, by {}", String::from_utf8_lossy(&call.request.who));
        self.reload();
    }

    /// Once no reload is under way, counts a failed one, and answers the requests that wait.
    pub(super) fn answer_reloads(&mut self) {
        if self.is_reloading() && self.ending == Ending::Not {
            return;
        }
        let Some(is_done) = self.calls.is_reloaded.take() else { return };
        let log = observe::take_copies();
        if !is_done {
            Program::refused(failure(&log));
        }
        let reply = replies::reloaded(is_done, self.number, &log);
        self.calls.reloads.drain(..).for_each(|to| to.send(reply.clone()));
    }
}

/// The line that says why a reload has failed.
fn failure(log: &[String]) -> &str {
    let is_error = |line: &&String| {
        ["[emerg]", "[alert]", "[crit]", "[error]"].iter().any(|level| line.starts_with(level))
    };
    log.iter().find(is_error).or(log.last()).map_or("", String::as_str)
}
