//! DNS over TCP: dig before Unbound.

use std::path::Path;
use std::process::Command;

use super::{ProtocolServer, bounded, printed};
use crate::packages;
use crate::prove::{ProofFolder, free_port};
use crate::stream_server::ServedStream;

/// A text too long for a datagram of the classic size.
const LONG: usize = 40;

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
    let lines = format!("server {{ listen LISTEN; proxy_pass 127.0.0.1:{port}; }}");
    let server = ServedStream::start(weir, "", &lines)?;
    let dig = |words: &[&str]| {
        let mut command = bounded("dig");
        let port = server.port.to_string();
        command.args(["+tcp", "+short", "+tries=1", "@127.0.0.1", "-p", &port]).args(words);
        printed(&mut command)
    };
    let one = dig(&["www.test", "A"])?;
    if one != "192.0.2.1\n" {
        return Err(format!("www.test is {one:?}"));
    }
    let many = dig(&["+keepopen", "www.test", "A", "long.test", "TXT", "www.test", "A"])?;
    if many.lines().count() != LONG + 2 {
        return Err(format!("three queries on one connection: {many}"));
    }
    Ok(format!("single queries, and three on one connection, with {} bytes of TXT", LONG * 60))
}
