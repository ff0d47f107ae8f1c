//! `weir lab run --host` with agents as processes, all on loopback addresses.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testing::{Folder, Running, eventually, output};

/// A proxy with and without an access log, in front of a backend.
const STUDY: &str = r#"
title = "A proxy"
explanation = "With a log and without."
template = """
events { worker_connections 100; }
http {
    access_log %%log%%;
    server { listen %%listen%%; location / { proxy_pass http://%%backend1%%; } }
}
"""
[load]
connections = 2
turn_ms = 50
[backend]
count = 1
options = ["--body", "hello"]
[blocks]
quick = 6
full = 100000
[factor.log]
baseline = "off"
levels = ["%%dir%%/access.log"]
[[row]]
name = "off"
[[row]]
name = "on"
set = { log = "%%dir%%/access.log" }
"#;
const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A folder with the study and a token.
fn folder() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let study = folder.write("proxy.toml", STUDY);
    write_token(&folder, "token", "a secret of the tests");
    (folder, study)
}

fn write_token(folder: &Folder, name: &str, text: &str) {
    let file = folder.write(name, text);
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A running agent, and its address.
fn agent(folder: &Folder) -> (Running, String) {
    let mut command = Command::new(WEIR);
    command.args(["lab", "agent", "--listen", "127.0.0.1:0", "--token-file"]);
    command.arg(folder.join("token")).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut agent = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(agent.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (agent, line.trim().strip_prefix("listening on ").unwrap().to_owned())
}

/// A run with the token of a file, and these parts on these machines.
fn study(folder: &Folder, file: &Path, hosts: &[(&str, &str)], token: &str) -> Command {
    let mut command = Command::new(WEIR);
    command.args(["lab", "run"]).arg(file).arg("--out").arg(folder.join("out"));
    command.arg("--token-file").arg(folder.join(token));
    for (part, place) in hosts {
        command.arg("--host").arg(format!("{part}={place}"));
    }
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a process and its descendants are, without the process itself.
fn descendants(pid: u32) -> Vec<u32> {
    let (mut found, mut next) = (vec![pid], 0);
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found.split_off(1)
}

/// Waits until none of the processes runs.
fn await_end(pids: &[u32]) {
    let runs = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    eventually("end of what was started", || (!pids.iter().any(runs)).then_some(()));
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn each_part_has_a_machine_of_its_own() {
    let (folder, file) = folder();
    let [(first, client), (_second, server), (_third, backend)] = [(); 3].map(|()| agent(&folder));
    let hosts = [("client", &*client), ("server", &server), ("backend", &backend)];
    let mut command = study(&folder, &file, &hosts, "token");
    let report = succeeded(&command.arg("--quick").output().unwrap());
    let places = format!("client on {client}, server on {server}, backend on {backend}; a part");
    for part in [&*places, "\non ", "6 blocks of turns", "its clock is "] {
        assert!(report.contains(part), "{part:?} in {report}");
    }
    let record = fs::read_to_string(folder.join("out/record.json")).unwrap();
    for part in ["\"clock_offset_us\":", "\"parts\":[\"backend\"]", "\"packets_in\":"] {
        assert!(record.contains(part), "{part} in {record}");
    }
    assert!(!record.contains("\"cpu_us\":0.0"), "{record}");
    // The same agents serve the next controller.
    assert_eq!(descendants(first.0.id()), [0; 0]);
    let resumed = study(&folder, &file, &hosts, "token").args(["--quick", "--resume"]).output();
    succeeded(&resumed.unwrap());
}

/// As over ssh: a program of that name runs the agent, whatever the host.
#[test]
fn an_agent_over_ssh_needs_no_token() {
    let (folder, file) = folder();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}\nwhile [ \"$1\" != me@there ]; do shift; done\nshift\n\
         SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' exec \"$@\"\n",
        folder.name("asked")
    );
    let ssh = folder.write("bin/ssh", script);
    fs::set_permissions(ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let place = format!("ssh:me@there:{WEIR}");
    let mut command = study(&folder, &file, &[("server", &place), ("backend", &place)], "token");
    let path = std::env::var("PATH").unwrap();
    command.arg("--quick").env("PATH", format!("{}:{path}", folder.name("bin")));
    let report = succeeded(&command.output().unwrap());
    let places = "client on this machine, server on ssh:me@there, backend on ssh:me@there; ";
    assert!(report.contains(places), "{report}");
    assert!(folder.read("asked").contains("BatchMode=yes"), "{}", folder.read("asked"));
}

#[test]
fn a_controller_without_the_token_starts_nothing() {
    let (folder, file) = folder();
    write_token(&folder, "other", "another secret here");
    let (_agent, address) = agent(&folder);
    let refused = output(study(&folder, &file, &[("server", &address)], "other"));
    assert_eq!(refused.status.code(), Some(1));
    let told = text(&refused.stderr);
    assert!(told.contains(&format!("agent {address}: wrong token")), "{told}");
    let refused = output(study(&folder, &file, &[("server", "127.0.0.1:1")], "token"));
    assert!(text(&refused.stderr).contains("agent 127.0.0.1:1: "), "{}", text(&refused.stderr));
}

/// A run in the middle, with the server on an agent.
fn running(folder: &Folder, file: &Path, address: &str) -> Running {
    let mut command = study(folder, file, &[("server", address)], "token");
    let run = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    eventually("first block", || folder.join("out/record.json").exists().then_some(()));
    run
}

#[test]
fn an_agent_that_is_killed_ends_the_run_and_leaves_nothing_behind() {
    let (folder, file) = folder();
    let (mut agent, address) = agent(&folder);
    let mut run = running(&folder, &file, &address);
    let (there, here) = (descendants(agent.0.id()), descendants(run.0.id()));
    assert!(!there.is_empty() && !here.is_empty());
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    let status = eventually("end of the run", || run.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    let mut told = String::new();
    std::io::Read::read_to_string(&mut run.0.stderr.take().unwrap(), &mut told).unwrap();
    assert!(told.contains(&format!("agent {address}: the connection ended")), "{told}");
    await_end(&[there, here].concat());
}

#[test]
fn an_agent_ends_what_it_started_when_its_controller_is_killed() {
    let (folder, file) = folder();
    let (agent, address) = agent(&folder);
    let mut run = running(&folder, &file, &address);
    let (there, here) = (descendants(agent.0.id()), descendants(run.0.id()));
    assert!(!there.is_empty());
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    await_end(&[there, here].concat());
    eventually("an idle agent", || descendants(agent.0.id()).is_empty().then_some(()));
}

#[test]
fn a_turn_ends_when_the_controller_leaves() {
    let mut command = Command::new(WEIR);
    command.args(["lab", "agent", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = Running(command.spawn().unwrap());
    let mut orders = agent.0.stdin.take().unwrap();
    let mut replies = BufReader::new(agent.0.stdout.take().unwrap()).lines();
    let mut ask = |order: String| writeln!(orders, "{order}").unwrap();
    let backend =
        r#"{"listen":"127.0.0.1","options":[],"udp":false,"place":"anywhere","counted":[]}"#;
    ask(format!("{{\"backend\":{backend}}}"));
    let reply = replies.next().unwrap().unwrap();
    let address = reply.split('"').find(|word| word.starts_with("127.0.0.1:")).unwrap();
    ask(format!(
        "{{\"generator\":{{\"place\":\"anywhere\",\"turn\":{{\"connections\":1,\"turn_ms\":10000,\
         \"options\":[],\"url\":\"http://{address}/\"}}}}}}"
    ));
    assert!(replies.next().unwrap().unwrap().contains("\"part\":2"));
    ask(r#"{"turn":{"part":2}}"#.into());
    let started = descendants(agent.0.id());
    drop(orders);
    let reply = replies.next().unwrap().unwrap();
    assert!(reply.starts_with("{\"error\":"), "{reply}");
    assert!(agent.0.wait().unwrap().success());
    await_end(&started);
}

#[test]
fn a_study_that_an_agent_refuses_says_why() {
    let (folder, file) = folder();
    let (_agent, address) = agent(&folder);
    fs::write(&file, STUDY.replace("access_log %%log%%;", "access_log %%log%%; root /etc;"))
        .unwrap();
    let refused = output(study(&folder, &file, &[("server", &address)], "token"));
    let told = text(&refused.stderr);
    assert!(told.contains("weir refuses row \"off\""), "{told}");
    assert!(told.contains("root /etc is not in %%dir%%"), "{told}");
    fs::write(&file, STUDY).unwrap();
    let mut other = study(&folder, &file, &[("server", &address)], "token");
    other.args(["--server", "/bin/true"]);
    let told = text(&output(other).stderr);
    assert!(told.contains("the agent may not start /bin/true"), "{told}");
}
