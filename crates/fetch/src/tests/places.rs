//! Kinds of endpoints: addresses, Unix sockets, names.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use conf::{Load, MemoryFiles, Value};
use net::Address;
use testing::{Folder, free_address};
use upstream::ResolverPolicy;
use upstream::address::Endpoint;
use upstream::resolver::NameServers;

use super::*;
use crate::{FetchError, FetchStep};

const OK: &str = "HTTP/1.1 200 OK\r\n\r\nbody";

/// The result of a request to this endpoint, from a fetcher with this resolver.
async fn fetched_at(place: Endpoint, names: &ResolverPolicy) -> Result<FetchResponse, FetchError> {
    let fetcher = Fetcher::new(FetchSettings { names: names.clone(), ..FetchSettings::default() });
    let origin = FetchOrigin { place, host: b"a.test".to_vec(), transport: None };
    fetcher.send(&get(origin), &LIMITS).await
}

fn named(host: &str, port: u16) -> Endpoint {
    Endpoint::Named { host: host.as_bytes().into(), port }
}

#[test]
fn connection_refused() {
    let free = free_address();
    let fetched = simulate(fetched_at(Endpoint::At(Address::Ip(free)), &ResolverPolicy::default()));
    let error = fetched.expect("a worker").0.expect_err("refused");
    let failed = "the connection failed (111: Connection refused)";
    assert_eq!(error.to_string(), format!("{failed} while connecting to {free}"));
    assert_eq!(error.step, FetchStep::Connecting);
}

#[test]
fn requests_over_a_unix_socket() {
    let folder = Folder::new();
    let listener = UnixListener::bind(folder.join("socket")).expect("a socket");
    let fetched = simulate(async {
        let peer = Peer::at(listener.into());
        let place = Endpoint::At(peer.address().clone());
        net::spawn(async move { drop(peer.accept().await.answer(OK).await) });
        fetched_at(place, &ResolverPolicy::default()).await
    });
    assert_eq!(fetched.expect("a worker").0.expect("a reply").body, b"body");
}

#[test]
fn a_name_needs_a_resolver() {
    let fetched = simulate(fetched_at(named("b.test", 80), &ResolverPolicy::default()));
    let error = fetched.expect("a worker").0.expect_err("no resolver");
    assert_eq!(error.to_string(), "there is no resolver while resolving b.test:80");
}

/// `resolver` with a name server that returns these addresses for each name, or `NXDOMAIN` if there
/// are none. It answers one query.
fn resolver(addresses: &'static [[u8; 4]]) -> ResolverPolicy {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let line = format!("resolver {} ipv6=off;", socket.local_addr().expect("bound"));
    thread::spawn(move || {
        let mut question = [0; 512];
        let (length, from) = socket.recv_from(&mut question).expect("a question");
        let mut answer = question[..length].to_vec();
        let rcode = if addresses.is_empty() { 3 } else { 0 };
        answer[2..4].copy_from_slice(&[0x81, 0x80 | rcode]);
        answer[7] = addresses.len() as u8;
        for address in addresses {
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend_from_slice(address);
        }
        socket.send_to(&answer, from).expect("sent");
    });
    let mut files = MemoryFiles::default().with("/nginx.conf", line);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let line = &tree.unwrap_or_else(|error| panic!("{}", error.message)).root[0];
    let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
    let servers = NameServers::parse(line, &mut load);
    let servers = servers.unwrap_or_else(|error| panic!("{}", error.message));
    ResolverPolicy { servers: Some(servers), timeout_ms: 5000 }
}

#[test]
fn the_addresses_of_a_name_are_tried_in_turn() {
    let fetched = net::run(async {
        let peer = Peer::new();
        let port = peer.address().port().expect("one of TCP");
        net::spawn(async move { drop(peer.accept().await.answer(OK).await) });
        // The first address refuses connections.
        let names = resolver(&[[127, 0, 0, 2], [127, 0, 0, 1]]);
        fetched_at(named("b.test", port), &names).await
    });
    assert_eq!(fetched.expect("a worker").expect("a reply").body, b"body");
}

#[test]
fn the_error_names_the_address_of_a_name() {
    let free = TcpListener::bind("127.0.0.2:0").expect("a socket").local_addr().expect("bound");
    let names = resolver(&[[127, 0, 0, 2]]);
    let fetched = net::run(fetched_at(named("b.test", free.port()), &names));
    let error = fetched.expect("a worker").expect_err("refused").to_string();
    assert!(error.ends_with(&format!(" while connecting to b.test at {free}")), "{error}");
}

#[test]
fn a_name_that_does_not_exist_is_an_error() {
    let fetched = net::run(fetched_at(named("b.test", 80), &resolver(&[])));
    let error = fetched.expect("a worker").expect_err("not found").to_string();
    let reason = "b.test could not be resolved (3: Host not found)";
    assert_eq!(error, format!("{reason} while resolving b.test:80"));
}
