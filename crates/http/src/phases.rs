//! Runs an exchange through its location's handlers, in nginx's order.
//!
//! ```text
//! postread -> server rewrite -> find location -> rewrite -> (changed? find again) -> preaccess
//!   -> access -> precontent -> content -> filters
//! ```
//!
//! One loop runs phases and jumps. It stops when a handler waits, and resumes from there. The
//! debug log says which handler or filter decided ([`decision`]).

mod decision;
#[cfg(test)]
mod tests;

use std::time::Duration;

use conf::FeatureName;
use net::LentFuture;
use observe::{Level, Text};

use crate::credentials;
use crate::exchange::{
    Exchange, FieldName, Filtered, Flow, Jump, JumpArgs, Phase, Reach, Role, Stage, TimedPhase,
    Wait,
};
use crate::site::{Exclusive, LocationId, Site};
use crate::{admit, answer, site};

/// The stage at which subrequests begin.
pub(crate) fn after_postread() -> Stage {
    Stage::of(Phase::ServerRewrite)
}

/// Why a run stopped.
pub(crate) enum Ran {
    /// The reply is complete, filters included.
    Replied,
    /// The connection is to be closed without a reply; the status is for the log.
    Dropped(u16),
    Waits(Wait),
}

/// Runs the phases until the reply is complete or a handler waits.
pub(crate) fn run(x: &mut Exchange) -> Ran {
    if x.logs(Level::DebugHttp) {
        log_request(x);
    }
    step(x, Flow::Next)
}

/// Logs the request, for debugging configurations.
#[cold]
fn log_request(x: &Exchange) {
    x.debug(format_args!("http request line: \"{}\"", Text(x.request.line())));
    x.debug(format_args!("http uri: \"{}\"", Text(&x.request.uri)));
    x.debug(format_args!("http args: \"{}\"", Text(&x.request.args)));
}

/// Continues with the outcome of a wait.
#[inline]
pub(crate) fn resume(x: &mut Exchange, flow: Flow) -> Ran {
    if let Some(feature) = x.stage.waiting.take() {
        decision::record(x, feature, &flow);
    }
    step(x, flow)
}

/// Continues with an outcome from outside the phases.
pub(crate) fn step(x: &mut Exchange, mut flow: Flow) -> Ran {
    let generation = x.generation.clone();
    loop {
        flow = match flow {
            Flow::Next if x.stage.phase == Phase::Filters => return Ran::Replied,
            Flow::Next => go_on(&generation, x),
            Flow::Skip if x.stage.phase == Phase::Access => granted(x),
            Flow::Skip => {
                enter(x, x.stage.phase.following());
                Flow::Next
            }
            Flow::Done => match x.discard_body() {
                Some(refused) => refused,
                None => {
                    enter(x, Phase::Filters);
                    filters(&generation, x)
                }
            },
            Flow::Status(status @ (408 | 444 | 499)) => return Ran::Dropped(status),
            Flow::Drop(status) => return Ran::Dropped(status),
            Flow::Status(status) if x.stage.phase == Phase::Access => refused(x, status),
            Flow::Status(status) => answer::with_status(x, status),
            Flow::Jump(jump) => jump_to(x, jump),
            Flow::Wait(wait) => return Ran::Waits(wait),
        };
    }
}

/// Runs phases until a handler decides about the exchange.
fn go_on(site: &Site, x: &mut Exchange) -> Flow {
    while x.stage.phase != Phase::Filters {
        match run_phase(site, x) {
            Flow::Next => {}
            flow => return flow,
        }
        match leave(site, x) {
            Flow::Next => {}
            flow => return flow,
        }
    }
    Flow::Next
}

