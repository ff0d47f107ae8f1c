//! Work that may wait for a disk, done by threads beside the worker, so that the worker goes on.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Threads that work beside one worker; further work queues for them. nginx's pool has as many.
pub(crate) const THREADS_MAX: usize = 32;

/// Work under way. Whoever drops it is not told of the result; the work is finished all the same.
pub struct Offloaded<T>(tokio::task::JoinHandle<T>);

/// Has a thread do the work.
pub fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Offloaded<T> {
    Offloaded(tokio::task::spawn_blocking(work))
}

impl<T> Future for Offloaded<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(done) => Poll::Ready(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is ending, and nobody is asked again.
                Err(_) => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_does_the_work() {
        let here = std::thread::current().id();
        let there = crate::run(async { super::offload(|| std::thread::current().id()).await });
        assert_ne!(there.unwrap(), here);
    }
}
