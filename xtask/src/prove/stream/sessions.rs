//! Sessions whose ends misbehave, and sessions that outlive configurations.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;

use super::holdings::Holdings;
use crate::stream_server::{PATIENCE, ServedStream, signal, until};
use crate::weir_backend::WeirBackend;

struct SessionCheck {
    name: &'static str,
    /// Whether nginx is asked the same.
    of_nginx: bool,
    run: fn(&Path) -> Result<String, String>,
}

const CHECKS: &[SessionCheck] = &[
    SessionCheck { name: "half-closed", of_nginx: true, run: half_closed },
    SessionCheck { name: "resets", of_nginx: true, run: resets },
    SessionCheck { name: "slow readers", of_nginx: true, run: slow_readers },
    SessionCheck { name: "killed backend", of_nginx: false, run: killed_backend },
    SessionCheck { name: "reloads", of_nginx: false, run: reloads },
    SessionCheck { name: "time to end", of_nginx: false, run: shutdown_timeout },
];

/// Runs all checks.
pub(super) fn run(weir: &Path, nginx: Option<&Path>) -> Result<(), String> {
    for check in CHECKS {
        let name = check.name;
        let said = (check.run)(weir).map_err(|why| format!("{name}: {why}"))?;
        println!("weir   {name}: {said}");
        if let Some(nginx) = nginx.filter(|_| check.of_nginx) {
            let said = (check.run)(nginx).unwrap_or_else(|why| format!("fails, {why}"));
            println!("nginx  {name}: {said}");
        }
    }
    Ok(())
}

/// A backend that plays its part with each connection on a thread of its own. Its port.
fn backend(part: impl Fn(TcpStream) + Send + Clone + 'static) -> Result<u16, String> {
    let fail = |err: std::io::Error| format!("a backend: {err}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    let port = listener.local_addr().map_err(fail)?.port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let part = part.clone();
            let _ = stream.set_read_timeout(Some(PATIENCE));
            thread::spawn(move || part(stream));
        }
    });
    Ok(port)
}

/// Bytes in one direction.
const MANY: usize = 4 << 20;

fn proxy_to(port: u16, lines: &str) -> String {
    format!("{lines} server {{ listen LISTEN; proxy_pass 127.0.0.1:{port}; }}")
}

fn io(err: std::io::Error) -> String {
    err.to_string()
}

/// All bytes up to the end.
fn count(mut stream: &TcpStream) -> Result<usize, String> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(io)
}

/// Each side in turn ends first, and gets everything that the other sends afterwards.
fn half_closed(program: &Path) -> Result<String, String> {
    let answers = backend(|mut stream| {
        let _ = stream.write_all(format!("{:?}", count(&stream)).as_bytes());
    })?;
    let server = ServedStream::start(program, "", &proxy_to(answers, "proxy_half_close on;"))?;
    let mut client = server.connect()?;
    client.write_all(&vec![b'x'; MANY]).map_err(io)?;
    client.shutdown(Shutdown::Write).map_err(io)?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).map_err(io)?;
    if answer != format!("Ok({MANY})") {
        return Err(format!("the server got {answer}"));
    }
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    let ends_first = backend(move |stream| {
        let _ = stream.shutdown(Shutdown::Write);
        counter.store(count(&stream).unwrap_or_default(), SeqCst);
    })?;
    let server = ServedStream::start(program, "", &proxy_to(ends_first, "proxy_half_close on;"))?;
    let mut client = server.connect()?;
    count(&client)?;
    client.write_all(&vec![b'x'; MANY]).map_err(io)?;
    drop(client);
    until("all bytes at a server that ended first", || taken.load(SeqCst) == MANY)?;
    Ok(format!("{MANY} bytes each way after the other side had ended"))
}

/// Sessions that are reset, at each side.
const RESETS: usize = 200;

