//! What every way to ask a server begins with: a connection, within a time.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use net::{Address, Connect, Stream, Timer};

/// Opens a connection before the timer's time is over. An error comes with the name of the call.
pub async fn connect(
    manner: &Connect,
    to: &Address,
    timer: &Timer,
) -> Result<Stream, (&'static str, io::Error)> {
    let mut connecting = manner.begin(to)?;
    in_time(timer, |cx| connecting.poll(cx)).await.map_err(|error| ("connect()", error))
}

/// Waits for `poll`; once the timer's time is over, the error is the system's for that.
pub async fn in_time<T>(
    timer: &Timer,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
) -> io::Result<T> {
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => timer.poll(cx).map(|()| Err(net::timed_out())),
    })
    .await
}
