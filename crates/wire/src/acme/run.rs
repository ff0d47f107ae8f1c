//! A run: a conversation written as one sequence of steps, which its driver resumes.
//!
//! The sequence is a future that is never polled by an executor. It waits for nothing but the
//! outcome of its own last step, so resuming is polling it once.

use alloc::boxed::Box;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::failure::AcmeFailure;
use super::step::{AcmeInput, AcmeStep};

/// A conversation with a certificate authority. Dropping it is giving up; what was published then
/// is the driver's to withdraw.
pub struct AcmeRun<T> {
    sequence: Pin<Box<dyn Future<Output = Result<T, AcmeFailure>>>>,
    line: DriverLine,
    has_ended: bool,
}

/// Between a sequence and its driver: the step to do, and then its outcome.
#[derive(Clone, Default)]
pub(super) struct DriverLine(Rc<RefCell<LineState>>);

#[derive(Default)]
struct LineState {
    step: Option<AcmeStep<()>>,
    outcome: Option<AcmeInput>,
}

impl<T> AcmeRun<T> {
    pub(super) fn new<F>(sequence: impl FnOnce(DriverLine) -> F) -> Self
    where
        F: Future<Output = Result<T, AcmeFailure>> + 'static,
    {
        let line = DriverLine::default();
        Self { sequence: Box::pin(sequence(line.clone())), line, has_ended: false }
    }

    /// Goes on with the outcome of the last step. The first call begins, with
    /// [`AcmeInput::Done`]; there is none after [`AcmeStep::Finished`].
    pub fn resume(&mut self, outcome: AcmeInput) -> AcmeStep<T> {
        assert!(!self.has_ended, "a run ends once");
        self.line.0.borrow_mut().outcome = Some(outcome);
        match self.sequence.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => {
                self.has_ended = true;
                AcmeStep::Finished(result)
            }
            Poll::Pending => {
                let step = self.line.0.borrow_mut().step.take();
                step.expect("a sequence waits for a step only").of_run()
            }
        }
    }
}

impl DriverLine {
    /// Lets the driver do a step.
    pub(super) async fn ask(&self, step: AcmeStep<()>) -> AcmeInput {
        *self.0.borrow_mut() = LineState { step: Some(step), outcome: None };
        poll_fn(|_| self.0.borrow_mut().outcome.take().map_or(Poll::Pending, Poll::Ready)).await
    }
}

impl AcmeStep<()> {
    /// The same step of a run with another result. The end is not a step that a sequence asks for.
    fn of_run<T>(self) -> AcmeStep<T> {
        match self {
            Self::Send(request) => AcmeStep::Send(request),
            Self::Wait(seconds) => AcmeStep::Wait(seconds),
            Self::Publish(challenges) => AcmeStep::Publish(challenges),
            Self::Withdraw(challenges) => AcmeStep::Withdraw(challenges),
            Self::Store(record) => AcmeStep::Store(record),
            Self::Finished(_) => unreachable!("a sequence ends by returning"),
        }
    }
}

impl<T> fmt::Debug for AcmeRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeRun").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}
