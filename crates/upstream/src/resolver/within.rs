//! Waiting with a time limit, and for all of many futures.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use net::Timer;

/// The result, or `None` if it takes longer than `limit_ms`; 0 is no limit.
pub(super) async fn within<T>(limit_ms: u64, work: impl Future<Output = T>) -> Option<T> {
    let timer = Timer::new();
    if limit_ms > 0 {
        timer.set(limit_ms);
    }
    timer.limit(work).await
}

/// All results, in order.
pub(super) async fn all<T>(works: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut works: Vec<_> = works.map(|work| (Box::pin(work), None)).collect();
    poll_fn(|cx| {
        for (work, done) in works.iter_mut().filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(result) = Pin::new(work).poll(cx) {
                *done = Some(result);
            }
        }
        match works.iter().all(|(_, done)| done.is_some()) {
            true => Poll::Ready(works.iter_mut().filter_map(|(_, done)| done.take()).collect()),
            false => Poll::Pending,
        }
    })
    .await
}
