//! `syslog:server=...,facility=...,severity=...,tag=...,nohostname`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use conf::{Directive, Result, Word};

/// The destination of syslog messages, and their parameters.
#[derive(Debug)]
pub struct SyslogTarget {
    pub(super) address: SyslogAddress,
    /// `server` as messages name it: address and port.
    pub(super) name: Box<str>,
    pub(super) facility: u8,
    severity: u8,
    pub(super) tag: Box<[u8]>,
    pub(super) nohostname: bool,
}

#[derive(Debug)]
pub(super) enum SyslogAddress {
    Ip(SocketAddr),
    Unix(PathBuf),
}

/// RFC 3164, section 4.1.1, ordered by number; names as in nginx.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
const SEVERITIES: [&str; 8] =
    ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

const LOCAL7: u8 = 23;
const INFO: u8 = 6;
/// RFC 3164, section 4.1.3.
const TAG_MAX: usize = 32;
const PORT: u16 = 514;

/// The parameters read so far.
#[derive(Default)]
struct TargetArguments {
    server: Option<(SyslogAddress, Box<str>)>,
    facility: Option<u8>,
    severity: Option<u8>,
    tag: Option<Box<[u8]>>,
    nohostname: bool,
}

impl SyslogTarget {
    /// Parses the parameters of a word that begins with `syslog:`; `None` for any other word.
    pub fn parse(word: &Word, from: &Directive) -> Result<Option<Self>> {
        let Some(parameters) = word.text.strip_prefix(b"syslog:") else { return Ok(None) };
        let mut said = TargetArguments::default();
        for parameter in parameters.split(|byte| *byte == b',') {
            said.read(parameter).map_err(|message| from.error_at(word, message))?;
        }
        let (address, name) =
            said.server.ok_or_else(|| from.error_at(word, "no syslog server specified"))?;
        Ok(Some(Self {
            address,
            name,
            facility: said.facility.unwrap_or(LOCAL7),
            severity: said.severity.unwrap_or(INFO),
            tag: said.tag.unwrap_or_else(|| crate::system().name.as_bytes().into()),
            nohostname: said.nohostname,
        }))
    }

    /// The severity of messages without one of their own.
    pub fn severity(&self) -> u8 {
        self.severity
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

type Said1 = std::result::Result<(), String>;

impl TargetArguments {
    fn read(&mut self, parameter: &[u8]) -> Said1 {
        let text = String::from_utf8_lossy(parameter);
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        match name {
            "server" => once(&mut self.server, "server", || server(value)),
            "facility" => once(&mut self.facility, "facility", || {
                number(&FACILITIES, value)
                    .ok_or_else(|| format!("unknown syslog facility \"{value}\""))
            }),
            "severity" => once(&mut self.severity, "severity", || {
                number(&SEVERITIES, value)
                    .ok_or_else(|| format!("unknown syslog severity \"{value}\""))
            }),
            "tag" => once(&mut self.tag, "tag", || tag(value)),
            "nohostname" if text == "nohostname" => {
                self.nohostname = true;
                Ok(())
            }
            _ => Err(format!("unknown syslog parameter \"{text}\"")),
        }
    }
}

fn once<T>(
    slot: &mut Option<T>,
    name: &str,
    read: impl FnOnce() -> std::result::Result<T, String>,
) -> Said1 {
    if slot.is_some() {
        return Err(format!("duplicate syslog \"{name}\""));
    }
    *slot = Some(read()?);
    Ok(())
}

fn number(names: &[&str], value: &str) -> Option<u8> {
    names.iter().position(|name| *name == value).map(|at| at as u8)
}

fn tag(value: &str) -> std::result::Result<Box<[u8]>, String> {
    if value.len() > TAG_MAX {
        return Err(format!("syslog tag length exceeds {TAG_MAX}"));
    }
    // nginx also accepts the ASCII characters between digits and letters: `_`, which its message
    // names, and "`".
    if value.bytes().any(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_')) {
        return Err("syslog \"tag\" only allows alphanumeric characters and underscore".to_owned());
    }
    Ok(value.as_bytes().into())
}

/// `unix:/path`, `host`, `host:port`, `[::1]:port`. Names are resolved while the configuration is
/// loaded.
fn server(value: &str) -> std::result::Result<(SyslogAddress, Box<str>), String> {
    let invalid = |reason: &str| format!("{reason} in syslog server \"{value}\"");
    if let Some(path) = value.strip_prefix("unix:") {
        return match path {
            "" => Err(invalid("no path in the unix domain socket")),
            path => Ok((SyslogAddress::Unix(path.into()), value.into())),
        };
    }
    let (host, port) = host_and_port(value).map_err(invalid)?;
    let mut found = (host, port).to_socket_addrs().map_err(|_| invalid("host not found"))?;
    let address = found.next().ok_or_else(|| invalid("host not found"))?;
    Ok((SyslogAddress::Ip(address), address.to_string().into()))
}

fn host_and_port(value: &str) -> std::result::Result<(&str, u16), &'static str> {
    let (host, rest) = match value.strip_prefix('[') {
        Some(inside) => inside.split_once(']').ok_or("invalid host")?,
        None => value.split_at(value.find(':').unwrap_or(value.len())),
    };
    if host.is_empty() {
        return Err("no host");
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((host, PORT)),
        None => Err("invalid host"),
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => Err("invalid port"),
            Ok(port) => Ok((host, port)),
        },
    }
}
