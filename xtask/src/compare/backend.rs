//! The backends of one server under comparison: they answer as the case says, and keep what they
//! were sent.
//!
//! They know no HTTP beyond where a request ends, and no other protocol: a script says which bytes
//! end its requests. Each connection has a thread, which ends when
//! the server closes it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::place::ServerEnvironment;
use super::script::{Act, BackendScript};
use super::{reply, text};

/// How many TCP ports there are, `%%BACKEND%%` and `%%BACKEND2%%`.
pub(super) const PORTS: usize = 2;

/// The Unix socket in the server's folder.
pub(super) const SOCKET: &str = "backend.sock";

/// How long a connection may say nothing; longer than a client waits.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Between the bytes of what is sent one at a time.
const DRIP: Duration = Duration::from_millis(1);

/// How long after its reply a copy of a request may come.
const COPY_DELAY_MAX: Duration = Duration::from_millis(25);

/// How long a request that a backend has begun to read may still take.
const SETTLED_MAX: Duration = Duration::from_secs(5);

/// The backends of one server. Their threads end with the program.
pub(super) struct ScriptedBackends {
    shared: Arc<ScriptedState>,
    ports: Vec<u16>,
    socket: PathBuf,
}

#[derive(Default)]
struct ScriptedState {
    turn: Mutex<ForwardedRequest>,
    /// Nothing more is accepted.
    over: AtomicBool,
}

/// One request of a client, and what it brings about.
#[derive(Default)]
struct ForwardedRequest {
    script: Arc<BackendScript>,
    place: Option<ServerEnvironment>,
    /// How many answers have been taken.
    taken: usize,
    received: Vec<ReceivedRequest>,
}

struct ReceivedRequest {
    backend: &'static str,
    kept: bool,
    head: Vec<u8>,
    body: Vec<u8>,
    state: BackendState,
}

#[derive(Clone, Copy, PartialEq)]
enum BackendState {
    /// The backend is about to read more.
    Reading,
    Whole,
    /// The connection ended before.
    Cut,
    /// The backend wanted no more of it.
    Unread,
}

impl ScriptedBackends {
    /// Starts the backends; the socket is in `dir`. The ports come first.
    pub(super) fn start(
        listeners: Vec<TcpListener>,
        dir: &Path,
    ) -> std::io::Result<ScriptedBackends> {
        let shared = Arc::new(ScriptedState::default());
        let mut ports = Vec::new();
        for (listener, name) in listeners.into_iter().zip(["backend", "backend2"]) {
            ports.push(listener.local_addr()?.port());
            let state = shared.clone();
            thread::spawn(move || state.serve_all(listener.incoming(), name));
        }
        let socket = dir.join(SOCKET);
        let listener = UnixListener::bind(&socket)?;
        // The server's worker process may be another user.
        let everyone =
            <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        std::fs::set_permissions(&socket, everyone)?;
        let state = shared.clone();
        thread::spawn(move || state.serve_all(listener.incoming(), "socket"));
        Ok(ScriptedBackends { shared, ports, socket })
    }

    /// From here on, requests are answered by `script`.
    pub(super) fn begin(&self, script: &BackendScript, place: &ServerEnvironment) {
        let script = Arc::new(script.clone());
        *self.shared.lock() =
            ForwardedRequest { script, place: Some(place.clone()), ..ForwardedRequest::default() };
    }

    /// Waits until a copy that follows its reply has come: until nothing has come for a while.
    pub(super) fn wait_for_copies(&self) {
        let count = || self.shared.lock().received.len();
        let mut last = count();
        loop {
            thread::sleep(COPY_DELAY_MAX);
            let now = count();
            if now == std::mem::replace(&mut last, now) {
                return;
            }
        }
    }

    /// What the backends were sent since then, in lines.
    pub(super) fn received(&self, place: &ServerEnvironment, sort_fields: bool) -> Vec<String> {
        let deadline = Instant::now() + SETTLED_MAX;
        while self.shared.lock().received.iter().any(|r| r.state == BackendState::Reading)
            && Instant::now() < deadline
        {
            thread::sleep(DRIP);
        }
        let turn = self.shared.lock();
        turn.received.iter().flat_map(|one| one.lines(place, sort_fields)).collect()
    }
}

