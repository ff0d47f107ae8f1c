//! `dns_update`, `dns_hook`, `dns_check` and `dns_timeout` in `acme_issuer`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use conf::{Directive, Load, Result, Word, units};
use net::Address;
use upstream::address::{self, Endpoint};
use wire::dns::{DomainName, KeyFileError, TsigKey};

use crate::dns01::{DNS_PORT, DnsCheck, DnsHook, DnsSettings, DnsWriter, DnsZone};
use crate::line_words::{invalid, read_file};

const TTL_S: u32 = 60;
const TTL_S_MAX: u64 = 86_400;
const TIMEOUT_MS: u64 = 120_000;
const TIMEOUT_MS_MAX: u64 = 60 * 60 * 1000;

/// The lines as far as they were read.
#[derive(Default)]
pub(crate) struct DnsLines {
    /// The first line, for messages.
    first: Option<Directive>,
    zones: Vec<DnsZone>,
    hook: Option<DnsHook>,
    check: Option<DnsCheck>,
    timeout_ms: Option<u64>,
}

impl DnsLines {
    /// `dns_update SERVER... zone=NAME key=FILE|data:KEY [ttl=TIME]`
    pub(crate) fn add_update(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        let (mut zone, mut key, mut ttl_s) = (None, None, TTL_S);
        let mut servers = Vec::new();
        for word in &line.args {
            if let Some(name) = word.text.strip_prefix(b"zone=") {
                let name = DomainName::from_text(name);
                zone = Some(name.map_err(|_| refuse(line, word, "invalid name of a zone"))?);
            } else if word.text.starts_with(b"key=") {
                key = Some(key_of(line, word, load)?);
            } else if let Some(ttl) = word.text.strip_prefix(b"ttl=") {
                let ttl = units::seconds(ttl).filter(|ttl| *ttl <= TTL_S_MAX);
                let ttl = ttl.and_then(|ttl| u32::try_from(ttl).ok());
                ttl_s = ttl.ok_or_else(|| refuse(line, word, "invalid TTL"))?;
            } else {
                servers.push(server(line, word)?);
            }
        }
        let missing = |what: &str| line.error(format!("\"dns_update\" must have {what}"));
        if servers.is_empty() {
            return Err(missing("a name server"));
        }
        let name = zone.ok_or_else(|| missing("\"zone\" parameter"))?;
        if self.zones.iter().any(|known| known.name == name) {
            return Err(line.error(format!("duplicate zone \"{name}\" in \"dns_update\"")));
        }
        // On the machine where a configuration is only checked, the file may be missing.
        if let Some(key) = key.ok_or_else(|| missing("\"key\" parameter"))? {
            self.zones.push(DnsZone { servers, name, key, ttl_s });
        }
        self.note(line);
        Ok(())
    }

    /// `dns_hook PROGRAM [ARGUMENT...]`
    pub(crate) fn add_hook(&mut self, line: &Directive) -> Result<()> {
        let mut words = line.args.iter().map(|word| OsString::from_vec(word.text.to_vec()));
        let program = words.next().unwrap_or_default();
        if !line.arg(0).text.starts_with(b"/") {
            let message = format!("\"dns_hook\" needs an absolute path, not \"{}\"", line.arg(0));
            return Err(line.error_at(line.arg(0), message));
        }
        self.hook = Some(DnsHook { program, arguments: words.collect() });
        self.note(line);
        Ok(())
    }

    /// `dns_check authoritative | off | SERVER...`
    pub(crate) fn add_check(&mut self, line: &Directive) -> Result<()> {
        let servers = || line.args.iter().map(|word| server(line, word)).collect::<Result<_>>();
        self.check = Some(match (&*line.arg(0).text, line.args.len()) {
            (b"authoritative", 1) => DnsCheck::Authoritative,
            (b"off", 1) => DnsCheck::Off,
            _ => DnsCheck::Servers(servers()?),
        });
        self.note(line);
        Ok(())
    }

    /// `dns_timeout TIME`
    pub(crate) fn add_timeout(&mut self, line: &Directive) -> Result<()> {
        let time = units::milliseconds(&line.arg(0).text);
        let time = time.filter(|time| (1000..=TIMEOUT_MS_MAX).contains(time));
        self.timeout_ms = Some(time.ok_or_else(|| invalid(line, line.arg(0)))?);
        self.note(line);
        Ok(())
    }

    fn note(&mut self, line: &Directive) {
        self.first.get_or_insert_with(|| line.clone());
    }

    /// The settings of an issuer. `is_wanted`: its challenge is dns-01.
    pub(crate) fn build(
        &mut self,
        is_wanted: bool,
        issuer: &Directive,
        load: &Load<'_>,
    ) -> Result<Option<DnsSettings>> {
        let lines = std::mem::take(self);
        match (lines.first, is_wanted) {
            (Some(first), false) => {
                let message =
                    format!("\"{}\" has no effect without \"challenge dns-01\"", first.name);
                return Err(first.error(message));
            }
            (_, false) => return Ok(None),
            (_, true) => {}
        }
        let writer = match (lines.hook, lines.zones) {
            (Some(_), zones) if !zones.is_empty() => {
                let message = "\"dns_hook\" and \"dns_update\" exclude each other";
                return Err(issuer.error(message));
            }
            (Some(hook), _) => DnsWriter::Hook(hook),
            (None, zones) if zones.is_empty() && !load.checking => {
                let message = "\"challenge dns-01\" needs \"dns_update\" or \"dns_hook\"";
                return Err(issuer.error(message));
            }
            (None, zones) => DnsWriter::Updates(zones),
        };
        let check = lines.check.unwrap_or(DnsCheck::Authoritative);
        let timeout_ms = lines.timeout_ms.unwrap_or(TIMEOUT_MS);
        Ok(Some(DnsSettings { writer, check, timeout_ms }))
    }
}

fn refuse(line: &Directive, word: &Word, why: &str) -> conf::Error {
    line.error_at(word, format!("{why} in \"{word}\""))
}

/// `ADDRESS[:PORT]` or `HOST[:PORT]`
fn server(line: &Directive, word: &Word) -> Result<Endpoint> {
    let place = address::parse(&word.text, DNS_PORT).map_err(|why| refuse(line, word, why))?.place;
    match place {
        Endpoint::At(Address::Unix(_)) => Err(refuse(line, word, "unix domain socket")),
        Endpoint::Named { .. } if word.text.contains(&b'=') => {
            Err(refuse(line, word, "unknown parameter"))
        }
        place => Ok(place),
    }
}

/// The key; `None`: its file is not on this machine, where the configuration is only checked.
fn key_of(line: &Directive, word: &Word, load: &mut Load<'_>) -> Result<Option<TsigKey>> {
    let value = &word.text[b"key=".len()..];
    if value.is_empty() {
        return Err(refuse(line, word, "empty key"));
    }
    let broken = |error: KeyFileError| line.error_at(word, format!("invalid key: {error}"));
    if let Some(text) = value.strip_prefix(b"data:") {
        return TsigKey::parse_line(text).map(Some).map_err(broken);
    }
    let file = Word { text: value.into(), ..word.clone() };
    let Some(text) = read_file(line, &file, load)? else { return Ok(None) };
    TsigKey::parse(&text).map(Some).map_err(broken)
}
