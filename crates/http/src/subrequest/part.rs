//! The body of a subrequest's reply as a part of its parent's body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Subrequest;
use crate::exchange::{BodyError, Chunk, Exchange, FilteredBody, Flow, LiveBody, TimedPhase, Wait};

impl Subrequest {
    /// Its body; the subrequest starts when the body is pulled. Status and fields of its reply are
    /// ignored.
    pub(crate) fn into_body(mut self) -> impl LiveBody + 'static {
        let run = Box::pin(async move {
            let ran = self.run().await;
            (self, ran)
        });
        SubrequestBody::Runs(run, TimedPhase::Other)
    }
}

impl Subrequest {
    /// The body that the backend of its location replies with, once it is pulled; `check` sees the
    /// head before.
    pub(crate) fn into_backend_body(
        mut self,
        check: impl FnOnce(&mut Exchange) -> bool + 'static,
    ) -> impl LiveBody + 'static {
        let run = Box::pin(async move {
            let x = &mut *self.x;
            let generation = x.generation.clone();
            let ran = match Wait::Backend.begin(x, &generation).await {
                Flow::Done if check(x) => Ok(()),
                _ => Err(Flow::Drop(0)),
            };
            (self, ran)
        });
        SubrequestBody::Runs(run, TimedPhase::Other)
    }
}

/// A subrequest that has run; `Err`: how its parent ends because it failed.
type RanSubrequest = (Subrequest, Result<(), Flow>);

enum SubrequestBody {
    /// What it waits for, while the parent may wait for its client.
    Runs(Pin<Box<dyn Future<Output = RanSubrequest>>>, TimedPhase),
    Gives(Subrequest, FilteredBody),
    Over,
}

impl LiveBody for SubrequestBody {
    fn poll_chunk(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        if let Self::Runs(run, waits_for) = self {
            x.waits_for(*waits_for);
            let ran = run.as_mut().poll(cx);
            *waits_for = x.next_wait();
            let (mut subrequest, ran) = ready!(ran);
            ran.map_err(|_| BodyError::Subrequest)?;
            let body = FilteredBody::take(&mut subrequest.x.reply);
            *self = Self::Gives(subrequest, body);
        }
        let Self::Gives(subrequest, body) = self else { return Poll::Ready(Ok(None)) };
        let chunk = ready!(body.poll_chunk(&mut subrequest.x, cx))?;
        if chunk.is_none()
            && let Self::Gives(subrequest, _) = std::mem::replace(self, Self::Over)
        {
            x.end(subrequest);
        }
        Poll::Ready(Ok(chunk))
    }
}