/// Nobody else can have the ports before the threads that listen have ended.
impl Drop for ScriptedBackends {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for port in &self.ports {
            let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, *port));
        }
        let _ = UnixStream::connect(&self.socket);
    }
}

impl ScriptedState {
    /// Serves what comes, each connection in a thread of its own, until the backends are over.
    fn serve_all<W: Wire + Send + 'static>(
        self: Arc<Self>,
        incoming: impl Iterator<Item = std::io::Result<W>>,
        name: &'static str,
    ) {
        for stream in incoming.flatten() {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let shared = self.clone();
            thread::spawn(move || BackendConnection::new(stream, name, &shared).serve());
        }
    }

    fn lock(&self) -> MutexGuard<'_, ForwardedRequest> {
        self.turn.lock().expect("no thread panics with it")
    }
}

impl ReceivedRequest {
    fn lines(&self, place: &ServerEnvironment, sort_fields: bool) -> Vec<String> {
        let kept = if self.kept { "a kept" } else { "a new" };
        let mut lines = vec![format!("on {kept} connection:")];
        let head = String::from_utf8_lossy(&self.head);
        let mut fields: Vec<String> = head
            .split_inclusive("\r\n")
            .map(|line| line.strip_suffix("\r\n").unwrap_or(line))
            .map(|line| text::shown(&place.blanked(line.as_bytes())))
            .collect();
        fields.pop_if(|last| last.is_empty());
        if sort_fields && fields.len() > 1 {
            fields[1..].sort();
        }
        lines.extend(fields);
        let chunked = reply::dechunked(&self.body).filter(|_| is_chunked(&self.head));
        match chunked {
            Some(chunks) => {
                lines.extend(reply::body_lines(&place.blanked(&chunks.body)));
                lines.extend(chunks.trailers.iter().map(|t| format!("trailer {}", text::shown(t))));
            }
            None => lines.extend(reply::body_lines(&place.blanked(&self.body))),
        }
        match self.state {
            BackendState::Whole => {}
            BackendState::Unread => lines.push("(not read further)".into()),
            BackendState::Cut | BackendState::Reading => lines.push("(cut off)".into()),
        }
        lines.iter().map(|line| format!("{}: {line}", self.backend)).collect()
    }
}

/// A connection of either kind.
trait Wire: Read + Write {
    fn ready(&self) -> std::io::Result<()>;
    fn finish(&self);
}

