//! `weir acme`: how certificates are doing, and what can be done about them by hand.
//!
//! A running server is asked at its control socket. Without one, the state folders tell what is
//! stored; deliberately absent: changing them without the server that uses them.

mod arguments;
mod show;

use std::ffi::OsString;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ctl::client::{ControlClient, ControlReply};
use crate::load::LoadedConfig;
use crate::messages::{Reported, complain, print};
use arguments::{AcmeArguments, AcmeCommand};

pub const HELP: &str = "Usage: weir acme [OPTIONS] COMMAND

Shows the certificates that a server obtains by itself (acme_certificate), and renews or forgets
them, through the server's control socket: the one of \"control_socket\" in its configuration, or of
its option -l.

Commands:
  status [NAME]  names, issuer, expiry, next renewal and why, last error; of a server that does not
                 run, what its state folders say
  renew NAME     renew a certificate now, and wait for the result
  forget NAME    remove what is stored of a certificate: its keys, chains, order and failures

NAME is a name of the certificate, or what the names of its files begin with.

A renewal waits for the end of a pause after a failure, and a certificate that the configuration
has is not forgotten, unless --force is given. Neither does what the authority has asked not to do,
or what would soon use up its limits.

Options:
  -s SOCKET   the control socket (default: that of the configuration)
  -c FILE     the configuration of the server
  --force     do not wait for the end of a pause; also forget a configured name
  --no-wait   do not wait for the result of a renewal
  --json      print JSON
  -h, --help  print this help

Exit code: 0 if the command succeeded, 1 otherwise.
";

/// How long the result of a renewal is waited for.
const RENEWAL_MAX: Duration = Duration::from_secs(600);
/// How often it is looked for.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// The certificates in Weir's own tree.
const CERTIFICATES: &str = "/tree/tls/acme";

/// Runs one command.
pub fn run(arguments: &[OsString]) -> Result<(), Reported> {
    let arguments = AcmeArguments::parse(arguments)?;
    match &arguments.command {
        AcmeCommand::Status(name) => status(&arguments, name.as_deref()),
        AcmeCommand::Renew(name) => Renewal::new(&arguments, name)?.run(),
        AcmeCommand::Forget(name) => forget(&arguments, name),
    }
}

fn status(arguments: &AcmeArguments, name: Option<&str>) -> Result<(), Reported> {
    let (certificates, is_running) = match running(arguments)? {
        CertificateSource::Running(certificates) => (certificates, true),
        CertificateSource::Stored(loaded) => (stored(&loaded)?, false),
    };
    let mut shown = list(&certificates);
    shown.retain(|one| name.is_none_or(|name| show::has_name(one, name)));
    if let (Some(name), true) = (name, shown.is_empty()) {
        return Err(complain(format_args!("acme: there is no certificate for \"{name}\"")));
    }
    if arguments.json {
        return print(format!("{}\n", Value::from(shown)));
    }
    if !is_running {
        observe::tell(format_args!("weir: no server answers; this is what is stored\n"));
    }
    print(show::certificates(&shown, now_ms()))
}

/// Who tells how certificates are doing.
enum CertificateSource {
    Running(Value),
    Stored(Box<LoadedConfig>),
}

/// Asks the server; without one, reads the configuration.
fn running(arguments: &AcmeArguments) -> Result<CertificateSource, Reported> {
    let loaded = match &arguments.socket {
        Some(_) => None,
        None => Some(arguments.load()?),
    };
    let named = loaded.as_ref().and_then(|loaded| loaded.settings.control_socket.clone());
    if let Some(socket) = arguments.socket.clone().or(named) {
        let client = ControlClient::at("acme", socket, None);
        if client.is_served() || loaded.is_none() {
            return Ok(CertificateSource::Running(asked(&client)?));
        }
    }
    match loaded {
        Some(loaded) => Ok(CertificateSource::Stored(Box::new(loaded))),
        None => Err(complain("acme: a socket is required")),
    }
}

