//! `post_action`: a request after the client has its reply, or has left.
//!
//! It continues the same exchange by an internal redirect, and is not a subrequest: the access log
//! has one line, of the location where it ended. Its reply is dropped.

use observe::Text;
use wire::Version;

use crate::answer;
use crate::exchange::{Exchange, Flow, Jump, JumpArgs, Role};
use crate::phases::{self, Ran};

/// Whether the location has one that has not run yet.
pub(crate) fn is_due(x: &Exchange) -> bool {
    x.location().core.post_action.is_some() && (x.role != Role::PostAction || x.redirects_left > 0)
}

/// Runs it, including `post_action` of the location where it ends; `Err`: how the connection ends.
pub(crate) async fn run(x: &mut Exchange) -> Result<(), u16> {
    while is_due(x) {
        let flow = begin(x);
        let mut ran = phases::step(x, flow);
        loop {
            ran = match ran {
                Ran::Replied => break,
                Ran::Dropped(status) => return Err(status),
                Ran::Waits(wait) => {
                    let generation = x.generation.clone();
                    let flow = wait.begin(x, &generation).await;
                    phases::resume(x, flow)
                }
            }
        }
        x.reply.clear_body();
        x.reply.tunnel = None;
    }
    Ok(())
}

fn begin(x: &mut Exchange) -> Flow {
    let target = x.location().core.post_action.clone().expect("it is due");
    x.debug(format_args!("post action: \"{}\"", Text(&target)));
    x.role = Role::PostAction;
    x.request.head.version = Version::HTTP_09;
    x.request.header_only = true;
    x.outlives_client.set(true);
    match target.first() {
        Some(b'/') => Flow::Jump(Jump::Internal { uri: target.to_vec(), args: JumpArgs::None }),
        _ => answer::to_named(x, &target),
    }
}
