//! Limits that several servers share through a store, which is a fake one that works, stalls, sends
//! garbage, or is gone. Whatever it does, no request waits for it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use server::counting::{Backend, reply, send};
use testing::{
    FakeStore, Folder, Peer, PeerConnection, Server, body, complaint, connect, eventually,
    free_address, kill, take_store_command,
};

/// How the store answers.
const WORKS: u8 = 0;
const STALLS: u8 = 1;
const SENDS_GARBAGE: u8 = 2;
const CUTS: u8 = 3;
const NEVER_ENDS: u8 = 4;

/// A store that misbehaves when it is told to.
#[derive(Default)]
struct FaultyStore {
    content: Mutex<FakeStore>,
    behaviour: AtomicU8,
    /// Replies are sent byte by byte if this is not 0.
    is_slow: AtomicU8,
}

impl FaultyStore {
    fn start() -> (Arc<Self>, Peer) {
        let store = Arc::new(Self::default());
        let own = store.clone();
        let peer = Peer::playing(move |mut peer| while own.serve(&mut peer).is_some() {});
        (store, peer)
    }

    fn behave(&self, behaviour: u8) {
        self.behaviour.store(behaviour, SeqCst);
    }

    fn serve(&self, peer: &mut PeerConnection) -> Option<()> {
        let command = take_store_command(peer)?;
        match self.behaviour.load(SeqCst) {
            STALLS => Some(()),
            SENDS_GARBAGE => peer.send_raw("HTTP/1.1 400 Bad Request\r\n\r\n"),
            CUTS => {
                peer.send_raw(":1")?;
                None
            }
            NEVER_ENDS => loop {
                peer.send_raw(b"*1000000\r\n".repeat(1000))?;
            },
            _ => {
                let reply = self.content().reply_now(&command);
                if self.is_slow.load(SeqCst) == 0 {
                    return peer.send_raw(reply);
                }
                reply.chunks(1).try_for_each(|byte| peer.send_raw(byte))
            }
        }
    }

    fn content(&self) -> MutexGuard<'_, FakeStore> {
        self.content.lock().unwrap()
    }

    /// Other machines use the store from now on.
    fn join(&self, machines: &[&str]) {
        let mut content = self.content();
        for machine in machines {
            for set in ["weir:nodes", "weir:masters"] {
                content.members.insert((set.into(), (*machine).into()), i64::MAX);
            }
        }
    }

    /// They are gone, and their last heartbeat is long ago.
    fn leave(&self) {
        self.content().members.retain(|_, score| *score < i64::MAX);
    }

    /// It loses everything, and the nodes come back one after the other.
    fn forget(&self, others: &[&str]) {
        let is_empty = || self.content().members.is_empty();
        self.content().members.clear();
        eventually("a heartbeat", || (!is_empty()).then_some(()));
        self.join(others);
    }

    /// The sum of the only key, once it is this.
    fn await_sum(&self, expected: i64) {
        let mut last = Vec::new();
        eventually(&format!("a sum of {expected}"), || {
            last = self.content().numbers.values().map(|numbers| numbers[0]).collect();
            (last.iter().sum::<i64>() == expected).then_some(())
        });
    }
}

/// A site that lets one request in a minute through, and `burst` more.
fn site(store: &str, burst: u32) -> String {
    format!(
        "limit_req_zone $request_method zone=shared:1m rate=1r/m sync={store};
         server {{
             listen ADDRESS;
             location / {{ limit_req zone=shared burst={burst} nodelay; stub_status; }}
             location /status {{ prometheus; }}
         }}"
    )
}

fn url(peer: &Peer) -> String {
    format!("valkey://{}", peer.address)
}

/// How many of so many requests are let through.
fn passed(server: &Server, requests: usize) -> usize {
    passed_by(|| server.get("/"), requests)
}

fn passed_by(ask: impl Fn() -> String, requests: usize) -> usize {
    (0..requests).filter(|_| ask().starts_with("Active connections")).count()
}

#[test]
fn servers_count_together() {
    let (store, peer) = FaultyStore::start();
    let [one, other] = [0, 1].map(|_| Server::start("", &site(&url(&peer), 9)));
    one.await_log("2 nodes", 1);
    assert_eq!(passed(&one, 4), 4);
    store.await_sum(4);
    // The other one learns of them with its first request.
    assert_eq!(passed(&other, 1), 1);
    store.await_sum(5);
    let exchanges = || peer_exchanges(&other);
    let before = exchanges();
    eventually("two further exchanges", || (exchanges() >= before + 2).then_some(()));
    let of_other = passed(&other, 20);
    assert_eq!(of_other, 5);
    store.await_sum(10);
    // A reload changes nothing.
    other.configure("", &site(&url(&peer), 9));
    other.reload();
    assert_eq!(passed(&other, 5), 0);
}

