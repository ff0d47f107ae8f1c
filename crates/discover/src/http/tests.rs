use std::path::Path;

use testing::Peer;

use super::*;

const SOON: Duration = Duration::from_secs(20);

fn client(peer: &Peer) -> HttpClient {
    let url = format!("http://{}/base/", peer.address);
    HttpClient::new(HttpPlace::parse(&url, Path::new("")).unwrap())
}

fn ask(reply: &str) -> io::Result<HttpReply> {
    client(&Peer::replying(reply)).ask(&HttpRequest::get("/x", SOON))
}

#[test]
fn replies_of_all_lengths_are_read() {
    for reply in [
        "HTTP/1.1 200 OK\nContent-Length: 3\nX-A: b\n\nabc",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nx-a: b\n\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\n\nHTTP/1.0 200 OK\nX-a: b\n\nabc",
    ] {
        let read = ask(reply).unwrap();
        assert_eq!((read.status, &*read.body, read.field("X-A")), (200, &b"abc"[..], Some("b")));
    }
    assert_eq!(ask("HTTP/1.1 204 No Content\n\n").unwrap().status, 204);
    for wrong in [
        "",
        "SSH-2.0-x\n",
        "HTTP/1.1 200 OK\nContent-Length: 4\n\nabc",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 1\nTransfer-Encoding: chunked\n\na",
        "HTTP/1.1 200 OK\nContent-Length: 3\nContent-Encoding: gzip\n\nabc",
    ] {
        let peer = Peer::playing(move |mut connection| {
            connection.request();
            connection.send(wrong);
        });
        let asked = client(&peer).ask(&HttpRequest::get("/x", SOON));
        assert!(asked.is_err(), "{wrong}");
    }
}

#[test]
fn a_kept_connection_that_has_ended_is_replaced() {
    let peer = Peer::playing(|mut connection| {
        connection.request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let mut client = client(&peer);
    for _ in 0..3 {
        assert_eq!(client.ask(&HttpRequest::get("/x", SOON)).unwrap().body, b"ok");
    }
    assert_eq!(peer.connections(), 3);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let peer = Peer::playing(|mut connection| {
        connection.request();
        connection.wait_for_end();
    });
    let request = HttpRequest::get("/x", Duration::from_millis(20));
    let error = client(&peer).ask(&request).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_handshake_that_comes_byte_by_byte_has_a_deadline() {
    // The head of a record of 16 KB, and then a byte of it now and then.
    let peer = Peer::playing(|mut connection| {
        connection.send_raw([22, 3, 3, 64, 0])?;
        loop {
            connection.send_raw([0])?;
            std::thread::sleep(Duration::from_millis(5));
        }
        #[allow(unreachable_code, reason = "the type of the script")]
        Some(())
    });
    let roots = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testdata/ca.pem");
    let url = format!("https://{}", peer.address);
    let mut client = HttpClient::new(HttpPlace::parse(&url, &roots).unwrap());
    let error = client.ask(&HttpRequest::get("/x", Duration::from_millis(100))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}
