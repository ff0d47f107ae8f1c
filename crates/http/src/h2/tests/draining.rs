//! Clients that are to go elsewhere.

use wire::http2::Http2Code;

use super::{Http2Client, server};

/// More than the steps in which clients are told.
const STEPS: usize = 25;

/// A client that has had a reply.
fn served(server: &super::Server) -> Http2Client {
    let mut client = Http2Client::connect(server);
    let stream = client.get("/");
    client.answer(stream);
    client
}

#[test]
fn idle_clients_are_told_to_go_elsewhere_and_stay_parked() {
    let server = server();
    let mut clients = [(); 3].map(|()| served(&server));
    server.advance(2000);
    assert_eq!(server.parked(), 3);
    server.set_draining(true);
    (0..STEPS).for_each(|_| server.advance(100));
    // One of them asks before it learns of that.
    let late = clients[0].get("/late");
    assert_eq!(clients[0].answer(late).0, "200");
    for client in &mut clients {
        client.until(|client| client.went_away == Some(Http2Code::NO_ERROR));
        assert!(client.endpoint.is_used_up() && !client.is_closed);
    }
    server.advance(2000);
    assert_eq!(server.parked(), 3);
    server.drain();
    for mut client in clients {
        assert_eq!(client.end(), Some(Http2Code::NO_ERROR));
    }
}

#[test]
fn a_request_under_way_is_finished_while_its_client_is_sent_away() {
    let server = server();
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let stream = client.ask("/long", &[], true);
    client.until(|client| client.answers[&stream.id].body.len() == 65_536);
    server.set_draining(true);
    (0..STEPS).for_each(|_| server.advance(100));
    client.until(|client| client.went_away.is_some());
    client.reads = true;
    client.endpoint.raise_window(stream, 400_000);
    assert_eq!(client.answer(stream.id).1.len(), 300_000);
}

/// Its connection would be useless otherwise.
#[test]
fn a_new_client_has_its_first_request_served() {
    let server = server();
    server.set_draining(true);
    (0..STEPS).for_each(|_| server.advance(100));
    let mut client = Http2Client::connect(&server);
    server.advance(100);
    assert_eq!(client.went_away, None);
    let stream = client.get("/");
    assert_eq!(client.answer(stream).0, "200");
    client.until(|client| client.went_away.is_some());
}

#[test]
fn clients_may_come_back() {
    let server = server();
    server.set_draining(true);
    server.set_draining(false);
    let mut client = served(&server);
    (0..STEPS).for_each(|_| server.advance(100));
    client.endpoint.ping([0; 8]);
    client.until(|client| client.pongs == 1);
    assert_eq!(client.went_away, None);
}
