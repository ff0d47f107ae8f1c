use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::session::Client;
use net::{SocketProbe, Stream};

use crate::proxy::intake::ClientIntake;
use crate::session::StreamSession;
use crate::site::{StreamGeneration, StreamServerId};
use crate::tests::load;

fn session() -> StreamSession {
    let site = load("server { listen 127.0.0.1:1; }", Path::new("/nowhere"), false).unwrap();
    let client = Rc::new(Client::new(1, None, SocketProbe::NONE, 0));
    StreamSession::new(StreamGeneration::new(Arc::new(site), 1), StreamServerId(0), client)
}

/// Runs a test with a session, its client, and the client's own end.
fn with_client(test: impl FnOnce(StreamSession, Stream, UnixStream) + Send + 'static) {
    net::run(async move {
        let (own, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        test(session(), Stream::new(near.into()), own);
    })
    .unwrap();
}

#[test]
fn at_most_a_buffer_is_read_before_there_is_a_server() {
    with_client(|mut x, mut near, mut own| {
        own.write_all(b"0123456789").unwrap();
        x.preread = b"ab".to_vec();
        let mut cx = Context::from_waker(Waker::noop());
        let mut intake = ClientIntake::new(&mut near, 8, false);
        intake.read(&mut x, &mut cx);
        intake.read(&mut x, &mut cx);
        assert_eq!((&*x.preread, x.bytes_received), (&b"ab012345"[..], 6));
        // An end behind unread data is not noticed.
        drop(own);
        assert_eq!(intake.poll_left(&mut x, &mut cx), Poll::Pending);
        assert!(!intake.ended);
    });
}

#[test]
fn a_silent_client_takes_no_buffer_and_ends_the_wait() {
    for (half_close, left) in [(false, Poll::Ready(())), (true, Poll::Pending)] {
        with_client(move |mut x, mut near, own| {
            // A stream that was not polled before needs no reactor to notice the end.
            let mut ended = Stream::new(near.as_fd().try_clone_to_owned().unwrap());
            let mut cx = Context::from_waker(Waker::noop());
            let mut intake = ClientIntake::new(&mut near, 8, half_close);
            assert_eq!(intake.poll_left(&mut x, &mut cx), Poll::Pending);
            assert_eq!(x.preread.capacity(), 0);
            drop(own);
            let mut intake = ClientIntake::new(&mut ended, 8, half_close);
            assert_eq!(intake.poll_left(&mut x, &mut cx), left);
            assert!(intake.ended);
        });
    }
}
