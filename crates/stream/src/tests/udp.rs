//! Sessions over UDP, with clients and servers on real sockets.

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::session::AdmittedClient;
use net::{Address, SocketOptions, listening};

use testing::Folder;

use super::{load, logged, refusal};
use crate::StreamWorker;
use crate::site::StreamGeneration;

const LOG: &str = "log_format f '$protocol $status $bytes_received/$bytes_sent \
                   $upstream_bytes_sent/$upstream_bytes_received'; access_log a.log f;
                   error_log e.log info;";

/// A worker with one socket, whose address is `ADDRESS` in configurations.
struct Port {
    worker: Rc<StreamWorker>,
    address: SocketAddr,
    folder: Folder,
    socket: OwnedFd,
}

impl Port {
    /// Serves a configuration with at most `sessions_max` sessions at a time.
    fn open(text: &str, sessions_max: usize) -> Self {
        let any = Address::Udp(([127, 0, 0, 1], 0).into());
        let socket = listening::bind(&any, &SocketOptions::default(), true).unwrap();
        let Ok(Address::Udp(address)) = Address::of(socket.as_fd()) else { panic!("no UDP") };
        let folder = Folder::new();
        let worker = StreamWorker::new(generation(text, address, &folder, 1));
        let (balancer, _) = net::balancer_handles(1).remove(0).begin();
        balancer.set_limit(sessions_max);
        let admit = move |_| Some(AdmittedClient { permit: balancer.assign_own()?, debug: false });
        net::spawn(worker.clone().receive(socket.try_clone().unwrap(), 0, admit));
        Self { worker, address, folder, socket }
    }

    fn replace(&self, text: &str) {
        self.worker.replace(generation(text, self.address, &self.folder, 2));
    }

    fn client(&self) -> UdpSocket {
        let client = bound();
        client.connect(self.address).unwrap();
        client
    }
}

