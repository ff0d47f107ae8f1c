//! A name server for tests, on loopback over UDP and TCP: its zone is `test`, it takes signed
//! updates of TXT records, and does what it is told to wrong.
//!
//! Requests are read and responses written by hand here: nothing but the HMAC is the program's.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::hmac;

/// The key's name on the wire, and its secret.
const KEY_NAME: &[u8] = b"\x03key\x00";
pub(super) const KEY: &str = "key:c2VjcmV0";
const SECRET: &[u8] = b"secret";
const ALGORITHM: &[u8] = b"\x0bhmac-sha256\0";
const TSIG: [u8; 8] = [0, 250, 0, 255, 0, 0, 0, 0];

const HEADER_BYTES: usize = 12;
const CNAME: u16 = 5;
const NS: u16 = 2;
const TXT: u16 = 16;
const NXDOMAIN: u8 = 3;
const NOTAUTH: u8 = 9;

/// How often a thread looks whether the test is over.
const TICK: Duration = Duration::from_millis(5);

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DnsFault {
    #[default]
    Nothing,
    /// Updates have this signed response.
    Refuses(u8),
    /// The server has another secret.
    OtherSecret,
    /// Updates over UDP get no response.
    NoUdp,
    /// Responses to updates over UDP are cut off.
    Truncated,
    /// Nothing gets a response.
    Silent,
    /// Updates are accepted, and do not happen.
    Forgets,
    /// Updates happen, and are not shown.
    Hides,
}

/// Runs until it is dropped.
pub(super) struct FakeNameServer {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    zone: Mutex<FakeZone>,
    is_over: AtomicBool,
}

#[derive(Default)]
pub(super) struct FakeZone {
    pub(super) fault: DnsFault,
    /// Names and texts.
    pub(super) records: Vec<(String, String)>,
    /// Names, and what they are aliases of.
    pub(super) aliases: Vec<(String, String)>,
    /// Updates that came over UDP and over TCP.
    pub(super) updates: [usize; 2],
    /// The records that ever were.
    pub(super) added: usize,
}

impl FakeNameServer {
    pub(super) fn start() -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (one, other) = (shared.clone(), shared.clone());
        let threads = vec![
            thread::spawn(move || one.serve_udp(&udp)),
            thread::spawn(move || other.serve_tcp(&tcp)),
        ];
        Self { address, shared, threads }
    }

    pub(super) fn zone(&self) -> MutexGuard<'_, FakeZone> {
        self.shared.zone.lock().unwrap()
    }

    /// The records that ever were, and the updates over UDP and TCP.
    pub(super) fn counts(&self) -> (usize, [usize; 2]) {
        let zone = self.zone();
        (zone.added, zone.updates)
    }

    pub(super) fn set_fault(&self, fault: DnsFault) {
        self.zone().fault = fault;
    }
}

impl Drop for FakeNameServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || thread::panicking(), "the name server panicked");
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

impl Shared {
    fn serve_udp(&self, socket: &UdpSocket) {
        let mut buffer = [0; 4096];
        while !self.is_over.load(Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Some(response) = self.zone.lock().unwrap().answer(&buffer[..length], false) {
                socket.send_to(&response, from).unwrap();
            }
        }
    }

