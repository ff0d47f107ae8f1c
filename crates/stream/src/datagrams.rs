//! A session over UDP: nginx's phases in their order, content, and the log.
//!
//! ```text
//! first datagram -> postaccept -> preaccess (set, limit_conn) -> access (allow, deny)
//!   -> content -> log
//! ```
//!
//! There is no PROXY header and no TLS. The task of a session runs only when the session begins
//! and ends; datagrams go through `flow`, without it.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use ::session::Client;
use observe::Level;

use crate::flow::ClientFlow;
use crate::serve::{
    FinishedSession, HeldConnection, OK, SessionLogGuard, log_connected, log_content, phase,
};
use crate::session::StreamSession;
use crate::site::{StreamGeneration, StreamServerId};

const INTERNAL_SERVER_ERROR: u16 = 500;

/// Unbinds the client when the session is over or cut, even if it has not begun.
pub(crate) struct BoundFlow(pub(crate) Rc<ClientFlow>);

/// Serves a client until its session is over.
pub(crate) async fn serve_datagrams(
    generation: Rc<StreamGeneration>,
    server: StreamServerId,
    client: Rc<Client>,
    bound: BoundFlow,
    first_len: usize,
    held: HeldConnection,
) {
    let mut x = SessionLogGuard::new(StreamSession::new(generation, server, client));
    x.bytes_received = first_len as u64;
    log_connected(&x);
    x.status = run_until_closed(&mut x, &bound.0).await;
    drop((bound, x, held));
}

/// Runs the phases. As in nginx, a session ends when its socket is closed.
async fn run_until_closed(x: &mut StreamSession, flow: &Rc<ClientFlow>) -> u16 {
    let status = {
        let mut run = pin!(run(x, flow));
        poll_fn(|cx| match flow.is_closed() {
            true => Poll::Ready(None),
            false => {
                flow.set_task(cx);
                run.as_mut().poll(cx).map(Some)
            }
        })
        .await
    };
    match status {
        Some(Ok(status) | Err(FinishedSession(status))) => status,
        None => {
            x.log_bare(format_args!("disconnected on shutdown"));
            OK
        }
    }
}

async fn run(x: &mut StreamSession, flow: &Rc<ClientFlow>) -> Result<u16, FinishedSession> {
    let generation = x.generation.clone();
    let server = generation.server(x.server);
    phase("postaccept", &server.postaccept, x)?;
    phase("preaccess", &server.preaccess, x)?;
    phase("access", &server.access, x)?;
    match &server.datagram_content {
        Some(content) => {
            log_content(x, content.feature);
            Ok(content(x, flow).await)
        }
        None => Err(FinishedSession(INTERNAL_SERVER_ERROR)),
    }
}

/// Sends a text as one datagram. Returns the status of the session.
pub(crate) fn send_datagram(text: &[u8], x: &mut StreamSession, flow: &ClientFlow) -> u16 {
    use ::session::Session as _;
    if text.is_empty() {
        return OK;
    }
    if !flow.send(text) {
        x.log(Level::Info, format_args!("send() failed: too many datagrams wait"));
        return INTERNAL_SERVER_ERROR;
    }
    x.bytes_sent += text.len() as u64;
    OK
}

impl Drop for BoundFlow {
    fn drop(&mut self) {
        self.0.unbind();
    }
}
