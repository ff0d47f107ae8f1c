//! Requests at the master's control socket.
//!
//! | path | answer |
//! |---|---|
//! | `GET /ready` | 200 while a worker process serves and none is to end, else 503 |
//! | `POST`, `DELETE /ready` | tells load balancers to send clients here, or to stay away |
//! | `GET /status` | the master, its worker processes, and what became of the last reload |
//! | `GET /upstreams` | the servers of all groups |
//! | `POST /reload` | the result of a reload, and what it logged, once it is over |
//! | `/9/…/upstreams/NAME/servers/…` | the servers of groups, as in NGINX Plus's API |
//! | `/9/…/keyvals/NAME` | changes of tables |
//! | `POST /9/http/caches/NAME/purge` | purges |
//! | `POST /acme/…` | what becomes of a certificate, from the worker process that keeps it |
//! | other `GET` | a page about the program, which a worker process writes |

use std::collections::HashMap;
use std::time::Duration;

use net::MailboxSender;
use session::status::Program;
use session::steering::{SteeringCall, SteeringReply, SteeringRequest};
use upstream::api::SpecRefusal;

use super::child::ChildStage;
use super::event::MasterEvent;
use super::{Ending, Master};
use crate::control_socket::replies::{self, LastReload};
use crate::control_socket::{ControlPlace, ControlSocket, SocketPlace};
use crate::event::later;
use crate::ipc::{Message, MessageKind};
use crate::log::{alert, notice};
use crate::steering;

/// The most requests that wait for the end of a reload.
const RELOAD_CALLS_MAX: usize = 64;
/// The most requests for pages that wait for a worker process.
const PAGES_MAX: usize = 64;
/// How long a worker process may take for a page.
const PAGE_MAX: Duration = Duration::from_secs(10);

/// The control socket, and the requests that wait for a reload.
#[derive(Default)]
pub(super) struct MasterCalls {
    place: ControlPlace,
    socket: Option<ControlSocket>,
    reloads: Vec<MailboxSender<SteeringReply>>,
    /// Whether what is logged is copied for the result of a reload.
    is_copying: bool,
    /// Whether the reload that is under way, or was last, is in use.
    is_reloaded: bool,
    last_reload: Option<LastReload>,
    /// The requests for pages that a worker process has not answered, by their numbers.
    pages: HashMap<u64, SteeringCall>,
    last_page: u64,
}

impl MasterCalls {
    pub(super) fn new(place: ControlPlace) -> Self {
        Self { place, ..Self::default() }
    }

    /// Called when a configuration is read, or is about to be.
    pub(super) fn reload_begins(&mut self) {
        if !std::mem::replace(&mut self.is_copying, true) {
            observe::begin_copies();
        }
        self.is_reloaded = false;
    }

    /// Called when a configuration has come into use.
    pub(super) fn reload_done(&mut self) {
        self.is_reloaded = true;
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
            (b"POST" | b"DELETE", b"/ready") => self.turn_readiness(&call.request),
            (b"POST", b"/reload") => return self.reload_for(call),
            (_, b"/ready" | b"/status" | b"/reload") => {
                let refused = SpecRefusal::new(405, "method disabled", "MethodDisabled");
                steering::refusal(&refused, &call.request)
            }
            (_, b"/upstreams") => {
                let (sites, rosters) = (&self.plan.loaded.sites, &self.plan.rosters);
                replies::json(200, steering::listing(sites, rosters))
            }
            (b"POST", path) if path.starts_with(b"/acme/") => return self.pass_on(call),
            (b"GET" | b"HEAD", _) if !replies::is_of_servers(&path) => return self.pass_on(call),
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

    /// Passes a request on to the worker process that serves the newest configuration.
    fn pass_on(&mut self, call: SteeringCall) {
        let newest = |stage| self.children.iter().rev().find(|child| child.stage == stage);
        // One that starts answers as soon as it serves.
        let child = newest(ChildStage::Serving).or_else(|| newest(ChildStage::Starting));
        let Some(child) = child.filter(|_| self.calls.pages.len() < PAGES_MAX) else {
            return call.reply.send(replies::unavailable(&call.request));
        };
        let calls = &mut self.calls;
        calls.last_page += 1;
        let (number, bytes) = (calls.last_page, call.request.to_bytes());
        child.send(Message { bytes, ..Message::new(MessageKind::Ask, number) });
        calls.pages.insert(number, call);
        later(&self.events, PAGE_MAX, MasterEvent::PageOverdue(number));
    }

    /// Called when a worker process has written a page.
    pub(super) fn shown(&mut self, message: &Message) {
        if let Some(call) = self.calls.pages.remove(&message.number) {
            let reply = SteeringReply::from_bytes(&message.bytes);
            call.reply.send(reply.unwrap_or_else(|| replies::unavailable(&call.request)));
        }
    }

    /// Called when the time for a page is over.
    pub(super) fn page_overdue(&mut self, number: u64) {
        if let Some(call) = self.calls.pages.remove(&number) {
            call.reply.send(replies::unavailable(&call.request));
        }
    }

    fn readiness(&self) -> SteeringReply {
        let serves = self.children.iter().any(|child| child.stage == ChildStage::Serving);
        let is_ending = self.ending != Ending::Not;
        let is_ready = serves && !is_ending && !self.not_accepting && self.readiness.is_on();
        replies::readiness(is_ready, self.number)
    }

    fn turn_readiness(&mut self, request: &SteeringRequest) -> SteeringReply {
        if let Err(foreign) = replies::turn_readiness(request, &mut self.readiness) {
            return foreign;
        }
        self.tell_readiness();
        SteeringReply { status: 200, ..self.readiness() }
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
             \"upgrading\":{},\"last_reload\":{},\"worker_processes\":[{}]}}",
            name.word,
            name.version,
            net::process::id(),
            self.number,
            self.is_reloading(),
            self.upgrade.is_running(),
            LastReload::to_json(self.calls.last_reload.as_ref()),
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
        if let Some(foreign) = replies::foreign(&call.request) {
            return call.reply.send(foreign);
        }
        self.calls.reload_begins();
        self.calls.reloads.push(call.reply);
        notice!("reconfiguring, by {}", String::from_utf8_lossy(&call.request.who));
        self.reload();
    }

    /// Notes the result of a reload, and answers the requests that wait for it, once it is over.
    pub(super) fn finish_reload(&mut self) {
        if !self.calls.is_copying || self.is_reloading() && self.ending == Ending::Not {
            return;
        }
        self.calls.is_copying = false;
        let last = LastReload::over(self.calls.is_reloaded, observe::take_copies());
        if !last.is_done {
            Program::refused(last.message());
        }
        let reply = replies::reloaded(&last, self.number);
        self.calls.last_reload = Some(last);
        self.calls.reloads.drain(..).for_each(|to| to.send(reply.clone()));
    }
}
