//! Certificates that clients refuse or will soon refuse: they expire, or none of their names is a
//! name of the server.
//!
//! Deliberately absent: whether a chain is complete and trusted, which depends on the client, and
//! certificates that are chosen by variables.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Directive, Files};
use wire::pem::PemSections;
use wire::x509::X509;

use super::scope::ConfigScope;

/// A problem with a certificate.
#[derive(Debug)]
pub struct CertificateProblem<'c> {
    /// The problem, with the certificate's file.
    pub what: String,
    /// Why it hurts.
    pub why: &'static str,
    pub fix: String,
    /// The `ssl_certificate` lines that name the file.
    pub lines: Vec<&'c Directive>,
}

/// Days before the end of a certificate from which on it is reported.
const DAYS_LEFT_MIN: i64 = 14;
const DAY_S: i64 = 24 * 60 * 60;

/// The certificate files that a configuration names; files that cannot be read are left out.
#[derive(Default)]
pub struct NamedCertificates {
    folder: PathBuf,
    by_name: HashMap<Box<[u8]>, Arc<[u8]>>,
}

impl NamedCertificates {
    /// Reads the files. Relative names are resolved in `folder`.
    pub fn read(root: &[Directive], folder: &Path, files: &mut dyn Files) -> Self {
        let mut by_name = HashMap::new();
        for used in CertificateUse::all(root) {
            let name = used.file();
            if by_name.contains_key(name) {
                continue;
            }
            let path = folder.join(conf::bytes_path(name));
            let text = match name.strip_prefix(b"data:") {
                Some(text) => Ok(text.into()),
                None => files.read(path.as_os_str().as_bytes()),
            };
            // The server itself reports why it cannot read a file.
            if let Ok(text) = text {
                by_name.insert(name.into(), text);
            }
        }
        Self { folder: folder.to_owned(), by_name }
    }

    /// The certificates of a file, as DER.
    fn chain(&self, name: &[u8]) -> Vec<Vec<u8>> {
        let text = self.by_name.get(name).map_or(&b""[..], |text| text);
        let sections = PemSections::new(text).filter_map(Result::ok);
        let certificates = sections
            .filter(|section| matches!(section.label, b"CERTIFICATE" | b"X509 CERTIFICATE"));
        certificates.map(|section| section.contents).collect()
    }

    fn shown(&self, name: &[u8]) -> String {
        match name.starts_with(b"data:") {
            true => "data:...".into(),
            false => self.folder.join(conf::bytes_path(name)).display().to_string(),
        }
    }
}

/// The problems with the certificates of a configuration; `now` is in seconds since 1970.
pub fn certificate_problems<'c>(
    root: &'c [Directive],
    texts: &NamedCertificates,
    now: i64,
) -> Vec<CertificateProblem<'c>> {
    let mut problems: Vec<CertificateProblem<'c>> = Vec::new();
    for used in CertificateUse::all(root) {
        let chain = texts.chain(used.file());
        let shown = texts.shown(used.file());
        let parsed: Vec<_> = chain.iter().filter_map(|der| X509::parse(der).ok()).collect();
        let validity = parsed.iter().enumerate().filter_map(|(at, certificate)| {
            let which = if at == 0 { String::new() } else { format!(" {} of", at + 1) };
            validity(&format!("certificate{which} \"{shown}\""), certificate, now)
        });
        let names = parsed.first().and_then(|first| names(&shown, first, &used.server));
        for problem in validity.chain(names) {
            match problems.iter_mut().find(|known| known.what == problem.what) {
                Some(known) if known.lines.iter().any(|line| std::ptr::eq(*line, used.line)) => {}
                Some(known) => known.lines.push(used.line),
                None => problems.push(CertificateProblem { lines: vec![used.line], ..problem }),
            }
        }
    }
    problems
}

/// An `ssl_certificate` line that applies to a server.
struct CertificateUse<'c> {
    line: &'c Directive,
    server: ConfigScope<'c>,
}

impl<'c> CertificateUse<'c> {
    /// The lines of every server with TLS.
    fn all(root: &'c [Directive]) -> impl Iterator<Item = Self> {
        let servers = ConfigScope::of(root).servers().into_iter();
        servers.filter(speaks_tls).flat_map(|server| {
            let lines = server.inherited("ssl_certificate").into_iter();
            let lines = lines.filter(|line| is_fixed(line));
            lines.map(|line| Self { line, server: server.clone() }).collect::<Vec<_>>()
        })
    }

