//! Servers of HTTP/2 that attack Weir, which passes requests on to them with `proxy_pass` and
//! `grpc_pass`.
//!
//! Each attack has a Weir, a good server and a hostile one of its own. The hostile server attacks
//! with each POST, and answers GETs as it should. While clients POST, another client asks the good
//! server, and a reply of the hostile server waits for its second half on the same connection.

mod attack;
mod attacks;
mod client;
mod connection;
mod reply;
mod server;
mod state;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use processes::procfs;

use super::bystander::Bystander;
use crate::running::Running;
use attack::{AttackReach, ServerAttack};
use attacks::ATTACKS;
use client::ClientReply;
use server::HostileServer;

/// How often each client POSTs, unless each request takes as long as a timeout.
const ROUNDS: usize = 5;
/// Requests beside replies that are not read.
const REQUESTS_BESIDE: usize = 100;
/// By how much the server's memory may grow.
const MEMORY_MAX: f64 = 16.0 * 1024.0 * 1024.0;
/// How long descriptors may stay open.
const CLOSED_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// The families of directives that pass requests on.
const WAYS: [&str; 2] = ["proxy", "grpc"];

/// Runs those whose name contains `only`; `complain` is told what does not end as it should.
pub(super) fn run(
    program: &Path,
    only: &str,
    complain: &mut dyn FnMut(String),
) -> Result<(), String> {
    let attacks: Vec<_> = ATTACKS.iter().filter(|attack| attack.name.contains(only)).collect();
    if attacks.is_empty() {
        return Ok(());
    }
    println!("HTTP/2 server              passed by end             memory   others p50/p99/max");
    for way in WAYS {
        // Older versions of nginx do not have all ways.
        if let Err(why) = attack_once(program, &attacks::NONE, way) {
            complain(format!("{way}_pass: {why}"));
            continue;
        }
        for attack in &attacks {
            if let Err(why) = attack_once(program, attack, way) {
                println!("{:26} {way:6} {why}", attack.name);
                complain(format!("{}, {way}_pass: {why}", attack.name));
            }
        }
    }
    Ok(())
}

fn attack_once(program: &Path, attack: &'static ServerAttack, way: &str) -> Result<(), String> {
    let good = HostileServer::start(&attacks::NONE)?;
    let hostile = HostileServer::start(attack)?;
    let server = start(program, way, attack, &[&good, &hostile])?;
    let bystander = Bystander::start(&server.file("other.sock"))?;
    let others = Others::start(&server, &hostile, attack)?;
    let descriptors = descriptors(&server);
    let before = procfs::memory(server.pid())?;
    let mut peak = before;
    let may_read = Arc::new(AtomicBool::new(!attack.is_unread()));
    let clients: Vec<_> =
        (0..attack.clients()).map(|_| post_all(&server, attack, &may_read)).collect();
    let beside = if attack.is_unread() { ask_beside(&server, &hostile, attack) } else { Ok(()) };
    may_read.store(true, Ordering::SeqCst);
    while clients.iter().any(|client| !client.is_finished()) {
        peak = procfs::memory(server.pid())?.max(peak);
        thread::sleep(LOOK);
    }
    let mut ends = Vec::new();
    for client in clients {
        ends.extend(client.join().map_err(|_| "a client panicked")??);
    }
    let served = others.finish(&server, &hostile, attack);
    let latency = bystander.stop()?;
    println!(
        "{:26} {way:6} {:14} {:8.0} KB {latency}",
        attack.name,
        ends[0].to_string(),
        (peak - before) / 1024.0,
    );
    beside.and(served)?;
    if let Some(end) = ends.iter().find(|end| !attack.end.contains(end)) {
        return Err(format!("a request ended with {end}:\n{}", server.log()));
    }
    if peak - before > MEMORY_MAX {
        return Err(format!("memory grew by {} bytes", peak - before));
    }
    judge_log(&server, attack)?;
    drop(hostile);
    await_closed(&server, descriptors)
}