/// A side that is closed with unread bytes is reset; the other must see an end.
fn resets(program: &Path) -> Result<String, String> {
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = ended.clone();
    let sends = backend(move |mut stream| {
        let _ = stream.write_all(b"unread");
        let _ = stream.read(&mut [0]);
        counter.fetch_add(1, SeqCst);
    })?;
    let server = ServedStream::start(program, "", &proxy_to(sends, ""))?;
    no_descriptors_left(&server, || {
        ended.store(0, SeqCst);
        for _ in 0..RESETS {
            let client = server.connect()?;
            client.peek(&mut [0]).map_err(io)?;
        }
        until("servers of reset clients see the end", || ended.load(SeqCst) >= RESETS)
    })?;

    let leaves = backend(|stream| _ = stream.peek(&mut [0]))?;
    let server = ServedStream::start(program, "", &proxy_to(leaves, ""))?;
    no_descriptors_left(&server, || (0..RESETS).try_for_each(|number| outlive(&server, number)))?;
    Ok(format!("{RESETS} of each side twice, every end seen by the other"))
}

/// A client whose server leaves with unread bytes.
fn outlive(server: &ServedStream, number: usize) -> Result<(), String> {
    let mut client = server.connect()?;
    client.write_all(b"unread").map_err(io)?;
    let begun = Instant::now();
    let _ = client.read(&mut [0]);
    match begun.elapsed() < PATIENCE {
        true => Ok(()),
        false => Err(format!("client {number} of a reset server sees no end")),
    }
}

/// How long the number of descriptors must stay the same to be taken for the final one.
const STEADY: Duration = Duration::from_millis(300);

/// Runs sessions twice; the second time leaves no more descriptors than the first. A server that
/// was just started is no measure: some of its workers may have opened nothing yet.
fn no_descriptors_left(
    server: &ServedStream,
    sessions: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    sessions()?;
    let before = steady_descriptors(server)?;
    sessions()?;
    until("descriptors are given back", || {
        Holdings::of(&server.server).is_ok_and(|now| now.descriptors <= before)
    })
}

/// How many descriptors a server has once that has stayed the same for a while.
pub(super) fn steady_descriptors(server: &ServedStream) -> Result<usize, String> {
    let (mut last, mut since) = (0, Instant::now());
    until("the number of descriptors stays the same", || {
        let now = Holdings::of(&server.server).map_or(0, |now| now.descriptors);
        if std::mem::replace(&mut last, now) != now {
            since = Instant::now();
        }
        since.elapsed() >= STEADY
    })?;
    Ok(last)
}

/// Clients that never read.
const IDLE_READERS: usize = 50;
/// Memory for each of them: both directions' buffers and the session.
const READER_BYTES_MAX: f64 = 64e3;

/// Servers that send without end are held up, and memory stays bounded.
fn slow_readers(program: &Path) -> Result<String, String> {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let endless = backend(move |mut stream| {
        let piece = [b'x'; 1 << 16];
        while let Ok(written) = stream.write(&piece) {
            counter.fetch_add(written as u64, SeqCst);
        }
    })?;
    let lines = format!("server {{ listen LISTEN sndbuf=64k; proxy_pass 127.0.0.1:{endless}; }}");
    let server = ServedStream::start(program, "", &lines)?;
    // Workers that have served once have what they keep for later.
    drop(server.connect()?);
    let fresh = procfs::memory(server.server.pid())?;
    let clients = (0..IDLE_READERS).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    let mut last = 0;
    until("servers are held up", || {
        thread::sleep(Duration::from_millis(300));
        let now = sent.load(SeqCst);
        std::mem::replace(&mut last, now) == now && now > 0
    })?;
    let each = (procfs::memory(server.server.pid())? - fresh) / IDLE_READERS as f64;
    if each > READER_BYTES_MAX {
        return Err(format!("{each:.0} bytes for each client that does not read"));
    }
    drop(clients);
    Ok(format!("{IDLE_READERS} clients that never read take {each:.0} B each"))
}

