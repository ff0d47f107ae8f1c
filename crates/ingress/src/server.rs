//! The server as the installer needs it: a check of a configuration, and a reload that is answered.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use discover::{HttpClient, HttpPlace, HttpRequest};
use serde_json::Value;

/// How long the server may take to read a configuration and to start it.
const RELOAD_MAX: Duration = Duration::from_secs(120);
/// How long a check may take.
const CHECK_MAX: Duration = Duration::from_secs(120);
const CHECK_LOOK: Duration = Duration::from_millis(10);
/// How long the server may take to say that it runs.
const STATUS_MAX: Duration = Duration::from_secs(5);
/// The lines of an explanation that are passed on.
const LINES_MAX: usize = 5;

#[derive(Debug, PartialEq)]
pub(crate) enum ConfigVerdict {
    Good,
    /// The configuration is wrong.
    Refused(String),
    /// The check could not be run.
    Unknown(String),
}

pub(crate) struct ServerControl {
    client: HttpClient,
    /// The program that checks; `None`: only the server does.
    program: Option<PathBuf>,
}

impl ServerControl {
    pub(crate) fn new(place: HttpPlace, program: Option<PathBuf>) -> Self {
        Self { client: HttpClient::new(place), program }
    }

    /// Whether a server answers at the control socket.
    pub(crate) fn is_running(&mut self) -> bool {
        self.client.ask(&HttpRequest::get("/status", STATUS_MAX)).is_ok()
    }

    pub(crate) fn reload(&mut self) -> ConfigVerdict {
        let request = HttpRequest { method: "POST", ..HttpRequest::get("/reload", RELOAD_MAX) };
        let reply = match self.client.ask(&request) {
            Ok(reply) => reply,
            Err(error) => return ConfigVerdict::Unknown(error.to_string()),
        };
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        match reply.status {
            200 => ConfigVerdict::Good,
            422 => ConfigVerdict::Refused(explanation(&body)),
            status => ConfigVerdict::Unknown(format!("the server answered {status}")),
        }
    }

    /// Checks a configuration with the program. `Unknown` if it cannot be asked.
    pub(crate) fn check(&self, main_file: &Path) -> ConfigVerdict {
        let Some(program) = &self.program else { return ConfigVerdict::Good };
        match run(program, main_file) {
            Ok((true, _)) => ConfigVerdict::Good,
            Ok((false, why)) => ConfigVerdict::Refused(why),
            Err(error) => ConfigVerdict::Unknown(format!("{}: {error}", program.display())),
        }
    }
}

/// The severe lines of the log, or else the last ones.
fn explanation(body: &Value) -> String {
    let lines: Vec<&str> =
        body["log"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    shortened(&lines)
}

fn shortened(lines: &[&str]) -> String {
    let is_severe =
        |line: &&&str| ["[emerg]", "[alert]", "[error]"].iter().any(|level| line.contains(level));
    let mut severe: Vec<&str> = lines.iter().filter(is_severe).copied().collect();
    // An address that is in use is tried several times.
    severe.dedup();
    severe.truncate(LINES_MAX);
    let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
    if severe.is_empty() { last.join("; ") } else { severe.join("; ") }
}

/// Whether the program accepts the file, and what it said.
fn run(program: &Path, main_file: &Path) -> std::io::Result<(bool, String)> {
    // A file, because nobody reads a pipe meanwhile.
    let said = main_file.with_file_name(".said");
    let mut child = Command::new(program)
        .args(["-t", "-q", "-c"])
        .arg(main_file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said)?)
        .spawn()?;
    let until = Instant::now() + CHECK_MAX;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > until => {
                child.kill()?;
                child.wait()?;
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(CHECK_LOOK),
        }
    };
    let text = std::fs::read(&said)?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    Ok((status.success(), shortened(&lines)))
}

#[cfg(test)]
mod tests {
    use testing::{Folder, Peer};

    use super::*;

    fn server(peer: &Peer, program: Option<PathBuf>) -> ServerControl {
        let place = HttpPlace::parse(&format!("http://{}", peer.address), Path::new("")).unwrap();
        ServerControl::new(place, program)
    }

    fn replying(status: u16, json: &str) -> Peer {
        Peer::replying(&format!("HTTP/1.1 {status} X\nContent-Length: {}\n\n{json}", json.len()))
    }

    #[test]
    fn the_answer_to_a_reload_is_a_verdict() {
        let peer = replying(200, r#"{"success":true}"#);
        assert_eq!(server(&peer, None).reload(), ConfigVerdict::Good);
        assert!(peer.asked().starts_with("POST /reload HTTP/1.1\n"));
        let log = r#"{"success":false,"log":["[notice] a","[emerg] unknown directive"]}"#;
        let refused = server(&replying(422, log), None).reload();
        assert_eq!(refused, ConfigVerdict::Refused("[emerg] unknown directive".to_owned()));
        let unknown = server(&replying(503, ""), None).reload();
        assert_eq!(unknown, ConfigVerdict::Unknown("the server answered 503".to_owned()));
    }

    #[test]
    fn a_program_checks_a_configuration() {
        let folder = Folder::new();
        let file = folder.write("nginx.conf", "");
        let peer = replying(200, "");
        let check = |program: Option<&str>| server(&peer, program.map(PathBuf::from)).check(&file);
        assert_eq!(check(Some("/bin/true")), ConfigVerdict::Good);
        assert_eq!(check(Some("/bin/false")), ConfigVerdict::Refused(String::new()));
        assert!(matches!(check(Some("/nowhere/weir")), ConfigVerdict::Unknown(_)));
        assert_eq!(check(None), ConfigVerdict::Good);
        let lines = ["a: [notice] 1", "b: [emerg] 2", "3"];
        assert_eq!(
            (shortened(&lines), shortened(&lines[2..])),
            ("b: [emerg] 2".into(), "3".into())
        );
    }
}