fn stored(loaded: &LoadedConfig) -> Result<Value, Reported> {
    let failed = |error: &dyn std::fmt::Display| complain(format_args!("acme: {error}"));
    let text = acme::stored_status(&loaded.zones).map_err(|error| failed(&error))?;
    let mut document: Value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    Ok(document["acme"].take())
}

/// The certificates of a running server.
fn asked(client: &ControlClient) -> Result<Value, Reported> {
    let reply = client.ask("GET", CERTIFICATES, None)?;
    match reply.status {
        200 => Ok(reply.body),
        // The configuration has none.
        404 => Ok(json!([])),
        _ => Err(refused(&reply)),
    }
}

fn list(certificates: &Value) -> Vec<Value> {
    certificates.as_array().cloned().unwrap_or_default()
}

fn forget(arguments: &AcmeArguments, name: &str) -> Result<(), Reported> {
    let reply = arguments.client()?.ask("POST", "/acme/forget", Some(&body(arguments, name)))?;
    if !reply.is_good() {
        return Err(refused(&reply));
    }
    match arguments.json {
        true => print(format!("{}\n", reply.body)),
        false => {
            let files = reply.body["certificates"].as_array().into_iter().flatten();
            files
                .filter_map(|one| one["file"].as_str())
                .try_for_each(|file| print(format!("the files {file}.* are removed\n")))
        }
    }
}

fn body(arguments: &AcmeArguments, name: &str) -> String {
    json!({ "name": name, "force": arguments.force }).to_string()
}

/// A renewal whose result is waited for.
struct Renewal<'a> {
    arguments: &'a AcmeArguments,
    client: ControlClient,
    name: &'a str,
}

impl<'a> Renewal<'a> {
    fn new(arguments: &'a AcmeArguments, name: &'a str) -> Result<Self, Reported> {
        Ok(Self { arguments, client: arguments.client()?, name })
    }

    fn run(&self) -> Result<(), Reported> {
        let body = body(self.arguments, self.name);
        let reply = self.client.ask("POST", "/acme/renew", Some(&body))?;
        if !reply.is_good() {
            return Err(refused(&reply));
        }
        if self.arguments.no_wait {
            return match self.arguments.json {
                true => print(format!("{}\n", reply.body)),
                false => print("the renewal has begun\n"),
            };
        }
        let before: Vec<u64> = reply.body["certificates"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one["number"].as_u64().unwrap_or(0))
            .collect();
        let (deadline, least) = (Instant::now() + RENEWAL_MAX, before.iter().copied().min());
        while Instant::now() < deadline {
            let mut shown = list(&asked(&self.client)?);
            shown.retain(|one| show::has_name(one, self.name));
            if shown.iter().all(is_over) {
                return self.tell(&shown, least);
            }
            thread::sleep(LOOK_PAUSE);
        }
        Err(complain(format_args!("acme: the renewal of \"{}\" is still under way", self.name)))
    }

    /// Tells how certificates are doing now. `before`: the number of the oldest pair then.
    fn tell(&self, shown: &[Value], before: Option<u64>) -> Result<(), Reported> {
        match self.arguments.json {
            true => print(format!("{}\n", Value::from(shown.to_vec())))?,
            false => print(show::certificates(shown, now_ms()))?,
        }
        let failed = shown.iter().find(|one| one["number"].as_u64() <= before);
        failed.map_or(Ok(()), |one| {
            let why = one["last_error"].as_str().unwrap_or_default();
            Err(complain(format_args!("acme: \"{}\" was not renewed: {why}", self.name)))
        })
    }
}

/// Whether what was asked for is done, or has failed.
fn is_over(one: &Value) -> bool {
    let is_ordering = matches!(one["order"].as_str(), Some("queued" | "under way"));
    !is_ordering && one["next_attempt_why"].as_str() != Some("request")
}

fn refused(reply: &ControlReply) -> Reported {
    match reply.body["error"]["text"].as_str() {
        Some(text) => complain(format_args!("acme: {}", text.replace("\"force\"", "--force"))),
        None => complain(format_args!("acme: the server answered {}", reply.status)),
    }
}

fn now_ms() -> u64 {
    net::clock::unix_ms()
}
