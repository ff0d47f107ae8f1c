//! A certificate authority for tests: plain HTTP on a loopback socket, no signature is verified.
//!
//! It looks for answers to http-01 in this process, or asks the test whether it sees those to
//! dns-01, and counts what it is asked for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use wire::base64;
use wire::der::{DerReader, tag};
use wire::json::{self, JsonLimits, JsonValue};
use wire::pem;
use wire::signer::{KeyKind, Signer, SigningFailed};
use wire::x509::{SelfSigned, SubjectName, ValidityPeriod};

use crate::challenges::PublishedChallenges;

const LIMITS: JsonLimits = JsonLimits { bytes_max: 1 << 16, depth_max: 8, values_max: 256 };

/// Runs until it is dropped.
pub(super) struct FakeAuthority {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Requests by path, without their numbers.
    counts: BTreeMap<String, usize>,
    /// Replies that are sent instead, by path: status, and fields.
    faults: BTreeMap<String, VecDeque<(u16, String)>>,
    orders: Vec<Order>,
    /// Whether it is to be seen in DNS; otherwise it is looked for in this process.
    sees_record: Option<Box<dyn Fn() -> bool + Send>>,
    /// Whether it looks for no answer: orders stay pending.
    is_blind: bool,
    /// When certificates begin, in seconds since 1970.
    now_s: i64,
}

/// An order, whose number its URLs and its token have.
struct Order {
    name: String,
    /// Whether the answer was found.
    is_proved: bool,
    /// The key of its request, once it is finalized.
    key: Option<Vec<u8>>,
}

/// The lifetime of certificates in seconds.
const LIFETIME_S: i64 = 90 * 24 * 60 * 60;
pub(super) const NAME: &str = "a.test";

impl FakeAuthority {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.state.lock().unwrap().now_s = (net::clock::unix_ms() / 1000) as i64;
        let serving = shared.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Relaxed) {
                    return;
                }
                let (shared, base) = (serving.clone(), format!("http://{address}"));
                // A client that goes away is no failure of the test.
                let _ = stream.and_then(|stream| serve(&shared, &base, stream));
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    pub(super) fn directory(&self) -> String {
        format!("http://{}/directory", self.address)
    }

    /// How often a path was requested.
    pub(super) fn count(&self, path: &str) -> usize {
        self.shared.state.lock().unwrap().counts.get(path).copied().unwrap_or(0)
    }

    pub(super) fn requests(&self) -> usize {
        self.shared.state.lock().unwrap().counts.values().sum()
    }

    /// The next requests of a path are answered with this status and these fields.
    pub(super) fn fail(&self, path: &str, times: usize, status: u16, fields: &str) {
        let mut state = self.shared.state.lock().unwrap();
        let faults = state.faults.entry(path.to_owned()).or_default();
        faults.extend((0..times).map(|_| (status, fields.to_owned())));
    }

    pub(super) fn look_for_nothing(&self) {
        self.shared.state.lock().unwrap().is_blind = true;
    }

    /// Offers dns-01, and looks for the answer so.
    pub(super) fn look_in_dns(&self, sees_record: impl Fn() -> bool + Send + 'static) {
        self.shared.state.lock().unwrap().sees_record = Some(Box::new(sees_record));
    }

    pub(super) fn set_time(&self, now_s: i64) {
        self.shared.state.lock().unwrap().now_s = now_s;
    }
}

