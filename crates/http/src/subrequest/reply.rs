//! A subrequest's reply for who asked for more than its head: in memory as a whole, or as it comes.
//!
//! What breaks off is logged as the subrequest's, and ends the main request: nginx closes the
//! connection, too, since of what has been sent nothing can be taken back.

#![cfg_attr(not(test), expect(dead_code, reason = "SSI, addition and slice will ask"))]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use observe::Level;

use super::Subrequest;
use crate::exchange::{BodyError, BodyStream, Chunk, Exchange, Flow, Remark};

impl Subrequest {
    /// Reads the reply's body to its end; `Err`: how the main request ends.
    pub(crate) async fn read(&mut self) -> Result<Vec<u8>, Flow> {
        let x = &mut *self.x;
        let most = x.location().core.subrequest_output_buffer_size;
        let room = match x.reply.content_length {
            Some(length) if length > most => return Err(too_big(x, format_args!(": {length}"))),
            Some(length) => length,
            None => most,
        };
        let mut source = x.reply.body.take().in_memory();
        let mut body = Vec::new();
        loop {
            match poll_fn(|cx| source.poll_chunk(cx)).await {
                Ok(Some(Chunk::Bytes(bytes))) if (body.len() + bytes.len()) as u64 > room => {
                    return Err(too_big(x, format_args!("")));
                }
                Ok(Some(Chunk::Bytes(bytes))) => body.extend_from_slice(bytes.as_ref()),
                Ok(Some(Chunk::Flush | Chunk::Pause | Chunk::Trailers(_))) => {}
                Ok(Some(Chunk::Remark(remark))) => remark.log(x),
                Ok(Some(Chunk::File(_))) => unreachable!("files are read"),
                Ok(None) => return Ok(body),
                Err(error) => {
                    error.log(x);
                    return Err(Flow::Drop(0));
                }
            }
        }
    }

    /// The reply's body, to be a part of another one. It runs from the first question on.
    pub(crate) fn into_stream(mut self) -> Box<dyn BodyStream> {
        Box::new(Included::Runs(Box::pin(async move {
            let ran = self.run().await;
            ran.map(|()| self)
        })))
    }
}

fn too_big(x: &Exchange, length: std::fmt::Arguments<'_>) -> Flow {
    x.log(Level::Error, format_args!("too big subrequest response{length}"));
    Flow::Drop(0)
}

/// A subrequest's body within another one.
enum Included {
    Runs(Pin<Box<dyn Future<Output = Result<Subrequest, Flow>>>>),
    Gives(Subrequest, Box<dyn BodyStream>),
    Over,
}

impl BodyStream for Included {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        loop {
            match self {
                Self::Runs(run) => {
                    let ran = ready!(run.as_mut().poll(cx));
                    let Ok(mut subrequest) = ran else { return self.break_off() };
                    let body = subrequest.x.reply.body.take().into_stream();
                    *self = Self::Gives(subrequest, body);
                }
                Self::Gives(subrequest, body) => match ready!(body.poll_chunk(cx)) {
                    // They would follow a part of the body, not its end.
                    Ok(Some(Chunk::Trailers(_))) => {}
                    Ok(Some(Chunk::Remark(remark))) => remark.log(&mut subrequest.x),
                    Ok(Some(chunk)) => return Poll::Ready(Ok(Some(chunk))),
                    Ok(None) => {
                        subrequest.log();
                        *self = Self::Over;
                    }
                    Err(error) => {
                        error.log(&mut subrequest.x);
                        return self.break_off();
                    }
                },
                Self::Over => return Poll::Ready(Ok(None)),
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Option<Remark> {
        if let Self::Gives(subrequest, body) = self
            && let Some(remark) = body.poll_fill(cx)
        {
            remark.log(&mut subrequest.x);
        }
        None
    }
}

impl Included {
    fn break_off(&mut self) -> Poll<Result<Option<Chunk>, BodyError>> {
        *self = Self::Over;
        Poll::Ready(Err(BodyError::Truncated))
    }
}