/// A request that takes as long as a timeout has a short one; the others' timeouts must not matter.
fn start(
    program: &Path,
    way: &str,
    attack: &ServerAttack,
    [good, hostile]: &[&HostileServer; 2],
) -> Result<Running, String> {
    let (good, hostile) = (good.address, hostile.address);
    let version = if way == "proxy" { "proxy_http_version 2; proxy_buffering off;" } else { "" };
    let schema = if way == "proxy" { "http" } else { "grpc" };
    let seconds = if attack.is_silent { 1 } else { 60 };
    let http = format!(
        "error_log DIR/error.log info;
         upstream good {{ server {good}; keepalive 4; }}
         upstream hostile {{ server {hostile}; keepalive 4; }}
         client_max_body_size 0; {version}
         server {{
             listen ADDRESS; listen unix:DIR/other.sock; keepalive_requests 1000000;
             location / {{ {way}_pass {schema}://good; }}
         }}
         server {{
             listen unix:DIR/hostile.sock;
             location / {{ {way}_pass {schema}://hostile; }}
             location /post {{
                 {way}_read_timeout {seconds}s; {way}_send_timeout {seconds}s;
                 {way}_pass {schema}://hostile;
             }}
         }}"
    );
    Running::start(program, 1, &http)
}

fn post_all(
    server: &Running,
    attack: &'static ServerAttack,
    may_read: &Arc<AtomicBool>,
) -> JoinHandle<Result<Vec<ClientReply>, String>> {
    let (socket, may_read) = (server.file("hostile.sock"), may_read.clone());
    let rounds = if attack.is_silent { 1 } else { ROUNDS };
    thread::spawn(move || {
        let post = || client::post(&socket, attack.body_bytes, &may_read);
        (0..rounds).map(|_| post().map_err(|err| format!("a client: {err}"))).collect()
    })
}

/// Requests to the hostile server that it does not attack.
struct Others {
    /// Whose reply waits for its second half.
    held: Option<JoinHandle<std::io::Result<ClientReply>>>,
}

impl Others {
    /// Opens the connection that the attack is for.
    fn start(
        server: &Running,
        hostile: &HostileServer,
        attack: &ServerAttack,
    ) -> Result<Self, String> {
        if attack.reach == AttackReach::Server {
            return Ok(Self { held: None });
        }
        ask(server)?;
        let socket = server.file("hostile.sock");
        let held = thread::spawn(move || client::get(&socket, "/index.html"));
        hostile.await_held()?;
        Ok(Self { held: Some(held) })
    }

    fn finish(
        self,
        server: &Running,
        hostile: &HostileServer,
        attack: &ServerAttack,
    ) -> Result<(), String> {
        let Some(held) = self.held else { return Ok(()) };
        if attack.reach == AttackReach::Stream {
            ask(server)?;
        }
        hostile.release();
        let held = held.join().map_err(|_| "a client panicked")?.map_err(|err| err.to_string())?;
        match attack.reach {
            AttackReach::Stream if held != ClientReply::Served => {
                return Err(format!("another request of the connection ended with {held}"));
            }
            _ if held == ClientReply::Wrong => return Err("a reply was cut and looks whole".into()),
            _ => {}
        }
        ask(server)
    }
}

/// Requests on the connection of large replies that nobody reads.
fn ask_beside(
    server: &Running,
    hostile: &HostileServer,
    attack: &ServerAttack,
) -> Result<(), String> {
    hostile.await_stalled(attack.clients())?;
    (0..REQUESTS_BESIDE).try_for_each(|_| ask(server))
}

/// A request that the hostile server answers as it should.
fn ask(server: &Running) -> Result<(), String> {
    match client::get(&server.file("hostile.sock"), "/") {
        Ok(ClientReply::Served) => Ok(()),
        Ok(end) => Err(format!("a request without an attack ended with {end}:\n{}", server.log())),
        Err(err) => Err(format!("a request without an attack: {err}")),
    }
}

/// Panics are alerts, and so are processes that end.
fn judge_log(server: &Running, attack: &ServerAttack) -> Result<(), String> {
    let log = server.log();
    if let Some(line) =
        log.lines().find(|line| line.contains("[alert]") || line.contains("[emerg]"))
    {
        return Err(format!("in the log: {line}"));
    }
    match log.contains(attack.log) {
        true => Ok(()),
        false => Err(format!("no {:?} in the log:\n{log}", attack.log)),
    }
}

/// The hostile server has closed its connections, so there may be no more than before.
fn await_closed(server: &Running, before: usize) -> Result<(), String> {
    let end = Instant::now() + CLOSED_MAX;
    while descriptors(server) > before {
        if Instant::now() > end {
            return Err(format!("{} descriptors, {before} before", descriptors(server)));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// The open descriptors of all its processes.
fn descriptors(server: &Running) -> usize {
    procfs::family(server.pid()).into_iter().map(procfs::descriptors).sum()
}