/// Calls the remaining handlers of the current phase.
fn run_phase(site: &Site, x: &mut Exchange) -> Flow {
    let here = site.location(x.location);
    let outer = || site.server(x.server).outer;
    let handlers = match x.stage.phase {
        Phase::Postread => &site.location(outer()).postread,
        Phase::ServerRewrite => &site.location(outer()).rewrite,
        Phase::FindLocation => return find_location(site, x),
        // The server's own rewrite rules have run in the phase before.
        Phase::Rewrite if x.location == outer() => return Flow::Next,
        Phase::Rewrite => &here.rewrite,
        Phase::Preaccess => &here.preaccess,
        // Access was checked for the main request.
        Phase::Access if x.is_subrequest() => return Flow::Next,
        Phase::Access => &here.access,
        Phase::Precontent => &here.precontent,
        Phase::Content => match &here.exclusive {
            Some(exclusive) => return run_exclusive(exclusive, here.exclusive_of, x),
            None => &here.content,
        },
        Phase::Filters => unreachable!("filters are run at once"),
    };
    while let Some(handler) = handlers.get(x.stage.next as usize) {
        x.stage.next += 1;
        match handler(x) {
            Flow::Next => {}
            flow => {
                decision::record(x, handler.feature, &flow);
                return flow;
            }
        }
    }
    Flow::Next
}

fn run_exclusive(exclusive: &Exclusive, feature: FeatureName, x: &mut Exchange) -> Flow {
    let flow = match exclusive {
        Exclusive::Handler(handler) => handler(x),
        Exclusive::Backend(_) => Flow::Wait(Wait::Backend),
    };
    decision::record(x, feature, &flow);
    flow
}

/// Leaves a phase that has no more handlers, and enters the next one that has any.
fn leave(site: &Site, x: &mut Exchange) -> Flow {
    match x.stage.phase {
        Phase::Access if x.stage.refusal != 0 => {
            if x.stage.refusal == 403 {
                x.log(Level::Error, format_args!("access forbidden by rule"));
            }
            refuse(x, x.stage.refusal)
        }
        Phase::Content => answer::nothing_answered(x),
        phase => {
            enter(x, site.location(x.location).phases.after(phase));
            Flow::Next
        }
    }
}

fn enter(x: &mut Exchange, phase: Phase) {
    x.stage = Stage::of(phase);
}

fn find_location(site: &Site, x: &mut Exchange) -> Flow {
    let Ok(chosen) = site::choose_location(site, x) else { return Flow::Status(500) };
    let here = site.location(chosen.location);
    x.debug(format_args!("using configuration \"{}\"", Text(&here.name)));
    if here.core.internal && !x.internal {
        x.location = chosen.location;
        return Flow::Status(404);
    }
    enter_location(site, x, chosen.location);
    match admit::admit_body(x) {
        Flow::Next if chosen.adds_slash => add_slash(site, x, chosen.location),
        flow => flow,
    }
}

/// Sets the exchange's location, or its `limit_except` block if that limits the method. Named
/// locations are entered here as well.
fn enter_location(site: &Site, x: &mut Exchange, location: LocationId) {
    x.location = match site.location(location).limit_except {
        Some((allowed, block)) if allowed & x.request.head.method.bit() == 0 => block,
        _ => location,
    };
    admit::limit_keepalive(x);
}

/// Redirects a client that requested the name of a location without its final slash.
fn add_slash(site: &Site, x: &mut Exchange, location: LocationId) -> Flow {
    let mut target = Vec::new();
    wire::uri::escape(wire::uri::EscapeSet::Uri, &site.location(location).name, &mut target);
    if !x.request.args.is_empty() {
        target.push(b'?');
        target.extend_from_slice(&x.request.args);
    }
    x.reply.set_location(target);
    Flow::Status(301)
}

/// Access was granted by one check. With `satisfy any` that is enough; otherwise the other checks
/// follow.
fn granted(x: &mut Exchange) -> Flow {
    if x.location().core.satisfy_any {
        x.reply.fields.remove_known(challenge(x));
        enter(x, Phase::Access.following());
    }
    Flow::Next
}

/// The field that challenges the client for a password.
fn challenge(x: &Exchange) -> FieldName {
    if credentials::are_for_proxy(x) {
        FieldName::ProxyAuthenticate
    } else {
        FieldName::WwwAuthenticate
    }
}

/// Access was refused by one check. With `satisfy any` the other checks follow, and a final 401 or
/// 407 takes precedence over 403.
fn refused(x: &mut Exchange, status: u16) -> Flow {
    if !x.location().core.satisfy_any || !matches!(status, 401 | 403 | 407) {
        return refuse(x, status);
    }
    if !matches!(x.stage.refusal, 401 | 407) {
        x.stage.refusal = status;
    }
    Flow::Next
}

