//! A name server for tests: on loopback, over UDP and TCP, with the answers of a closure.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) const A: u16 = 1;
pub(crate) const CNAME: u16 = 5;
pub(crate) const PTR: u16 = 12;
pub(crate) const AAAA: u16 = 28;
pub(crate) const SRV: u16 = 33;

/// How soon a thread notices the end of the test.
const TICK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct ReceivedQuery {
    pub(crate) name: String,
    pub(crate) kind: u16,
    pub(crate) over_tcp: bool,
    /// How often this question was received, including this time.
    pub(crate) times: usize,
    message: Vec<u8>,
    from: SocketAddr,
}

/// A response under construction.
pub(crate) struct TestResponse(Vec<u8>);

type Answer = dyn FnMut(&ReceivedQuery) -> Option<TestResponse> + Send;

pub(crate) struct TestNameServer {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedQuery>>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

struct Desk {
    clerk: Mutex<Clerk>,
    asked: Arc<Mutex<Vec<ReceivedQuery>>>,
    over: Arc<AtomicBool>,
}

struct Clerk {
    answer: Box<Answer>,
    times: HashMap<(String, u16, bool), usize>,
}

impl TestNameServer {
    /// Starts a name server; it does not answer if the closure returns `None`.
    pub(crate) fn start(
        answer: impl FnMut(&ReceivedQuery) -> Option<TestResponse> + Send + 'static,
    ) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().unwrap();
        let (asked, over) = (Arc::default(), Arc::default());
        let clerk = Mutex::new(Clerk { answer: Box::new(answer), times: HashMap::new() });
        let desk = Arc::new(Desk { clerk, asked: Arc::clone(&asked), over: Arc::clone(&over) });
        let other = desk.clone();
        let threads = vec![
            thread::spawn(move || desk.serve_udp(&udp)),
            thread::spawn(move || other.serve_tcp(&tcp)),
        ];
        Self { address, asked, over, threads }
    }

    /// The questions so far: `A example.net`, with the prefix `tcp ` if it came over TCP.
    pub(crate) fn log(&self) -> Vec<String> {
        let kind = |kind| match kind {
            A => "A",
            AAAA => "AAAA",
            SRV => "SRV",
            PTR => "PTR",
            _ => "?",
        };
        let line = |asked: &ReceivedQuery| {
            let tcp = if asked.over_tcp { "tcp " } else { "" };
            format!("{tcp}{} {}", kind(asked.kind), asked.name)
        };
        self.asked.lock().unwrap().iter().map(line).collect()
    }

    /// The source ports of questions, each once.
    pub(crate) fn ports(&self) -> Vec<u16> {
        let asked = self.asked.lock().unwrap();
        let mut ports: Vec<_> = asked.iter().map(|asked| asked.from.port()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

impl Drop for TestNameServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the name server panicked");
        }
    }
}

/// A port that is free for UDP and TCP.
fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            udp.set_read_timeout(Some(TICK)).unwrap();
            tcp.set_nonblocking(true).unwrap();
            return (udp, tcp);
        }
    }
}

impl Desk {
    fn is_open(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn serve_udp(&self, socket: &UdpSocket) {
        let mut buffer = [0; 512];
        while self.is_open() {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Some(reply) = self.reply(&buffer[..length], from, false) {
                socket.send_to(&reply, from).unwrap();
            }
        }
    }

    fn serve_tcp(&self, listener: &TcpListener) {
        while self.is_open() {
            match listener.accept() {
                Ok((stream, from)) => self.converse(stream, from),
                Err(_) => thread::sleep(TICK),
            }
        }
    }

    fn converse(&self, mut stream: TcpStream, from: SocketAddr) {
        // The client may have gone, after an answer from another server.
        let _ = self.exchange(&mut stream, from);
    }

    fn exchange(&self, stream: &mut TcpStream, from: SocketAddr) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut message)?;
        let Some(reply) = self.reply(&message, from, true) else { return Ok(()) };
        // In two pieces, as a stream may deliver it.
        let framed = [&(reply.len() as u16).to_be_bytes()[..], &reply].concat();
        stream.write_all(&framed[..1])?;
        thread::sleep(Duration::from_millis(1));
        stream.write_all(&framed[1..])
    }

    fn reply(&self, message: &[u8], from: SocketAddr, over_tcp: bool) -> Option<Vec<u8>> {
        let (name, end) = read_name(message);
        let kind = u16::from_be_bytes([message[end], message[end + 1]]);
        let mut clerk = self.clerk.lock().unwrap();
        let times = clerk.times.entry((name.clone(), kind, over_tcp)).or_default();
        *times += 1;
        let message = message.to_vec();
        let asked = ReceivedQuery { name, kind, over_tcp, times: *times, message, from };
        self.asked.lock().unwrap().push(asked.clone());
        Some((clerk.answer)(&asked)?.0)
    }
}

fn read_name(message: &[u8]) -> (String, usize) {
    let mut at = 12;
    let mut labels = Vec::new();
    while message[at] != 0 {
        let end = at + 1 + message[at] as usize;
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), at + 1)
}

fn wire(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    let mut wire: Vec<u8> = name.split('.').flat_map(label).collect();
    wire.push(0);
    wire
}

impl ReceivedQuery {
    /// A response without records.
    pub(crate) fn reply(&self) -> TestResponse {
        let mut message = self.message.clone();
        message[2] = 0x81;
        message[3] = 0x80;
        TestResponse(message)
    }

    /// The addresses that have the type of the question.
    pub(crate) fn addresses(&self, ttl_s: u32, addresses: &[&str]) -> TestResponse {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        addresses.fold(self.reply(), |reply, ip| match (ip, self.kind) {
            (IpAddr::V4(ip), A) => reply.record(&self.name, A, ttl_s, &ip.octets()),
            (IpAddr::V6(ip), AAAA) => reply.record(&self.name, AAAA, ttl_s, &ip.octets()),
            _ => reply,
        })
    }
}

impl TestResponse {
    pub(crate) fn record(mut self, owner: &str, kind: u16, ttl_s: u32, data: &[u8]) -> Self {
        self.0[7] += 1;
        self.0.extend(wire(owner));
        self.0.extend([kind.to_be_bytes(), [0, 1]].concat());
        self.0.extend(ttl_s.to_be_bytes());
        self.0.extend((data.len() as u16).to_be_bytes());
        self.0.extend(data);
        self
    }

    pub(crate) fn alias(self, owner: &str, ttl_s: u32, target: &str) -> Self {
        self.record(owner, CNAME, ttl_s, &wire(target))
    }

    pub(crate) fn pointer(self, owner: &str, ttl_s: u32, target: &str) -> Self {
        self.record(owner, PTR, ttl_s, &wire(target))
    }

    /// `numbers`: priority, weight, port.
    pub(crate) fn service(self, owner: &str, numbers: [u16; 3], target: &str) -> Self {
        let mut data: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        data.extend(wire(target));
        self.record(owner, SRV, 60, &data)
    }

    pub(crate) fn code(mut self, rcode: u8) -> Self {
        self.0[3] |= rcode;
        self
    }

    pub(crate) fn truncated(mut self) -> Self {
        self.0[2] |= 0x02;
        self
    }

    /// With another id than the query's.
    pub(crate) fn forged(mut self) -> Self {
        self.0[0] ^= 0x55;
        self
    }
}