/// Connections before and after the kill.
const ASKED: usize = 100;

fn killed_backend(program: &Path) -> Result<String, String> {
    let first = WeirBackend::start(program, 0, &[])?;
    let second = WeirBackend::start(program, 0, &[])?;
    let lines = format!(
        "upstream u {{ server 127.0.0.1:{}; server 127.0.0.1:{}; }}
         server {{ listen LISTEN; proxy_pass u; }}",
        first.port, second.port
    );
    let server = ServedStream::start(program, "", &lines)?;
    let ask = |stream: &mut TcpStream| -> Result<(), String> {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").map_err(io)?;
        let mut start = [0; 12];
        stream.read_exact(&mut start).map_err(io)?;
        match &start {
            b"HTTP/1.1 200" => Ok(()),
            other => Err(String::from_utf8_lossy(other).into_owned()),
        }
    };
    let mut sessions = (0..ASKED).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    sessions.iter_mut().try_for_each(ask)?;
    drop(first);
    let mut survivors = 0;
    for session in &mut sessions {
        // What the first reply still brings is followed by the end, or by nothing.
        session.set_read_timeout(Some(Duration::from_millis(20))).map_err(io)?;
        survivors += usize::from(!sees_end(session));
    }
    if survivors == 0 || survivors == ASKED {
        return Err(format!("{survivors} of {ASKED} sessions go on, where half should"));
    }
    for number in 0..ASKED {
        let mut stream = server.connect()?;
        ask(&mut stream).map_err(|why| format!("connection {number} after the kill: {why}"))?;
    }
    drop(second);
    Ok(format!(
        "{survivors} of {ASKED} sessions go on, {ASKED} new ones are served by the other server"
    ))
}

/// Reads until nothing comes any more; whether that is the end.
fn sees_end(stream: &mut TcpStream) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(err) => return !matches!(err.kind(), TimedOut | WouldBlock),
        }
    }
}

/// Sessions that are kept, and reloads that they outlive.
const KEPT: usize = 20;
const RELOADS: usize = 100;

fn echo() -> Result<u16, String> {
    backend(|mut stream| {
        let mut piece = [0; 64];
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            if stream.write_all(&piece[..read]).is_err() {
                return;
            }
        }
    })
}

fn echoed(mut session: &TcpStream) -> Result<(), String> {
    let mut answer = [0; 4];
    session.write_all(b"ping").map_err(io)?;
    session.read_exact(&mut answer).map_err(io)
}

fn reloads(program: &Path) -> Result<String, String> {
    let server = ServedStream::start(program, "", &proxy_to(echo()?, ""))?;
    let sessions = (0..KEPT).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for number in 1..=RELOADS {
        server.reload()?;
        for session in &sessions {
            echoed(session).map_err(|why| format!("after {number} reloads: {why}"))?;
        }
    }
    Ok(format!("{KEPT} sessions outlive {RELOADS} reloads"))
}

/// A child of ours stays as a zombie until it is waited for.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

fn shutdown_timeout(program: &Path) -> Result<String, String> {
    let lines = proxy_to(echo()?, "");
    let server = ServedStream::start(program, "worker_shutdown_timeout 1s;", &lines)?;
    let mut session = server.connect()?;
    echoed(&session)?;
    let begun = Instant::now();
    signal("QUIT", server.server.pid())?;
    echoed(&session).map_err(|why| format!("before its time is over: {why}"))?;
    if !sees_end(&mut session) {
        return Err("the session goes on".into());
    }
    let seconds = begun.elapsed().as_secs_f64();
    if !(0.9..5.0).contains(&seconds) {
        return Err(format!("the session ended after {seconds:.1} s, where 1 is asked for"));
    }
    until("the server ends", || is_gone(server.server.pid()))?;
    Ok(format!("worker_shutdown_timeout 1s ended a session after {seconds:.1} s"))
}