fn generation(text: &str, at: SocketAddr, folder: &Folder, number: u64) -> Rc<StreamGeneration> {
    let text = format!("{LOG} {}", text.replace("ADDRESS", &format!("{at} udp")));
    StreamGeneration::new(Arc::new(load(&text, folder, false).unwrap()), number)
}

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// The next datagram and its sender, while the worker runs.
async fn next(socket: &UdpSocket) -> (String, SocketAddr) {
    let mut buffer = [0; 2048];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((len, peer)) => {
                return (String::from_utf8_lossy(&buffer[..len]).into_owned(), peer);
            }
            Err(_) => net::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn until(done: impl Fn() -> bool) {
    while !done() {
        net::sleep(Duration::from_millis(1)).await;
    }
}

/// Runs a test until the worker has no session left.
fn run(test: impl AsyncFnOnce()) {
    net::run(test()).unwrap();
}

#[test]
fn each_datagram_is_answered_with_the_text() {
    run(async || {
        let port = Port::open("server { listen ADDRESS; return $protocol:$bytes_received; }", 9);
        let client = port.client();
        for text in ["1", "12", "123", "1234", ""] {
            client.send(text.as_bytes()).unwrap();
        }
        for length in [1, 2, 3, 4, 0] {
            assert_eq!(next(&client).await.0, format!("UDP:{length}"));
        }
        port.worker.leave().await;
        let log = logged(&port.folder, "a.log");
        assert!(log.starts_with("UDP 200 1/5 -/-\nUDP 200 2/5"), "{log}");
        let errors = logged(&port.folder, "e.log");
        let connected = format!("udp client {} connected to", client.local_addr().unwrap());
        assert!(errors.contains(&connected), "{errors}");
    });
}

#[test]
fn a_session_ends_after_all_expected_datagrams() {
    run(async || {
        let server = bound();
        let port = Port::open(
            &format!(
                "server {{ listen ADDRESS; proxy_pass {}; proxy_requests 2; proxy_responses 1; }}",
                server.local_addr().unwrap()
            ),
            9,
        );
        let client = port.client();
        // The third datagram belongs to another session, although there was no answer.
        let mut peers = Vec::new();
        for text in ["a", "bb", "ccc"] {
            client.send(text.as_bytes()).unwrap();
            let (asked, peer) = next(&server).await;
            assert_eq!(asked, text);
            peers.push(peer);
        }
        assert!(peers[0] == peers[1] && peers[1] != peers[2], "{peers:?}");
        for (peer, answer) in peers.iter().zip(["A", "BB", "CCC"]) {
            server.send_to(answer.as_bytes(), peer).unwrap();
            assert_eq!(next(&client).await.0, answer);
        }
        client.send(b"dddd").unwrap();
        assert_eq!(next(&server).await, ("dddd".to_owned(), peers[2]));
        server.send_to(b"DDDD", peers[2]).unwrap();
        assert_eq!(next(&client).await.0, "DDDD");
        port.worker.leave().await;
        assert_eq!(logged(&port.folder, "a.log"), "UDP 200 3/3 3/3\nUDP 200 7/7 7/7\n");
        let errors = logged(&port.folder, "e.log");
        let over = "udp done, packets from/to client:2/2, bytes from/to client:3/3, bytes from/to \
                    upstream:3/3\n";
        assert!(errors.contains(over), "{errors}");
        assert!(errors.contains("udp proxy 127.0.0.1:"), "{errors}");
    });
}

#[test]
fn a_server_that_does_not_answer_in_time_has_failed() {
    run(async || {
        let server = bound();
        let text = |responses: &str| {
            let server = server.local_addr().unwrap();
            format!(
                "server {{ listen ADDRESS; proxy_pass {server}; proxy_timeout 20ms; {responses} }}"
            )
        };
        for (responses, log, error) in [
            ("", "UDP 200 1/0 1/0\n", "udp timed out, packets from/to client:1/0"),
            (
                "proxy_responses 1;",
                "UDP 502 1/0 1/0\n",
                "upstream timed out (110: Connection timed out) while proxying connection, udp \
                 client: 127.0.0.1, server: ",
            ),
            ("proxy_responses 0;", "UDP 200 1/0 1/0\n", "udp done"),
        ] {
            let port = Port::open(&text(responses), 9);
            port.client().send(b"x").unwrap();
            next(&server).await;
            port.worker.leave().await;
            assert_eq!(logged(&port.folder, "a.log"), log, "{responses}");
            let errors = logged(&port.folder, "e.log");
            assert!(errors.contains(error), "{errors}");
        }
    });
}

#[test]
fn a_server_that_refuses_fails_the_session_and_gets_no_others() {
    run(async || {
        let (alive, closed) = (bound(), bound().local_addr().unwrap());
        let port = Port::open(
            &format!(
                "upstream u {{ server {closed}; server {}; }}
                 server {{ listen ADDRESS; proxy_pass u; proxy_responses 1; }}",
                alive.local_addr().unwrap()
            ),
            9,
        );
        let client = port.client();
        client.send(b"lost").unwrap();
        until(|| logged(&port.folder, "a.log") == "UDP 502 4/0 4/0\n").await;
        let errors = logged(&port.folder, "e.log");
        let refused = "recv() failed (111: Connection refused) while proxying and reading from \
                       upstream, udp client: 127.0.0.1, server: ";
        assert!(errors.contains(refused), "{errors}");
        assert!(errors.contains("upstream server temporarily disabled"), "{errors}");
        for _ in 0..3 {
            client.send(b"heard").unwrap();
            let (asked, peer) = next(&alive).await;
            assert_eq!(asked, "heard");
            alive.send_to(b"yes", peer).unwrap();
            assert_eq!(next(&client).await.0, "yes");
        }
    });
}

#[test]
fn a_proxy_header_precedes_only_the_first_datagram() {
    run(async || {
        let server = bound();
        let port = Port::open(
            &format!(
                "server {{ listen ADDRESS; proxy_pass {}; proxy_protocol on; }}",
                server.local_addr().unwrap()
            ),
            9,
        );
        let client = port.client();
        let (from, to) = (client.local_addr().unwrap(), port.address);
        client.send(b"first").unwrap();
        client.send(b"second").unwrap();
        let header =
            format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\nfirst", from.port(), to.port());
        assert_eq!(next(&server).await.0, header);
        assert_eq!(next(&server).await.0, "second");
        port.worker.cut_before(u64::MAX);
        port.worker.leave().await;
        assert_eq!(
            logged(&port.folder, "a.log").lines().count(),
            1,
            "a session cut short is logged"
        );
    });
}

#[test]
fn a_client_beyond_the_limit_has_no_session() {
    run(async || {
        let server = bound();
        let port = Port::open(
            &format!(
                "server {{ listen ADDRESS; proxy_pass {}; proxy_responses 1; }}",
                server.local_addr().unwrap()
            ),
            1,
        );
        let (first, second) = (port.client(), port.client());
        first.send(b"first").unwrap();
        let (asked, peer) = next(&server).await;
        assert_eq!(asked, "first");
        second.send(b"dropped").unwrap();
        first.send(b"again").unwrap();
        assert_eq!(next(&server).await.0, "again");
        server.send_to(b"1", peer).unwrap();
        server.send_to(b"2", peer).unwrap();
        until(|| port.worker.is_idle()).await;
        second.send(b"second").unwrap();
        assert_eq!(next(&server).await.0, "second");
    });
}

#[test]
fn a_datagram_with_the_servers_own_address_is_dropped() {
    run(async || {
        let port = Port::open("server { listen ADDRESS; return $remote_port; }", 9);
        let own = UdpSocket::from(port.socket.try_clone().unwrap());
        own.send_to(b"forged", port.address).unwrap();
        let client = port.client();
        client.send(b"real").unwrap();
        assert_eq!(next(&client).await.0, client.local_addr().unwrap().port().to_string());
        port.worker.leave().await;
        assert_eq!(logged(&port.folder, "a.log").lines().count(), 1);
    });
}

#[test]
fn a_session_keeps_its_configuration_until_its_socket_is_closed() {
    run(async || {
        let (old, new) = (bound(), bound());
        let to = |server: &UdpSocket| {
            format!("server {{ listen ADDRESS; proxy_pass {}; }}", server.local_addr().unwrap())
        };
        let port = Port::open(&to(&old), 9);
        let (first, second) = (port.client(), port.client());
        first.send(b"one").unwrap();
        let (_, peer) = next(&old).await;
        port.replace(&to(&new));
        first.send(b"two").unwrap();
        assert_eq!(next(&old).await, ("two".to_owned(), peer));
        second.send(b"three").unwrap();
        assert_eq!(next(&new).await.0, "three");
        old.send_to(b"answer", peer).unwrap();
        assert_eq!(next(&first).await.0, "answer");
        port.replace("");
        port.worker.leave().await;
        let mut log: Vec<_> = logged(&port.folder, "a.log").lines().map(str::to_owned).collect();
        log.sort();
        assert_eq!(log, ["UDP 200 5/0 5/0", "UDP 200 6/6 6/6"]);
        assert!(logged(&port.folder, "e.log").contains("disconnected on shutdown"));
    });
}

#[test]
fn datagrams_received_while_a_name_is_resolved_are_kept() {
    run(async || {
        let (server, asked) = (bound(), Rc::new(Cell::new(0)));
        let resolver = bound();
        let port = Port::open(
            &format!(
                "resolver {} ipv6=off; map 1 $name {{ default name.test:{}; }}
                 server {{ listen ADDRESS; proxy_pass $name; }}",
                resolver.local_addr().unwrap(),
                server.local_addr().unwrap().port()
            ),
            9,
        );
        let client = port.client();
        for text in ["one", "two", "three"] {
            client.send(text.as_bytes()).unwrap();
        }
        // A reply with one answer: an A record of 127.0.0.1.
        let mut buffer = [0; 512];
        let (len, peer) = loop {
            match resolver.recv_from(&mut buffer) {
                Ok(received) => break received,
                Err(_) => net::sleep(Duration::from_millis(1)).await,
            }
        };
        asked.set(len);
        let mut answer = buffer[..len].to_vec();
        (answer[2], answer[3], answer[7]) = (0x81, 0x80, 1);
        answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 127, 0, 0, 1]);
        resolver.send_to(&answer, peer).unwrap();
        for text in ["one", "two", "three"] {
            assert_eq!(next(&server).await.0, text);
        }
    });
}

