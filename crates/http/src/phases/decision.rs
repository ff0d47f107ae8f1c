//! Logs which handler or filter decided about an exchange: one line of the level `debug`, for
//! debugging configurations. Without that level, nothing is formatted.
//!
//! The core's own decisions (no location, a body that is too large) have no line here.

use conf::FeatureName;
use observe::{Level, Text};

use crate::exchange::{Exchange, Filtered, Flow, Jump, Phase};

/// Logs the decision of a handler of the current phase, made immediately or after a wait.
#[inline]
pub(super) fn record(x: &mut Exchange, feature: FeatureName, flow: &Flow) {
    match flow {
        Flow::Next => {}
        Flow::Wait(_) => x.stage.waiting = Some(feature),
        _ if x.logs(Level::DebugHttp) => log(x, feature, flow),
        _ => {}
    }
}

/// Logs the decision of a filter, unless it passes the reply.
#[inline]
pub(super) fn record_filter(x: &Exchange, feature: FeatureName, filtered: Filtered) {
    if x.logs(Level::DebugHttp) {
        log_filter(x, feature, filtered);
    }
}

#[cold]
fn log(x: &Exchange, feature: FeatureName, flow: &Flow) {
    let who = format_args!("{} phase: \"{feature}\"", x.stage.phase);
    match flow {
        Flow::Next | Flow::Wait(_) => {}
        Flow::Skip if x.stage.phase == Phase::Access => {
            x.debug(format_args!("{who} grants access"))
        }
        Flow::Skip => x.debug(format_args!("{who} ends the phase")),
        Flow::Done => x.debug(format_args!("{who} answers with {}", x.status())),
        Flow::Status(status @ (408 | 444 | 499)) | Flow::Drop(status) => {
            x.debug(format_args!("{who} closes the connection with {status}"));
        }
        Flow::Status(status @ ..400) => x.debug(format_args!("{who} answers with {status}")),
        Flow::Status(status) => x.debug(format_args!("{who} refuses with {status}")),
        Flow::Jump(jump) => {
            let (what, target) = target(x, jump);
            x.debug(format_args!("{who} {what} \"{}\"", Text(target)));
        }
    }
}

fn target<'a>(x: &'a Exchange, jump: &'a Jump) -> (&'static str, &'a [u8]) {
    match jump {
        Jump::Relocate => ("looks for the location of", &x.request.uri),
        Jump::Internal { uri, .. } => ("redirects to", uri),
        Jump::Named(location) => ("redirects to", &x.generation.location(*location).name),
    }
}

#[cold]
fn log_filter(x: &Exchange, feature: FeatureName, filtered: Filtered) {
    match filtered {
        Filtered::Pass => {}
        Filtered::Instead(status) | Filtered::Status(status) => {
            x.debug(format_args!("filters: \"{feature}\" replaces the reply with {status}"));
        }
        Filtered::Drop => x.debug(format_args!("filters: \"{feature}\" closes the connection")),
    }
}