/// How many exchanges a server has made, as its page says.
fn peer_exchanges(server: &Server) -> u64 {
    exchanges_of(&server.get("/status"))
}

fn exchanges_of(page: &str) -> u64 {
    let line = page.lines().find(|line| line.starts_with("weir_store_exchanges_total{"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_server_enforces_its_share_while_the_store_is_gone() {
    for (behaviour, words) in [
        (STALLS, "no answer within 200 ms"),
        (SENDS_GARBAGE, "the answer is not RESP"),
        (CUTS, "it has closed the connection"),
        (NEVER_ENDS, "too large an answer"),
    ] {
        let (store, peer) = FaultyStore::start();
        let address = format!("{}?timeout=200ms", url(&peer));
        let [one, _other] = [0, 1].map(|_| Server::start("", &site(&address, 9)));
        one.await_log("2 nodes", 1);
        store.behave(behaviour);
        one.await_log(&format!("cannot be used: {words}; each node enforces 1/2"), 1);
        // Half of a burst of nine, and one.
        let begun = Instant::now();
        assert_eq!(passed(&one, 20), 5, "{words}");
        assert!(begun.elapsed().as_secs() < 10, "requests wait for the store: {words}");
        // It goes on trying, and comes back by itself.
        store.behave(WORKS);
        one.await_log("is used", 2);
        assert_eq!(passed(&one, 1), 1, "the whole burst again: {words}");
        assert_eq!(one.log().matches("cannot be used").count(), 1);
    }
}

#[test]
fn a_server_starts_without_the_store() {
    let address = free_address();
    let store = format!("valkey://:geheim@{address}?nodes=3");
    let server = Server::start("", &site(&store, 9));
    server.await_log("Connection refused", 1);
    server.await_log("each node enforces 1/3", 1);
    assert_eq!(passed(&server, 20), 4);
    assert!(!server.log().contains("geheim"));
}

#[test]
fn passwords_are_sent_and_not_shown() {
    let (store, peer) = FaultyStore::start();
    let address = format!("redis://user:%67eheim@{}/3", peer.address);
    let server = Server::start("", &site(&address, 9));
    server.await_log("/3 is used", 1);
    assert_eq!(passed(&server, 3), 3);
    store.await_sum(3);
    let page = server.get("/status");
    assert!(page.contains(&format!("weir_store_up{{store=\"{}/3\"}} 1", peer.address)), "{page}");
    server.folder.write("password", "geheim\n");
    let address = format!("redis://user:@{}/3?password_file=password&timeout=900ms", peer.address);
    server.configure("", &site(&address, 9));
    server.reload();
    server.await_log("/3 is used", 2);
    let address = format!("redis://user:geheim-falsch@{}/3", peer.address);
    server.configure("", &site(&address, 9));
    server.reload();
    server.await_log("it refuses a command: WRONGPASS", 1);
    let said = server.log() + &server.get("/status");
    assert!(!said.contains("geheim"), "{said}");
}

#[test]
fn a_slow_store_delays_no_request() {
    let (store, peer) = FaultyStore::start();
    store.is_slow.store(1, SeqCst);
    let server = Server::start("", &site(&url(&peer), 9));
    server.await_log("is used", 1);
    assert_eq!(passed(&server, 20), 10);
    store.await_sum(10);
}

#[test]
fn counts_go_on_in_the_next_process() {
    let (store, peer) = FaultyStore::start();
    let server = Server::start("", &site(&url(&peer), 9));
    server.await_log("is used", 1);
    assert_eq!(passed(&server, 20), 10);
    store.await_sum(10);
    // Two exchanges later, the store has the bucket as well.
    let before = peer_exchanges(&server);
    eventually("more exchanges", || (peer_exchanges(&server) >= before + 2).then_some(()));
    // Another number of workers needs another process.
    server.configure("worker_processes 2;", &site(&url(&peer), 9));
    server.signal("HUP");
    server.await_log("start worker process ", 2);
    server.await_log("is used", 2);
    server.await_log("exited with code 0", 1);
    // It learns of the others' requests with its first one.
    assert_eq!(passed(&server, 1), 1);
    store.await_sum(11);
    let before = peer_exchanges(&server);
    eventually("more exchanges", || (peer_exchanges(&server) >= before + 2).then_some(()));
    assert_eq!(passed(&server, 10), 0);
}

/// The old master's pid file during an upgrade.
const OLD_PID: &str = "nginx.pid.oldbin";

/// A server in the background, which an upgrade needs. It listens on a Unix socket.
struct DaemonServer(Folder);

impl DaemonServer {
    fn start(http: &str) -> Self {
        let server = Self(Folder::new());
        let folder = &server.0;
        folder.configure("unix:DIR/a.sock", "events {}", http);
        let text = folder.read("nginx.conf").replace("daemon off;", "daemon on;");
        folder.write("nginx.conf", text);
        let output = folder.run(&["-c", "nginx.conf"]);
        assert!(output.status.success(), "{}", complaint(&output));
        server
    }

    fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.0.join("a.sock")).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        body(&reply).to_owned()
    }

    fn await_log(&self, words: &str, times: usize) {
        eventually(words, || {
            (self.0.read("error.log").matches(words).count() >= times).then_some(())
        });
    }

    /// Starts an upgrade. Returns the old master's number and the new one's.
    fn upgrade(&self) -> (i32, i32) {
        let old = eventually("a pid file", || self.0.pid("nginx.pid"));
        kill(old, "USR2");
        let new = eventually("another pid file", || {
            self.0.pid("nginx.pid").filter(|new| *new != old && self.0.pid(OLD_PID) == Some(old))
        });
        (old, new)
    }

    /// Waits until this is the only master.
    fn await_one(&self, number: i32) {
        eventually("one master", || {
            let is_alone = self.0.pid(OLD_PID).is_none();
            (is_alone && self.0.pid("nginx.pid") == Some(number)).then_some(())
        });
    }
}

impl Drop for DaemonServer {
    fn drop(&mut self) {
        let masters = ["nginx.pid", OLD_PID].map(|name| self.0.pid(name));
        masters.into_iter().flatten().for_each(|pid| kill(pid, "TERM"));
    }
}

#[test]
fn one_limit_holds_over_an_upgrade_and_the_way_back() {
    let (store, peer) = FaultyStore::start();
    let server = DaemonServer::start(&site(&url(&peer), 9));
    let passed = |requests| passed_by(|| server.get("/"), requests);
    server.await_log("is used", 1);
    assert_eq!(passed(4), 4);
    store.await_sum(4);
    let (old, new) = server.upgrade();
    server.await_log("is used", 2);
    server.await_log("2 nodes", 1);
    kill(new, "TERM");
    server.await_one(old);
    assert_eq!(passed(1), 1);
    store.await_sum(5);
    let (old, new) = server.upgrade();
    server.await_log("is used", 3);
    kill(old, "QUIT");
    server.await_one(new);
    // It learns of the others' requests with its first one.
    assert_eq!(passed(1), 1);
    store.await_sum(6);
    let exchanges = || exchanges_of(&server.get("/status"));
    let before = exchanges();
    eventually("more exchanges", || (exchanges() >= before + 2).then_some(()));
    assert_eq!(passed(20), 4);
}

/// Its only name is the common name `first`.
const FIRST: &str = include_str!("../../net/src/tls/testdata/first.crt");
const FIRST_KEY: &str = include_str!("../../net/src/tls/testdata/sec1.key");
const SECOND: &str = include_str!("../../net/src/tls/testdata/second.crt");

#[test]
fn a_store_with_tls_is_verified() {
    let (store, peer) = FaultyStore::start();
    let tls = free_address();
    // TLS ends at the server itself, before the fake store.
    let globals = format!(
        "stream {{ server {{
             listen {tls} ssl; ssl_certificate first.crt; ssl_certificate_key first.key;
             proxy_pass {};
         }} }}",
        peer.address
    );
    let address = |parameters: &str| site(&format!("valkeys://{tls}?{parameters}"), 9);
    let trusted = address("ca_file=ca.crt&name=first");
    let server = Server::start_with(|folder, address| {
        for (name, text) in [("first.crt", FIRST), ("first.key", FIRST_KEY), ("ca.crt", FIRST)] {
            folder.write(name, text);
        }
        folder.configure(address, &format!("events {{}}\n{globals}"), &trusted);
    });
    server.await_log("is used", 1);
    assert_eq!(passed(&server, 3), 3);
    store.await_sum(3);
    // The next configurations differ, though only by the contents of a file in the first case.
    server.folder.write("ca.crt", SECOND);
    for (parameters, words) in [
        ("ca_file=ca.crt&name=first", "its certificate is not trusted (self-signed certificate)"),
        ("ca_file=first.crt&name=other.test", "its certificate is not for \"other.test\""),
        ("ca_file=first.crt", "the TLS handshake failed (invalid peer certificate: "),
    ] {
        server.configure(&globals, &address(parameters));
        server.reload();
        server.await_log(&format!("cannot be used: {words}"), 1);
        assert_eq!(passed(&server, 1), 1, "{words}");
    }
    server.configure(&globals, &address("verify=off"));
    server.reload();
    server.await_log("is used", 2);
}

