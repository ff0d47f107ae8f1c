//! Redis: its own benchmark with pipelining, and replies that are counted one by one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use super::command::{bounded, printed};
use super::server::ProtocolServer;
use crate::packages;
use crate::prove::free_port;
use crate::stream_server::ServedStream;

/// Commands that are sent at once, and in all.
const PIPELINED: usize = 1000;
const COMMANDS: usize = 100_000;

pub(super) fn run(weir: &Path) -> Result<String, String> {
    packages::need(&[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")])?;
    let port = free_port()?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "no", "--port", &port.to_string()]);
    let _redis = ProtocolServer::start(&mut command, port)?;
    let server = ServedStream::start(
        weir,
        "",
        &format!(
            "match ready {{ send \"PING\\r\\n\"; expect \"+PONG\"; }}
             upstream redis {{ server 127.0.0.1:{port}; }}
             server {{
                 listen LISTEN; proxy_pass redis;
                 health_check mandatory interval=100ms match=ready;
             }}"
        ),
    )?;
    server.await_log("peer is healthy while checking data")?;
    counted(&server)?;
    benchmark(server.port)?;
    Ok(format!("{COMMANDS} replies in order, {PIPELINED} pipelined; redis-benchmark, 16 pipelined"))
}

/// Each `INCR` is answered with the next number.
fn counted(server: &ServedStream) -> Result<(), String> {
    let stream = server.connect()?;
    let mut replies = BufReader::new(&stream).lines();
    for first in (1..=COMMANDS).step_by(PIPELINED) {
        (&stream).write_all(&b"INCR n\r\n".repeat(PIPELINED)).map_err(|err| err.to_string())?;
        for number in first..first + PIPELINED {
            match replies.next() {
                Some(Ok(reply)) if reply == format!(":{number}") => {}
                other => return Err(format!("INCR number {number} is answered with {other:?}")),
            }
        }
    }
    Ok(())
}

/// It ends with an error when a reply is one. How many commands the server got is compared.
fn benchmark(port: u16) -> Result<(), String> {
    let port = port.to_string();
    let mut command = bounded("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &port, "-P", "16", "-c", "20", "-q"]);
    command.args(["-n", &COMMANDS.to_string(), "-t", "set,get,lpush,lpop"]);
    let said = printed(&mut command)?;
    if said.matches("requests per second").count() != 4 {
        return Err(format!("redis-benchmark: {said}"));
    }
    let mut command = bounded("redis-cli");
    let stats = printed(command.args(["-p", &port, "info", "commandstats"]))?;
    for name in ["set", "get", "lpush", "lpop"] {
        let calls = format!("cmdstat_{name}:calls={COMMANDS},");
        let line = stats.lines().find(|line| line.starts_with(&calls));
        if !line.is_some_and(|line| line.contains("failed_calls=0")) {
            return Err(format!("not {COMMANDS} calls of {name}:\n{stats}"));
        }
    }
    Ok(())
}