    fn serve_tcp(&self, listener: &TcpListener) {
        while !self.is_over.load(Relaxed) {
            match listener.accept() {
                // A client that goes away is no failure of the test.
                Ok((stream, _)) => drop(self.converse(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(TICK),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn converse(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut message)?;
        let Some(response) = self.zone.lock().unwrap().answer(&message, true) else {
            return Ok(());
        };
        stream.write_all(&(response.len() as u16).to_be_bytes())?;
        stream.write_all(&response)
    }
}

impl FakeZone {
    fn answer(&mut self, message: &[u8], is_tcp: bool) -> Option<Vec<u8>> {
        if self.fault == DnsFault::Silent {
            return None;
        }
        match message[2] >> 3 & 0xf {
            0 => Some(self.look_up(message)),
            5 => self.update(message, is_tcp),
            opcode => panic!("opcode {opcode}"),
        }
    }

    fn look_up(&self, message: &[u8]) -> Vec<u8> {
        let (name, end) = read_name(message, HEADER_BYTES);
        let kind = word(message, end);
        let mut response = message[..end + 4].to_vec();
        response[2] = 0x84;
        let mut add = |kind: u16, data: &[u8]| {
            response[7] += 1;
            response.extend_from_slice(&[0xc0, 12]);
            response.extend(kind.to_be_bytes());
            response.extend([0, 1, 0, 0, 0, 60]);
            response.extend((data.len() as u16).to_be_bytes());
            response.extend_from_slice(data);
        };
        let alias = self.aliases.iter().find(|(from, _)| *from == name);
        let texts = self.records.iter().filter(|(owner, _)| *owner == name);
        match (alias, kind) {
            (Some((_, target)), _) => add(CNAME, &wire(target)),
            (None, TXT) if self.fault != DnsFault::Hides => texts.for_each(|(_, text)| {
                add(TXT, &[&[text.len() as u8], text.as_bytes()].concat());
            }),
            (None, NS) if name == "test" => add(NS, &wire("ns.test")),
            _ => {}
        }
        if response[7] == 0 && kind == TXT {
            response[3] |= NXDOMAIN;
        }
        response
    }

    fn update(&mut self, message: &[u8], is_tcp: bool) -> Option<Vec<u8>> {
        self.updates[usize::from(is_tcp)] += 1;
        if self.fault == DnsFault::NoUdp && !is_tcp {
            return None;
        }
        let secret = if self.fault == DnsFault::OtherSecret { b"other" } else { SECRET };
        let mut response = message[..HEADER_BYTES].to_vec();
        response[2] = 0xa8;
        response[4..].fill(0);
        let request = Signature::of(message);
        if !request.is_right(message, secret) {
            response[3] = NOTAUTH;
            request.sign_off(&mut response, &[], 16);
            return Some(response);
        }
        if self.fault == DnsFault::Truncated && !is_tcp {
            response[2] |= 0x02;
            return Some(response);
        }
        response[3] = match self.fault {
            DnsFault::Refuses(rcode) => rcode,
            DnsFault::Forgets => 0,
            _ => self.change(message),
        };
        let length = (request.mac.len() as u16).to_be_bytes();
        let to_sign = [&length[..], request.mac, &response, &request.variables()].concat();
        request.sign_off(&mut response, &hmac::sign(SECRET, &to_sign), 0);
        Some(response)
    }

    /// Makes the one change of a message.
    fn change(&mut self, message: &[u8]) -> u8 {
        let (zone, at) = read_name(message, HEADER_BYTES);
        let (name, at) = read_name(message, at + 4);
        assert_eq!((zone.as_str(), word(message, at)), ("test", TXT));
        let class = word(message, at + 2);
        let length = usize::from(message[at + 10]);
        let text = String::from_utf8(message[at + 11..at + 11 + length].to_vec()).unwrap();
        let record = (name, text);
        match class {
            1 if self.records.contains(&record) => {}
            1 => {
                self.records.push(record);
                self.added += 1;
            }
            254 => self.records.retain(|known| *known != record),
            class => panic!("class {class}"),
        }
        0
    }
}

/// The TSIG record of an update.
struct Signature<'m> {
    at: usize,
    /// The time and the fudge, which responses repeat: the client's clock may stand still.
    time: &'m [u8],
    mac: &'m [u8],
}

impl<'m> Signature<'m> {
    fn of(message: &'m [u8]) -> Self {
        let head = [KEY_NAME, &TSIG].concat();
        let at = message.windows(head.len()).rposition(|bytes| bytes == head).expect("a signature");
        let fields = &message[at + head.len() + 2 + ALGORITHM.len()..];
        let mac = &fields[10..10 + usize::from(word(fields, 8))];
        Self { at, time: &fields[..8], mac }
    }

    fn is_right(&self, message: &[u8], secret: &[u8]) -> bool {
        let mut signed = message[..self.at].to_vec();
        signed[11] -= 1;
        signed.extend(self.variables());
        hmac::is_signed(secret, &signed, self.mac)
    }

    /// The signed part of the record.
    fn variables(&self) -> Vec<u8> {
        [KEY_NAME, &[0, 255, 0, 0, 0, 0], ALGORITHM, self.time, &[0; 4]].concat()
    }

    /// Appends a record to the response.
    fn sign_off(&self, response: &mut Vec<u8>, mac: &[u8], error: u8) {
        let length = (mac.len() as u16).to_be_bytes();
        let id = [response[0], response[1]];
        let data = [ALGORITHM, self.time, &length, mac, &id, &[0, error], &[0, 0]].concat();
        response[11] = 1;
        response.extend([KEY_NAME, &TSIG, &(data.len() as u16).to_be_bytes(), &data].concat());
    }
}

fn word(message: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([message[at], message[at + 1]])
}

/// A name without pointers, and the offset after it.
fn read_name(message: &[u8], mut at: usize) -> (String, usize) {
    let mut labels = Vec::new();
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), at + 1)
}

fn wire(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    name.split('.').flat_map(label).chain([0]).collect()
}