#[test]
fn a_store_without_tls_is_told_apart() {
    let plain = Peer::playing(|mut peer| peer.send_raw("-ERR Protocol error\r\n"));
    let silent = Peer::playing(|mut peer| peer.until(b"\n\n\n\n"));
    for (peer, words) in [
        (&plain, "the TLS handshake failed (received corrupt message"),
        (&silent, "no TLS handshake within 100 ms"),
    ] {
        let store = format!("rediss://{}?verify=off&timeout=100ms", peer.address);
        let server = Server::start("", &site(&store, 9));
        server.await_log(&format!("cannot be used: {words}"), 1);
    }
}

#[test]
fn invalid_parameters_of_tls_are_refused() {
    for (address, words) in [
        ("valkey://a?ca_file=first.crt", "parameters of TLS without \"valkeys://\""),
        ("valkeys://a?ca_file=none.crt", "none.crt\" failed (2: No such file or directory)"),
        ("valkeys://a?ca_file=first.key", "cannot load certificates of authorities"),
        ("valkeys://a?ca_file=first.crt&verify=off", "\"ca_file=\" has no use"),
        ("valkeys://a?verify=maybe", "invalid value of \"verify\""),
        ("valkeys://a?verify=off&name=", "invalid value of \"name\""),
        ("valkeys://a?verify=off&name=a_:b", "is no name of a server"),
        ("valkeys://a?verify=off&certificate=first.crt", "requires \"certificate_key=\""),
        ("valkeys://a?verify=off&certificate_key=first.key", "requires \"certificate=\""),
        ("valkeys://unix:/a?verify=off", "TLS at a Unix socket requires \"name=\""),
        (
            "valkeys://a?verify=off&certificate=second.crt&certificate_key=first.key",
            "cannot load the certificate's key",
        ),
    ] {
        let folder = Folder::new();
        for (name, text) in [("first.crt", FIRST), ("first.key", FIRST_KEY), ("second.crt", SECOND)]
        {
            folder.write(name, text);
        }
        folder.configure("127.0.0.1:1", "events {}", &site(address, 9));
        let said = complaint(&folder.run(&["-t", "-c", "nginx.conf"]));
        assert!(said.contains(words), "{address}: {said}");
    }
}

