//! Every wait of a connection has a deadline.

use wire::http2::Http2Code;

use super::{Http2Client, Server, frame, server, with_files};

/// The beginning of a frame that has no stream.
fn half_a_ping() -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, frame::PING, 0, 0, &[0; 8]);
    out.truncate(5);
    out
}

#[test]
fn an_unfinished_frame_does_not_extend_the_deadline() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.send(&half_a_ping());
    server.advance(3100);
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR), "before the first request");
    let mut client = Http2Client::connect(&server);
    let stream = client.get("/");
    client.answer(stream);
    client.send(&half_a_ping());
    server.advance(9000);
    client.socket.expect_nothing();
    server.advance(1100);
    assert_eq!(client.end(), Some(Http2Code::NO_ERROR), "after a request");
}

/// `send_timeout` also limits the connection, whatever windows its client has opened.
#[test]
fn a_connection_whose_client_reads_nothing_ends() {
    let site = "error_log e.log info; http2 on; send_timeout 4s; server { location /long { } }";
    let server = Server::with(site, |_| {}, with_files);
    let mut client = Http2Client::connect(&server);
    for _ in 0..4 {
        let stream = client.ask("/long", &[], true);
        client.endpoint.raise_window(stream, 1 << 20);
    }
    client.flush();
    (0..4).for_each(|_| server.advance(4100));
    (0..4).for_each(|_| assert_eq!(server.logged().0, 200));
    // The connection is closed before everything was sent.
    assert!(client.socket.rest().len() < 1_000_000);
}

#[test]
fn a_closed_connection_lingers() {
    let site = "http2 on; lingering_timeout 1s; lingering_time 3s; server { }";
    let server = Server::start(site);
    let mut client = Http2Client::connect(&server);
    let mut data = Vec::new();
    frame::write(&mut data, frame::DATA, 0, 0, b"x");
    client.send(&data);
    assert_eq!(client.end(), Some(Http2Code::PROTOCOL_ERROR));
    let mut socket = client.socket;
    for _ in 0..4 {
        assert!(socket.is_read());
        server.advance(900);
    }
    socket.write_until_refused();
}
