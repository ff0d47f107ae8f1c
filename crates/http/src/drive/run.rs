//! Runs an exchange: its phases, its waits, its reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use observe::Level;
use wire::Method;

use super::cut::{dropped, gone};
use super::send::{self, send};
use super::tunnel::tunnel;
use super::{CutReply, Outlet, WorkerContext, follow_up, secure};
use crate::exchange::{Exchange, Flow, RequestTiming, TimedPhase, Wait};
use crate::phases::{self, Ran};

/// Runs an exchange after its head was read, sends the reply, and does the work after it. If the
/// head was `refused` with a status, that status is the reply. `Err` means that the reply was not
/// sent completely.
pub(crate) async fn run<O: Outlet>(
    context: &WorkerContext,
    x: &mut Exchange,
    refused: Option<u16>,
    outlet: &mut O,
) -> Result<(), CutReply> {
    let sent = reply(context, x, refused, outlet).await;
    if follow_up::is_due(x) {
        return Box::pin(follow_up::run(x, sent)).await;
    }
    sent
}

/// Refuses new requests while memory is scarce, because active ones need it.
fn lacks_memory(x: &Exchange) -> Option<u16> {
    net::memory::is_scarce().then(|| {
        x.log(Level::Emerg, format_args!("malloc() failed"));
        500
    })
}

/// Runs the phases until the reply is complete, and sends it.
async fn reply<O: Outlet>(
    context: &WorkerContext,
    x: &mut Exchange,
    refused: Option<u16>,
    outlet: &mut O,
) -> Result<(), CutReply> {
    let refused = refused.or_else(|| secure::refusal(x)).or_else(|| lacks_memory(x));
    let mut ran = match refused {
        None => phases::run(x),
        Some(status) => {
            // A bad head may be refused before its method was processed.
            x.request.header_only |= x.request.head.method == Method::Head;
            phases::step(x, Flow::Status(status))
        }
    };
    loop {
        ran = match ran {
            Ran::Waits(wait) => match attend(context, x, wait, outlet).await {
                Some(flow) => phases::resume(x, flow),
                None => return Err(gone(x)),
            },
            Ran::Dropped(status) => return Err(dropped(x, status)),
            Ran::Replied => break,
        };
    }
    send::check(x);
    let tunneled = x.reply.tunnel.take();
    send(x, outlet).await?;
    match tunneled {
        None => Ok(()),
        Some(tunneled) => tunnel(x, tunneled, outlet).await,
    }
}

/// Waits for an exchange and watches the client meanwhile. `None` once the client is gone.
async fn attend<O: Outlet>(
    context: &WorkerContext,
    x: &mut Exchange,
    wait: Wait,
    outlet: &O,
) -> Option<Flow> {
    context.wait_budget.spend();
    let outlives = x.outlives_client.clone();
    x.request.make_compact();
    let generation = x.generation.clone();
    x.begin_timing();
    x.waits_for(TimedPhase::Other);
    let timing = x.timing.clone();
    let mut future = wait.begin(x, &generation);
    // What is moved into it takes no room of its own.
    poll_fn(move |cx| {
        outlet.forget_reader();
        RequestTiming::around(&timing, || match Pin::new(&mut future).poll(cx) {
            Poll::Ready(flow) => Poll::Ready(Some(flow)),
            Poll::Pending if outlives.get() => Poll::Pending,
            Poll::Pending => outlet.poll_gone(cx).map(|()| None),
        })
    })
    .await
}
