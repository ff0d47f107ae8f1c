//! A server of `stream {}` between clients and backends that a proof plays or starts.

use std::cell::Cell;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use processes::server::MeasuredServer;

use crate::prove::{ProofFolder, free_port};
use crate::{packages, project};

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// What a server of its own returns: how often it was reloaded.
const GENERATION: &str = "generation-";

/// A running server with one listening socket for its clients, `LISTEN` in its configuration.
pub(crate) struct ServedStream {
    pub(crate) server: MeasuredServer,
    pub(crate) port: u16,
    folder: ProofFolder,
    text: String,
    told_port: u16,
    reloads: Cell<usize>,
}

impl ServedStream {
    /// Starts the program with these lines at the top and in `stream {}`.
    pub(crate) fn start(program: &Path, top: &str, stream: &str) -> Result<Self, String> {
        let folder = ProofFolder::new(&format!("stream-{}", free_port()?))?;
        let [port, told_port] = [free_port()?, free_port()?];
        let user = if packages::is_root() { "user root;\n" } else { "" };
        let text = format!(
            "{user}worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log notice;\n\
             {top}\nevents {{ worker_connections 20000; }}\n\
             stream {{\n{stream}\n\
             server {{ listen 127.0.0.1:{told_port}; return {GENERATION}0; }}\n}}\n",
            d = folder.0.display()
        );
        let text = text.replace("LISTEN", &format!("127.0.0.1:{port}"));
        let conf = folder.write("conf", &text)?;
        let server = MeasuredServer::start(program, &conf, told_port)?;
        let server = Self { server, port, folder, text, told_port, reloads: Cell::new(0) };
        // The master listens before the workers have started.
        server.await_generation(&format!("{GENERATION}0"))?;
        Ok(server)
    }

    pub(crate) fn connect(&self) -> Result<TcpStream, String> {
        connect(self.port)
    }

    /// Has the configuration read again, and waits until it is in use.
    pub(crate) fn reload(&self) -> Result<(), String> {
        self.reloads.set(self.reloads.get() + 1);
        let generation = format!("{GENERATION}{}", self.reloads.get());
        let text = self.text.replace(&format!("{GENERATION}0"), &generation);
        self.folder.write("conf", &text)?;
        signal("HUP", self.server.pid())?;
        self.await_generation(&generation)
    }

    fn await_generation(&self, generation: &str) -> Result<(), String> {
        until(generation, || {
            let mut told = String::new();
            connect(self.told_port).is_ok_and(|mut peer| peer.read_to_string(&mut told).is_ok())
                && told == generation
        })
    }

    /// Waits for a line in the error log.
    pub(crate) fn await_log(&self, words: &str) -> Result<(), String> {
        let file = self.folder.join("error.log");
        until(words, || fs::read_to_string(&file).is_ok_and(|log| log.contains(words)))
    }
}

fn connect(port: u16) -> Result<TcpStream, String> {
    let fail = |err: std::io::Error| format!("port {port}: {err}");
    let stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).map_err(fail)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
    Ok(stream)
}

pub(crate) fn signal(name: &str, pid: u32) -> Result<(), String> {
    project::succeed(Command::new("kill").args(["-s", name, &pid.to_string()]))
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            return Err(format!("{what}: not within {} s", PATIENCE.as_secs()));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