/// A site whose requests are in progress until the backend may answer. Those to `/counted` are
/// limited in front of it, the others towards it.
fn in_parts(store: &str, backend: &Backend) -> String {
    format!(
        "nodes {store};
         limit_conn_zone $request_method zone=counted:1m;
         limit_upstream_zone z 1m; limit_upstream_log_level notice;
         upstream backend {{ server {address}; limit_upstream_conn zone=z limit=6/nodes; }}
         server {{
             listen ADDRESS;
             location / {{ proxy_pass http://backend; }}
             location /counted {{ limit_conn counted 6/nodes; proxy_pass http://{address}; }}
             location /status {{ prometheus; }}
         }}",
        address = backend.address
    )
}

#[test]
fn limits_follow_the_number_of_nodes() {
    let (store, peer) = FaultyStore::start();
    let backend = Backend::start();
    store.join(&["second", "third"]);
    let server = Server::start("", &in_parts(&url(&peer), &backend));
    server.await_log("3 nodes of 3 masters", 1);
    let mut sent: Vec<_> = (0..5).map(|_| send(&server, "/")).collect();
    server.await_log("limit upstream: request is queued at position 3 ", 1);
    backend.await_in_progress(2);
    assert!(server.get("/status").contains("weir_upstream_server_limit{"));
    let limit = |most: u32| {
        let page = server.get("/status");
        let line = page.lines().find(|line| line.starts_with("weir_upstream_server_limit{"));
        line.is_some_and(|line| line.ends_with(&format!(" {most}")))
    };
    assert!(limit(2));
    // The store loses its sets: that is not as if the others were gone.
    store.forget(&["second", "third"]);
    let before = peer_exchanges(&server);
    eventually("more exchanges", || (peer_exchanges(&server) >= before + 2).then_some(()));
    assert!(!server.log().contains("1 nodes") && limit(2));
    // The others are gone, and requests that wait are let in.
    store.leave();
    server.await_log("1 nodes of 1 masters", 1);
    backend.await_in_progress(5);
    // They are back: nobody is interrupted, and nobody let in until enough have ended.
    store.join(&["second", "third"]);
    server.await_log("3 nodes of 3 masters", 2);
    assert!(limit(2));
    sent.push(send(&server, "/"));
    server.await_log("limit upstream: request is queued at position 1 ", 2);
    // The last known number holds while the store is gone.
    store.behave(CUTS);
    server.await_log("cannot be used", 1);
    backend.allow(3);
    backend.await_in_progress(2);
    assert!(limit(2));
    backend.allow(1);
    eventually("six requests", || backend.counts(|counts| counts.came.len() == 6).then_some(()));
    backend.await_in_progress(2);
    backend.allow(2);
    for stream in sent {
        assert!(reply(stream).ends_with("\r\n\r\n/"));
    }
}

#[test]
fn counted_requests_follow_the_number_of_nodes() {
    let (store, peer) = FaultyStore::start();
    let backend = Backend::start();
    let server = Server::start("", &in_parts(&url(&peer), &backend));
    server.await_log("is used", 1);
    store.join(&["second", "third"]);
    server.await_log("3 nodes of 3 masters", 1);
    let mut sent: Vec<_> = (0..2).map(|_| send(&server, "/counted")).collect();
    backend.await_in_progress(2);
    assert!(reply(send(&server, "/counted")).starts_with("HTTP/1.1 503 "));
    store.behave(STALLS);
    server.await_log("cannot be used", 1);
    assert!(reply(send(&server, "/counted")).starts_with("HTTP/1.1 503 "));
    store.behave(WORKS);
    store.leave();
    server.await_log("1 nodes of 1 masters", 1);
    sent.extend((0..4).map(|_| send(&server, "/counted")));
    backend.await_in_progress(6);
    assert!(reply(send(&server, "/counted")).starts_with("HTTP/1.1 503 "));
    backend.allow(6);
    for stream in sent {
        assert!(reply(stream).ends_with("\r\n\r\n/counted"));
    }
}

#[test]
fn processes_of_one_master_are_one_node_where_they_count_together() {
    let (_store, peer) = FaultyStore::start();
    let backend = Backend::start();
    let server = Server::start("", &in_parts(&url(&peer), &backend));
    server.await_log("is used", 1);
    let held = send(&server, "/");
    backend.await_in_progress(1);
    // Another number of workers needs another process. The old one has a request in progress.
    server.configure("worker_processes 2;", &in_parts(&url(&peer), &backend));
    server.signal("HUP");
    server.await_log("2 nodes of 1 masters", 2);
    backend.allow(1);
    assert!(reply(held).ends_with("\r\n\r\n/"));
}

#[test]
fn both_subsystems_use_one_connection_and_are_one_node() {
    let (store, peer) = FaultyStore::start();
    let (backend, stream) = (Backend::start(), free_address());
    let nodes = url(&peer);
    let globals = format!(
        "stream {{
             nodes {nodes};
             limit_conn_zone $remote_addr zone=clients:1m;
             upstream held {{ server {}; }}
             server {{ listen {stream}; limit_conn clients 4/nodes; proxy_pass held; }}
         }}",
        backend.address
    );
    let server = Server::start(&globals, &in_parts(&nodes, &backend));
    server.await_log("is used", 1);
    assert_eq!(peer.connections(), 1);
    store.join(&["second"]);
    server.await_log("2 nodes of 2 masters", 1);
    let ask = || {
        let mut connection = connect(&stream);
        connection.write_all(b"GET /stream HTTP/1.0\r\n\r\n").unwrap();
        connection
    };
    let mut held = [ask(), ask()];
    backend.await_in_progress(2);
    assert_eq!(reply(connect(&stream)), "", "the third is closed");
    backend.allow(2);
    for connection in &mut held {
        connection.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(peer.connections(), 1);
}