impl Drop for FakeAuthority {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Answers one request.
fn serve(shared: &Shared, base: &str, mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, fields, text) = answer(&mut shared.state.lock().unwrap(), base, &path, &body);
    let head = format!(
        "HTTP/1.1 {status} x\r\nReplay-Nonce: abc\r\nConnection: close\r\n{fields}\
         Content-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

fn answer(state: &mut State, base: &str, path: &str, body: &[u8]) -> (u16, String, String) {
    let kind = path.trim_end_matches(|last: char| last.is_ascii_digit()).trim_end_matches('/');
    *state.counts.entry(kind.to_owned()).or_default() += 1;
    if let Some((status, fields)) = state.faults.get_mut(kind).and_then(VecDeque::pop_front) {
        return (status, fields, "{\"type\": \"x\", \"detail\": \"a fault\"}".into());
    }
    let number: usize = path.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(0);
    let ok = |text: String| (200, String::new(), text);
    match kind {
        "/directory" => ok(format!(
            "{{\"newNonce\": \"{base}/nonce\", \"newAccount\": \"{base}/account\", \
             \"newOrder\": \"{base}/new-order\"}}"
        )),
        "/account" => {
            (201, format!("Location: {base}/account/1\r\n"), "{\"status\": \"valid\"}".into())
        }
        "/new-order" => {
            state.orders.push(Order { name: ordered_name(body), is_proved: false, key: None });
            let number = state.orders.len() - 1;
            let fields = format!("Location: {base}/order/{number}\r\n");
            (201, fields, order(state, base, number))
        }
        "/order" => ok(order(state, base, number)),
        "/authorization" => ok(authorization(state, base, number)),
        "/challenge" => {
            let is_proved = match &state.sees_record {
                _ if state.is_blind => false,
                Some(sees_record) => sees_record(),
                None => PublishedChallenges::of_process().http_answer(&token(number)).is_some(),
            };
            state.orders[number].is_proved = is_proved;
            ok("{\"type\": \"x\", \"status\": \"processing\"}".into())
        }
        "/finalize" => {
            state.orders[number].key = Some(requested_key(body));
            ok(order(state, base, number))
        }
        "/certificate" => ok(certificate(state, number)),
        _ => ok(String::new()),
    }
}

fn order(state: &State, base: &str, number: usize) -> String {
    let Order { name, is_proved, key } = &state.orders[number];
    let status = match (key, is_proved) {
        (Some(_), _) => "valid",
        (None, true) => "ready",
        (None, false) => "pending",
    };
    let names = format!("[{{\"type\": \"dns\", \"value\": \"{name}\"}}]");
    format!(
        "{{\"status\": \"{status}\", \"identifiers\": {names}, \
         \"authorizations\": [\"{base}/authorization/{number}\"], \
         \"finalize\": \"{base}/finalize/{number}\", \
         \"certificate\": \"{base}/certificate/{number}\"}}"
    )
}

fn authorization(state: &State, base: &str, number: usize) -> String {
    let Order { name, is_proved, .. } = &state.orders[number];
    let status = if *is_proved { "valid" } else { "pending" };
    let name = format!("{{\"type\": \"dns\", \"value\": \"{name}\"}}");
    let token = token(number);
    let url = format!("{base}/challenge/{number}");
    let kind = if state.sees_record.is_some() { "dns-01" } else { "http-01" };
    format!(
        "{{\"status\": \"{status}\", \"identifier\": {name}, \"challenges\": [{{\"type\": \
         \"{kind}\", \"status\": \"pending\", \"url\": \"{url}\", \"token\": \"{token}\"}}]}}"
    )
}

fn token(number: usize) -> String {
    if number == 0 { "token".into() } else { format!("token{number}") }
}

fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    base64::decode_url(text.as_bytes(), &mut bytes).unwrap();
    bytes
}

fn member(text: &[u8], name: &str) -> String {
    let document = json::parse(text, LIMITS).unwrap();
    document.as_object().unwrap().get(name).unwrap().as_text().unwrap().to_owned()
}

/// The first name of a new order, or the domain of a wildcard.
fn ordered_name(body: &[u8]) -> String {
    let payload = decode(&member(body, "payload"));
    let document = json::parse(&payload, LIMITS).unwrap();
    let JsonValue::List(names) = document.as_object().unwrap().get("identifiers").unwrap() else {
        panic!("an order without names")
    };
    let name = names[0].as_object().unwrap().get("value").unwrap().as_text().unwrap();
    name.trim_start_matches("*.").to_owned()
}

/// The public key in a request for a certificate.
fn requested_key(body: &[u8]) -> Vec<u8> {
    let request = decode(&member(&decode(&member(body, "payload")), "csr"));
    let mut info = DerReader::sequence(&request).unwrap().inside(tag::SEQUENCE).unwrap();
    info.contents(tag::INTEGER).unwrap();
    info.contents(tag::SEQUENCE).unwrap();
    let mut key = info.inside(tag::SEQUENCE).unwrap();
    key.contents(tag::SEQUENCE).unwrap();
    key.contents(tag::BIT_STRING).unwrap()[1..].to_vec()
}

fn certificate(state: &State, number: usize) -> String {
    let key = RequestedKey(state.orders[number].key.clone().unwrap());
    let (not_before_s, not_after_s) = (state.now_s, state.now_s + LIFETIME_S);
    let names = [SubjectName::of(&state.orders[number].name)];
    let certificate = SelfSigned {
        common_name: "test authority",
        names: &names,
        serial: number as u64 + 1,
        validity: ValidityPeriod { not_before_s, not_after_s },
        acme_digest: None,
    };
    let mut text = Vec::new();
    pem::encode("CERTIFICATE", &certificate.write(&key).unwrap(), &mut text);
    String::from_utf8(text).unwrap()
}

/// A key of which only the public half is known; nobody verifies the signature.
#[derive(Debug)]
struct RequestedKey(Vec<u8>);

impl Signer for RequestedKey {
    fn kind(&self) -> KeyKind {
        KeyKind::EcdsaP256
    }
    fn public_bits(&self) -> &[u8] {
        &self.0
    }
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, SigningFailed> {
        Ok(vec![1; 64])
    }
}