/// Answers with a refusal; one with 401 or 407 after `auth_delay`.
fn refuse(x: &mut Exchange, status: u16) -> Flow {
    let delay = Duration::from_millis(x.location().core.auth_delay_ms);
    if !matches!(status, 401 | 407) || delay.is_zero() {
        return answer::with_status(x, status);
    }
    x.log(Level::Info, format_args!("delaying unauthorized request"));
    Flow::wait(move |x| {
        x.waits_for(TimedPhase::AuthDelay);
        LentFuture::new(async move {
            net::sleep(delay).await;
            answer::with_status(x, status)
        })
    })
}

fn jump_to(x: &mut Exchange, jump: Jump) -> Flow {
    x.redirects_left = x.redirects_left.saturating_sub(1);
    if x.redirects_left == 0 {
        log_cycle(x, &jump);
        return answer::with_status(x, 500);
    }
    match jump {
        Jump::Relocate => enter(x, Phase::FindLocation),
        Jump::Internal { uri, args } => {
            x.request.uri = uri;
            match args {
                JumpArgs::Kept => {}
                JumpArgs::None => {
                    x.request.has_args = false;
                    x.request.args.clear();
                }
                JumpArgs::New(args) => {
                    x.request.has_args = true;
                    x.request.args = args;
                }
            }
            x.request.valid_location = true;
            x.add_uri_to_alias = false;
            x.request.uri_unchanged = false;
            x.internal = true;
            x.action = "";
            x.location = server_location(x);
            x.states.redirected();
            x.varies = false;
            x.backends.request_to.begun = false;
            enter(x, Phase::ServerRewrite);
        }
        Jump::Named(location) => {
            x.internal = true;
            let site = x.generation.clone();
            enter_location(&site, x, location);
            x.states.redirected();
            x.backends.request_to.begun = false;
            enter(x, Phase::Rewrite);
        }
    }
    Flow::Next
}

fn log_cycle(x: &Exchange, jump: &Jump) {
    let (doing, target) = match jump {
        Jump::Relocate => ("processing", &x.request.uri[..]),
        Jump::Internal { uri, .. } => ("internally redirecting to", &uri[..]),
        Jump::Named(location) => {
            ("redirect to named location", &x.generation.location(*location).name[..])
        }
    };
    let target = Text(target);
    let cycle = "rewrite or internal redirection cycle";
    x.log(Level::Error, format_args!("{cycle} while {doing} \"{target}\""));
}

/// Runs the filters, which may change the head and add filters of the body. `post_action`, whose
/// reply is not sent, has none.
fn filters(site: &Site, x: &mut Exchange) -> Flow {
    if x.error_status != 0 {
        x.reply.status = x.error_status;
        x.reply.reason.clear();
    }
    let is_main = match x.role {
        Role::Main => true,
        Role::PostAction => return Flow::Next,
        Role::Sub(_) => false,
    };
    for (reach, filter) in &site.location(x.location).filters {
        if !is_main && *reach == Reach::Main {
            continue;
        }
        match filter(x) {
            Filtered::Pass => {}
            filtered => {
                decision::record_filter(x, filter.feature, filtered);
                return replace(x, filtered);
            }
        }
    }
    Flow::Next
}

/// Replaces the reply as a filter demands.
fn replace(x: &mut Exchange, filtered: Filtered) -> Flow {
    match filtered {
        Filtered::Pass => Flow::Next,
        Filtered::Instead(status) => {
            x.reply.clear_head();
            answer::with_status(x, status)
        }
        Filtered::Status(status) => answer::with_status(x, status),
        Filtered::Drop => Flow::Drop(x.reply.status),
    }
}

/// Runs the loggers of the exchange's last location.
pub(crate) fn log(x: &mut Exchange) {
    x.action = "logging request";
    x.debug(format_args!("http log handler"));
    let generation = x.generation.clone();
    for logger in &generation.location(x.location).loggers {
        logger(x);
    }
}

/// Computes the trailers, after the whole body was produced.
pub(crate) fn end_body(x: &mut Exchange) {
    let generation = x.generation.clone();
    for end in &generation.location(x.location).ends {
        end(x);
    }
}

/// The location of the server's own settings, for requests that have no other location.
pub(crate) fn server_location(x: &Exchange) -> LocationId {
    x.server().outer
}
