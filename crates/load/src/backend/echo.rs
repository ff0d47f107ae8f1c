//! Sends back what it receives: byte streams of connections, and datagrams one by one.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use net::{Datagrams, Stream, buffers};

use super::place::ServedAddress;
use super::stats::Count;

const DATAGRAM_MAX: usize = 64 * 1024;

/// Serves a connection to its end.
pub(super) async fn serve(fd: OwnedFd, place: Rc<ServedAddress>) {
    let counts = place.counts();
    counts.add(Count::Accepted, 1);
    let mut buffer = buffers::lend();
    // The client may be gone, which does not matter.
    let _ = send_back(Stream::new(fd), &mut buffer, &place).await;
    buffers::give_back(buffer);
    counts.add(Count::Closed, 1);
}

async fn send_back(
    mut stream: Stream,
    buffer: &mut Vec<u8>,
    place: &ServedAddress,
) -> io::Result<()> {
    stream.set_nodelay();
    while poll_fn(|cx| stream.poll_read(cx, buffer)).await? > 0 {
        place.counts().add(Count::Received, buffer.len() as u64);
        let mut at = 0;
        while at < buffer.len() {
            let rest = [IoSlice::new(&buffer[at..])];
            at += poll_fn(|cx| stream.poll_write(cx, &rest)).await?;
        }
        place.counts().add(Count::Sent, buffer.len() as u64);
        buffer.clear();
    }
    Ok(())
}

/// Serves a socket for ever.
pub(super) async fn datagrams(socket: Datagrams, place: Rc<ServedAddress>) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        // An error about one datagram, such as a sender that is gone, does not stop the server.
        let Ok((length, from)) = socket.receive_from(&mut buffer).await else { continue };
        place.counts().add(Count::Requests, 1);
        place.counts().add(Count::Received, length as u64);
        if socket.send_to(&buffer[..length], from).is_ok() {
            place.counts().add(Count::Sent, length as u64);
        }
    }
}