    fn file(&self) -> &'c [u8] {
        &self.line.args[0].text
    }
}

fn speaks_tls(server: &ConfigScope<'_>) -> bool {
    let is_tls = |word: &conf::Word| matches!(&*word.text, b"ssl" | b"quic");
    let mut listens = server.own_all("listen");
    let rejects = server.word("ssl_reject_handshake").is_some_and(|word| word == "on");
    let has_tls = listens.any(|line| line.args.iter().any(is_tls));
    (has_tls || server.own("ssl_certificate").is_some()) && !rejects
}

/// Whether a line names one file, the same for every client.
fn is_fixed(line: &Directive) -> bool {
    match &line.args[..] {
        [file] => {
            let text = &file.text;
            !text.is_empty() && (!text.contains(&b'$') || text.starts_with(b"data:"))
        }
        _ => false,
    }
}

fn validity<'c>(name: &str, certificate: &X509<'_>, now: i64) -> Option<CertificateProblem<'c>> {
    let (start, end) = (certificate.not_before, certificate.not_after);
    let on = |time: wire::x509::CertificateTime| {
        let mut text = Vec::new();
        time.write(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let left = end.seconds().saturating_sub(now);
    let what = if left < 0 {
        format!("{name} expired {}, on {}", ago(-left / DAY_S), on(end))
    } else if start.seconds() > now {
        format!("{name} is not valid before {}", on(start))
    } else if left < DAYS_LEFT_MIN * DAY_S {
        format!("{name} expires {}, on {}", within(left / DAY_S), on(end))
    } else {
        return None;
    };
    let why = "clients refuse a certificate that is not valid";
    Some(CertificateProblem { what, why, fix: "renew the certificate".into(), lines: Vec::new() })
}

fn ago(days: i64) -> String {
    match days {
        0 => "today".into(),
        1 => "yesterday".into(),
        _ => format!("{days} days ago"),
    }
}

fn within(days: i64) -> String {
    match days {
        0 => "within a day".into(),
        1 => "in a day".into(),
        _ => format!("in {days} days"),
    }
}

fn names<'c>(
    shown: &str,
    certificate: &X509<'_>,
    server: &ConfigScope<'_>,
) -> Option<CertificateProblem<'c>> {
    let names: Vec<_> = server
        .own_all("server_name")
        .flat_map(|line| &line.args)
        .map(|word| &*word.text)
        .filter(|name| name.iter().any(u8::is_ascii_alphanumeric))
        .collect();
    let differs = |name: &&[u8]| fits(certificate, name) == Some(false);
    if names.is_empty() || !names.iter().all(differs) {
        return None;
    }
    let own: Vec<_> = certificate.host_names().collect();
    let of = if own.is_empty() { "of no host".to_owned() } else { format!("of {}", list(&own)) };
    let names = list(&names);
    Some(CertificateProblem {
        what: format!("certificate \"{shown}\", {of}, has no name of its server: {names}"),
        why: "clients refuse a certificate without the name that they connect to",
        fix: format!("a certificate for {names}"),
        lines: Vec::new(),
    })
}

/// Whether a certificate has a name of `server_name`; `None` if that depends on the client.
fn fits(certificate: &X509<'_>, name: &[u8]) -> Option<bool> {
    let is_address = std::str::from_utf8(name)
        .is_ok_and(|text| text.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok());
    if is_address || name.starts_with(b"~") || name.contains(&b'$') {
        return None;
    }
    let mut own = certificate.host_names();
    Some(match name {
        [b'*', domain @ ..] => own.any(|own| is_below(own, domain)),
        [b'.', host @ ..] => certificate.is_of_host(host) || own.any(|own| is_below(own, name)),
        [start @ .., b'*'] => {
            own.any(|own| own.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start)))
        }
        _ => certificate.is_of_host(name),
    })
}

/// Whether a name in a certificate, which may begin with `*`, ends with `domain`, which begins with
/// a dot.
fn is_below(own: &[u8], domain: &[u8]) -> bool {
    let end = own.len().checked_sub(domain.len()).and_then(|start| own.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(domain))
}

/// The most names in a message.
const LISTED_MAX: usize = 3;

fn list(names: &[&[u8]]) -> String {
    let shown = names.iter().take(LISTED_MAX).map(|name| String::from_utf8_lossy(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
