//! Limits that several servers share through a store, which is a fake one that works, stalls, sends
//! garbage, or is gone. Whatever it does, no request waits for it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use testing::{
    Folder, Peer, PeerConnection, Server, body, complaint, eventually, free_address, kill,
};

/// How the store answers.
const WORKS: u8 = 0;
const STALLS: u8 = 1;
const SENDS_GARBAGE: u8 = 2;
const CUTS: u8 = 3;
const NEVER_ENDS: u8 = 4;

/// The commands that a server may send, as far as it needs their replies.
#[derive(Default)]
struct FakeStore {
    numbers: Mutex<HashMap<Vec<u8>, [i64; 3]>>,
    nodes: Mutex<HashMap<Vec<u8>, i64>>,
    behaviour: AtomicU8,
    /// The replies of one pipeline are sent in pieces of so many bytes; 0: at once.
    is_slow: AtomicU8,
}

impl FakeStore {
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
        let command = take_command(peer)?;
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
                let reply = self.reply(&command);
                if self.is_slow.load(SeqCst) == 0 {
                    return peer.send_raw(reply);
                }
                reply.as_bytes().chunks(1).try_for_each(|byte| peer.send_raw(byte))
            }
        }
    }

    fn reply(&self, command: &[Vec<u8>]) -> String {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let number = |word: &[u8]| str::from_utf8(word).unwrap().parse::<i64>().unwrap();
        match words[..] {
            [b"AUTH", b"user", b"geheim"] => "+OK\r\n".into(),
            [b"AUTH", ..] => "-WRONGPASS invalid username-password pair\r\n".into(),
            [b"SELECT", b"3"] => "+OK\r\n".into(),
            [b"TIME"] => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
                let (seconds, micros) =
                    (now.as_secs().to_string(), now.subsec_micros().to_string());
                let text = |text: String| format!("${}\r\n{text}\r\n", text.len());
                format!("*2\r\n{}{}", text(seconds), text(micros))
            }
            [b"ZADD", b"weir:nodes", score, node] => {
                self.nodes.lock().unwrap().insert(node.to_vec(), number(score));
                ":1\r\n".into()
            }
            [b"ZREMRANGEBYSCORE", _, b"-inf", most] => {
                self.nodes.lock().unwrap().retain(|_, score| *score > number(most));
                ":0\r\n".into()
            }
            [b"ZCARD", _] => format!(":{}\r\n", self.nodes.lock().unwrap().len()),
            [b"PEXPIRE", _, ttl] => {
                assert!((60_000..=86_400_000).contains(&number(ttl)));
                ":1\r\n".into()
            }
            [b"BITFIELD", key, b"INCRBY", b"i64", b"#0", count, ref rest @ ..] => {
                let mut numbers = self.numbers.lock().unwrap();
                let numbers = numbers.entry(key.to_vec()).or_default();
                numbers[0] += number(count);
                let [sum, empty_at, counted] = *numbers;
                match rest {
                    [b"GET", b"i64", b"#1", b"GET", b"i64", b"#2"] => {}
                    [b"SET", b"i64", b"#1", at, b"SET", b"i64", b"#2", of_sum] => {
                        (numbers[1], numbers[2]) = (number(at), number(of_sum));
                    }
                    _ => return "-ERR syntax error\r\n".into(),
                }
                format!("*3\r\n:{sum}\r\n:{empty_at}\r\n:{counted}\r\n")
            }
            _ => format!("-ERR unknown command {:?}\r\n", command.len()),
        }
    }

    /// The sum of the only key, once it is this.
    fn await_sum(&self, expected: i64) {
        let mut last = Vec::new();
        eventually(&format!("a sum of {expected}"), || {
            last = self.numbers.lock().unwrap().values().map(|numbers| numbers[0]).collect();
            (last.iter().sum::<i64>() == expected).then_some(())
        });
    }
}

fn take_command(peer: &mut PeerConnection) -> Option<Vec<Vec<u8>>> {
    let count = take_length(peer, b'*')?;
    (0..count)
        .map(|_| {
            let length = take_length(peer, b'$')?;
            let mut word = peer.exactly(length + 2)?;
            word.truncate(length);
            Some(word)
        })
        .collect()
}

fn take_length(peer: &mut PeerConnection, kind: u8) -> Option<usize> {
    let line = peer.until(b"\r\n")?;
    assert_eq!(line[0], kind);
    str::from_utf8(&line[1..line.len() - 2]).ok()?.parse().ok()
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
    let (store, peer) = FakeStore::start();
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
        let (store, peer) = FakeStore::start();
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
    let (store, peer) = FakeStore::start();
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
    let (store, peer) = FakeStore::start();
    store.is_slow.store(1, SeqCst);
    let server = Server::start("", &site(&url(&peer), 9));
    server.await_log("is used", 1);
    assert_eq!(passed(&server, 20), 10);
    store.await_sum(10);
}

#[test]
fn counts_go_on_in_the_next_process() {
    let (store, peer) = FakeStore::start();
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
    let (store, peer) = FakeStore::start();
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
    let (store, peer) = FakeStore::start();
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
