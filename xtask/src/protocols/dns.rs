//! DNS over UDP and TCP: dig before Unbound.

use std::path::Path;
use std::process::Command;

use super::command::{bounded, printed};
use super::server::ProtocolServer;
use crate::packages;
use crate::prove::{ProofFolder, free_port};
use crate::stream_server::ServedStream;

/// Texts too long together for a datagram.
const LONG: usize = 40;
/// Queries over UDP, and the reloads among them.
const QUERIES: usize = 100;
const QUERIES_PER_RELOAD: usize = 20;

pub(super) fn run(weir: &Path) -> Result<String, String> {
    packages::need(&[("unbound", "unbound"), ("dig", "bind9-dnsutils")])?;
    let (folder, port) = (ProofFolder::new("dns")?, free_port()?);
    let long: Vec<String> = (0..LONG)
        .map(|n| format!("local-data: 'long.test. TXT \"{n} {}\"'", "x".repeat(60)))
        .collect();
    let conf = folder.write(
        "unbound.conf",
        &format!(
            "server:\n interface: 127.0.0.1@{port}\n do-daemonize: no\n username: \"\"\n \
             chroot: \"\"\n pidfile: \"\"\n use-syslog: no\n module-config: iterator\n \
             local-zone: test. static\n local-data: 'www.test. A 192.0.2.1'\n {}\n\
             remote-control:\n control-enable: no\n",
            long.join("\n ")
        ),
    )?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unbound", "-d", "-c"]).arg(&conf);
    let _unbound = ProtocolServer::start(&mut command, port)?;
    let pass = format!("proxy_pass 127.0.0.1:{port};");
    let lines = format!(
        "server {{ listen LISTEN; {pass} }}
         server {{ listen LISTEN udp; {pass} proxy_requests 1; proxy_responses 1; }}"
    );
    let server = ServedStream::start(weir, "", &lines)?;
    over_tcp(&server)?;
    over_udp(&server)?;
    let reloads = QUERIES / QUERIES_PER_RELOAD;
    Ok(format!(
        "{QUERIES} queries over UDP and {reloads} reloads, one truncated and repeated over TCP; \
         three on one connection, with {} bytes of TXT",
        LONG * 60
    ))
}

fn over_tcp(server: &ServedStream) -> Result<(), String> {
    let one = dig(server, &["+tcp", "www.test", "A"])?;
    if one != "192.0.2.1\n" {
        return Err(format!("www.test is {one:?}"));
    }
    let words = ["+tcp", "+keepopen", "www.test", "A", "long.test", "TXT", "www.test", "A"];
    let many = dig(server, &words)?;
    match many.lines().count() {
        lines if lines == LONG + 2 => Ok(()),
        _ => Err(format!("three queries on one connection: {many}")),
    }
}

fn over_udp(server: &ServedStream) -> Result<(), String> {
    for number in 1..=QUERIES {
        let one = dig(server, &["+notcp", "www.test", "A"])?;
        if one != "192.0.2.1\n" {
            return Err(format!("www.test is {one:?} in query {number} over UDP"));
        }
        if number % QUERIES_PER_RELOAD == 0 {
            server.reload()?;
        }
    }
    // The answer says that it is cut off, and dig asks again over TCP.
    let long = dig(server, &["+notcp", "long.test", "TXT"])?;
    match long.lines().filter(|line| line.starts_with('"')).count() {
        LONG => Ok(()),
        _ => Err(format!("a long answer over UDP: {long}")),
    }
}

fn dig(server: &ServedStream, words: &[&str]) -> Result<String, String> {
    let port = server.port.to_string();
    let mut command = bounded("dig");
    command.args(["+short", "+tries=1", "@127.0.0.1", "-p", &port]).args(words);
    printed(&mut command)
}
