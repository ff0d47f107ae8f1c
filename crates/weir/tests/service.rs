//! What a service manager is told (sd_notify(3)); a datagram socket of the test is the manager.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic, and tell why")]

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use testing::{Folder, PATIENCE, body, eventually, is_root, kill};

const OLD: &str = "nginx.pid.oldbin";

/// A server that a manager has started. It has a process group of its own, which is killed in the
/// end with all that is left of it.
struct Service {
    folder: Folder,
    manager: UnixDatagram,
    child: Child,
}

impl Service {
    fn start(globals: &str) -> Self {
        Self::start_with(globals, &[])
    }

    fn start_with(globals: &str, variables: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        let manager = UnixDatagram::bind(folder.join("notify")).unwrap();
        let name = folder.name("notify");
        Self::start_at(folder, manager, &name, globals, variables)
    }

    fn start_at(
        folder: Folder,
        manager: UnixDatagram,
        name: &str,
        globals: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        configure(&folder, globals, "first");
        std::fs::create_dir_all(folder.join("logs")).unwrap();
        let mut command = Command::new(folder.nginx());
        command.arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.args(["-l", &format!("unix:{}", folder.name("control.sock"))]);
        command.env("NOTIFY_SOCKET", name).env_remove("WATCHDOG_PID").envs(variables.to_vec());
        let child = command.stdin(Stdio::null()).process_group(0).spawn().unwrap();
        Self { folder, manager, child }
    }