#[test]
fn parameters_of_tcp_are_refused() {
    for parameter in
        ["backlog=5", "fastopen=5", "deferred", "multipath", "so_keepalive=on", "proxy_protocol"]
    {
        let name = parameter.split('=').next().unwrap();
        let expected =
            format!("\"listen\" directive \"{name}\" parameter is incompatible with \"udp\":1");
        for line in [format!("{parameter} udp"), format!("udp {parameter}")] {
            let text = format!("server {{ listen 127.0.0.1:1 {line}; return a; }}");
            assert_eq!(refusal(&text), expected, "{line}");
        }
    }
    let both = "server { listen 127.0.0.1:1 ssl udp deferred; return a; }";
    let expected = "\"listen\" directive \"deferred\" parameter is incompatible with \"udp\":1";
    assert_eq!(refusal(both), expected, "in nginx's order");
    assert!(refusal("server { listen unix:/a udp; return a; }").contains("is not supported"));
}

#[test]
fn an_address_may_be_listened_on_by_both_protocols() {
    let text =
        "server { listen 127.0.0.1:1; listen 127.0.0.1:1 udp rcvbuf=64k sndbuf=64k reuseport;
                return a; }";
    let folder = Folder::new();
    let site = load(text, &folder, false).unwrap();
    let udp: Vec<_> = site.listens.iter().map(|listen| listen.address.is_udp()).collect();
    assert_eq!(udp, [false, true]);
    let twice = "server { listen 127.0.0.1:1 udp; listen 127.0.0.1:1 udp; return a; }";
    assert!(refusal(twice).starts_with("a duplicate listen 127.0.0.1:1"));
}