impl Wire for TcpStream {
    fn ready(&self) -> std::io::Result<()> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(SILENCE_MAX))?;
        self.set_write_timeout(Some(SILENCE_MAX))
    }
    fn finish(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Wire for UnixStream {
    fn ready(&self) -> std::io::Result<()> {
        self.set_read_timeout(Some(SILENCE_MAX))?;
        self.set_write_timeout(Some(SILENCE_MAX))
    }
    fn finish(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A connection that the server made.
struct BackendConnection<'a, W> {
    stream: W,
    name: &'static str,
    shared: &'a ScriptedState,
    unparsed: Vec<u8>,
    kept: bool,
}

impl<'a, W: Wire> BackendConnection<'a, W> {
    fn new(stream: W, name: &'static str, shared: &'a ScriptedState) -> Self {
        BackendConnection { stream, name, shared, unparsed: Vec::new(), kept: false }
    }

    fn serve(mut self) {
        if self.stream.ready().is_ok() {
            while self.one().is_some() {
                self.kept = true;
            }
        }
        self.stream.finish();
    }

    /// Answers one request; `None`: the connection is over.
    fn one(&mut self) -> Option<()> {
        let waits = {
            let turn = self.shared.lock();
            let first = turn.script.answer(turn.taken).0.first();
            self.kept || matches!(first, Some(Act::ReadHead | Act::ReadUntil(_)))
        };
        if waits && self.unparsed.is_empty() {
            self.fill()?;
        }
        let (acts, place, index) = {
            let mut turn = self.shared.lock();
            let acts = turn.script.answer(turn.taken).0.clone();
            turn.taken += 1;
            let (backend, kept) = (self.name, self.kept);
            let (head, body) = (Vec::new(), Vec::new());
            let state = if waits { BackendState::Reading } else { BackendState::Unread };
            turn.received.push(ReceivedRequest { backend, kept, head, body, state });
            (acts, turn.place.clone(), turn.received.len() - 1)
        };
        let script = self.shared.lock().script.clone();
        let done = acts.iter().try_for_each(|act| self.act(act, place.as_ref(), &script, index));
        let reads_all = acts.iter().any(|act| matches!(act, Act::Read | Act::ReadUntil(_)));
        self.note(&script, index, |r| {
            if r.state == BackendState::Reading {
                r.state = if reads_all { BackendState::Cut } else { BackendState::Unread };
            }
        });
        done
    }

    fn act(
        &mut self,
        act: &Act,
        place: Option<&ServerEnvironment>,
        script: &Arc<BackendScript>,
        index: usize,
    ) -> Option<()> {
        let filled = |bytes: &[u8]| place.map_or_else(|| bytes.to_vec(), |p| p.filled(bytes));
        match act {
            Act::ReadHead => {
                let head = self.read_until(|bytes| find(bytes, b"\r\n\r\n").map(|at| at + 4));
                let whole = head.is_ok();
                let head = head.unwrap_or_else(|part| part);
                self.note(script, index, |r| r.head = head);
                whole.then_some(())
            }
            Act::Read => {
                let head = self.shared.lock().received.get(index)?.head.clone();
                let body = self.read_until(|bytes| body_length(&head, bytes));
                let state = if body.is_ok() { BackendState::Whole } else { BackendState::Cut };
                let body = body.unwrap_or_else(|part| part);
                self.note(script, index, |r| (r.body, r.state) = (body, state));
                (state == BackendState::Whole).then_some(())
            }
            Act::ReadUntil(end) => {
                let request = self.read_until(|bytes| find(bytes, end).map(|at| at + end.len()));
                let state = if request.is_ok() { BackendState::Whole } else { BackendState::Cut };
                let body = request.unwrap_or_else(|part| part);
                self.note(script, index, |r| (r.body, r.state) = (body, state));
                (state == BackendState::Whole).then_some(())
            }
            Act::Write(bytes) => self.stream.write_all(&filled(bytes)).ok(),
            Act::Drip(bytes) => filled(bytes).iter().try_for_each(|byte| {
                thread::sleep(DRIP);
                self.stream.write_all(std::slice::from_ref(byte)).ok()
            }),
            Act::Wait(pause) => {
                thread::sleep(*pause);
                Some(())
            }
            Act::Close => None,
        }
    }

    /// Changes what is known of a request, if it is still of interest.
    fn note(
        &self,
        script: &Arc<BackendScript>,
        index: usize,
        change: impl FnOnce(&mut ReceivedRequest),
    ) {
        let mut turn = self.shared.lock();
        if Arc::ptr_eq(&turn.script, script)
            && let Some(received) = turn.received.get_mut(index)
        {
            change(received);
        }
    }

    /// Reads until `length` finds an end; `Err`: what there was when the connection ended.
    fn read_until(&mut self, length: impl Fn(&[u8]) -> Option<usize>) -> Result<Vec<u8>, Vec<u8>> {
        loop {
            if let Some(length) = length(&self.unparsed) {
                return Ok(self.unparsed.drain(..length).collect());
            }
            if self.fill().is_none() {
                return Err(std::mem::take(&mut self.unparsed));
            }
        }
    }

    fn fill(&mut self) -> Option<()> {
        let mut buffer = [0; 64 << 10];
        let length = self.stream.read(&mut buffer).ok().filter(|&length| length > 0)?;
        self.unparsed.extend_from_slice(&buffer[..length]);
        Some(())
    }
}

/// How long the body at the beginning of `bytes` is, if it is all there.
fn body_length(head: &[u8], bytes: &[u8]) -> Option<usize> {
    if is_chunked(head) {
        return reply::dechunked(bytes).map(|chunks| chunks.length);
    }
    let length = field(head, "content-length").and_then(|value| value.trim().parse().ok());
    Some(length.unwrap_or(0)).filter(|&length| length <= bytes.len())
}

fn is_chunked(head: &[u8]) -> bool {
    field(head, "transfer-encoding").is_some_and(|value| value.trim() == "chunked")
}

fn field(head: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let value = |line: &str| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.to_owned())
    };
    head.lines().find_map(value)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