    /// The next message that is no sign of life.
    fn next(&self) -> String {
        loop {
            let message = self.any();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn any(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    /// Waits for a message with this line.
    fn expect(&self, line: &str) -> String {
        loop {
            let message = self.next();
            if message.lines().any(|one| one == line) {
                return message;
            }
        }
    }

    fn get(&self) -> String {
        let mut stream = UnixStream::connect(self.folder.join("a.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        body(&reply).to_owned()
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn end(&mut self) -> ExitStatus {
        eventually("the end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.folder.read("error.log"));
        }
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).output();
        let _ = self.child.wait();
    }
}

fn configure(folder: &Folder, globals: &str, word: &str) {
    let user = if is_root() { "user root;" } else { "" };
    let conf = format!(
        "{user} daemon off; pid nginx.pid; error_log error.log info; {globals} events {{}}
         http {{ access_log off; server {{
             listen unix:{}; location / {{ return 200 {word}; }} }} }}",
        folder.name("a.sock")
    );
    folder.write("nginx.conf", conf);
}

fn status(message: &str) -> &str {
    message.lines().find_map(|line| line.strip_prefix("STATUS=")).unwrap_or_default()
}

/// The number of the worker process in a line of status.
fn worker_process(message: &str) -> i32 {
    let (_, number) = message.split_once("worker process ").unwrap();
    number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn the_manager_is_told_of_start_and_end() {
    let mut service = Service::start("");
    assert_eq!(service.next(), "STATUS=Starting a worker process\n");
    let ready = service.next();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    assert!(status(&ready).starts_with("Serving configuration 1, worker process "), "{ready}");
    assert_eq!(service.get(), "first");
    kill(service.pid(), "QUIT");
    assert_eq!(service.next(), "STOPPING=1\nSTATUS=Finishing the requests in progress\n");
    assert!(service.end().success());
}

#[test]
fn an_abstract_socket_is_told_as_well() {
    let folder = Folder::new();
    let name = folder.name("abstract");
    let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
    let service = Service::start_at(folder, manager.unwrap(), &format!("@{name}"), "", &[]);
    service.expect("READY=1");
}

#[test]
fn a_reload_is_told_with_its_beginning_and_its_end() {
    let service = Service::start("");
    service.expect("READY=1");
    configure(&service.folder, "", "second");
    kill(service.pid(), "HUP");
    let message = service.next();
    let mut lines = message.lines();
    assert_eq!(lines.next(), Some("RELOADING=1"));
    let time = lines.next().and_then(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    // Seconds since the start, with two decimals.
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let told = time.parse::<f64>().unwrap() / 1e6;
    assert!(told <= uptime + 0.02 && told > uptime - PATIENCE.as_secs_f64(), "{told}, {uptime}");
    let ready = service.expect("READY=1");
    assert!(status(&ready).starts_with("Serving configuration 2"), "{ready}");
    assert_eq!(service.get(), "second");
}

#[test]
fn a_refused_reload_ends_as_well() {
    let service = Service::start("");
    service.expect("READY=1");
    configure(&service.folder, "no_such_directive;", "second");
    kill(service.pid(), "HUP");
    service.expect("RELOADING=1");
    let ready = service.expect("READY=1");
    assert!(status(&ready).ends_with("; the last reload failed, see the error log"), "{ready}");
    assert_eq!(service.get(), "first");
}

#[test]
fn weir_ctl_reload_fails_when_the_configuration_is_bad() {
    let service = Service::start("");
    service.expect("READY=1");
    let reload = || {
        let program = service.folder.nginx().canonicalize().unwrap();
        let mut command = Command::new(program);
        command.args(["ctl", "-s", &service.folder.name("control.sock"), "reload"]);
        testing::output(command)
    };
    assert!(reload().status.success());
    configure(&service.folder, "no_such_directive;", "second");
    let refused = reload();
    assert_eq!(refused.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&refused.stdout);
    assert!(printed.contains("unknown directive \"no_such_directive\""), "{printed}");
}

#[test]
fn signs_of_life_need_a_worker_process() {
    let service = Service::start_with("", &[("WATCHDOG_USEC", "20000")]);
    let ready = service.expect("READY=1");
    for _ in 0..3 {
        assert_eq!(service.any(), "WATCHDOG=1");
    }
    let worker = worker_process(&ready);
    kill(worker, "KILL");
    service.expect("STATUS=No worker process serves");
    let message = service.next();
    assert!(status(&message).starts_with("Serving configuration 1"), "{message}");
    assert_ne!(worker_process(&message), worker);
    assert_eq!(service.any(), "WATCHDOG=1");
}

#[test]
fn the_watchdog_of_another_process_is_not_ours() {
    let variables = [("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    let service = Service::start_with("", &variables);
    service.expect("READY=1");
    kill(service.pid(), "QUIT");
    assert!(service.any().starts_with("STOPPING=1"), "no sign of life before it");
}

#[test]
fn a_new_binary_becomes_the_main_process() {
    let mut service = Service::start_with("", &[("WATCHDOG_USEC", "20000")]);
    service.expect("READY=1");
    let old = service.pid();
    configure(&service.folder, "", "second");
    kill(old, "USR2");
    let new = eventually("another pid file", || {
        let folder = &service.folder;
        folder.pid("nginx.pid").filter(|new| *new != old && folder.pid(OLD) == Some(old))
    });
    let told = service.next();
    assert!(status(&told).ends_with(&format!("; new binary process {new}")), "{told}");
    kill(old, "QUIT");
    // No READY=1 of the new one has come before.
    assert_eq!(service.next(), format!("MAINPID={new}"));
    service.expect("READY=1");
    assert!(service.end().success());
    assert_eq!(service.get(), "second");
    assert_eq!(service.any(), "WATCHDOG=1");
    kill(new, "QUIT");
    service.expect("STOPPING=1");
    eventually("the end of the new one", || {
        service.folder.pid("nginx.pid").is_none().then_some(())
    });
}

#[test]
fn a_new_binary_that_ends_leaves_the_old_one_the_main_process() {
    let service = Service::start("");
    service.expect("READY=1");
    let old = service.pid();
    kill(old, "USR2");
    let new = eventually("another pid file", || {
        service.folder.pid("nginx.pid").filter(|new| *new != old)
    });
    let told = service.next();
    assert!(status(&told).ends_with(&format!("; new binary process {new}")), "{told}");
    kill(new, "TERM");
    let told = service.next();
    assert!(status(&told).starts_with("Serving configuration 1, worker process "), "{told}");
    assert!(!told.contains("new binary"), "{told}");
    kill(old, "QUIT");
    service.expect("STOPPING=1");
}

#[test]
fn a_server_without_a_master_tells_the_same() {
    let service = Service::start_with("master_process off;", &[("WATCHDOG_USEC", "20000")]);
    service.expect("READY=1");
    assert_eq!(service.any(), "WATCHDOG=1");
    configure(&service.folder, "master_process off;", "second");
    kill(service.pid(), "HUP");
    service.expect("RELOADING=1");
    assert_eq!(service.next(), "READY=1\nSTATUS=Serving configuration 2\n");
    kill(service.pid(), "QUIT");
    service.expect("STOPPING=1");
}
