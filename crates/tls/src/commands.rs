//! `*_ssl_conf_command`: settings under the names of OpenSSL's `SSL_CONF_cmd`.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value};
use net::tls::Credential;
use wire::tls::{TlsGroup, TlsSuite, parse_tls13_suites};

use super::files::{self, PasswordFile};
use super::values::{CertificateFile, TlsCiphers, TlsGroups, TlsProtocols};

#[derive(Clone)]
pub enum ConfCommand {
    /// `Ciphersuites`
    Tls13Suites(Vec<TlsSuite>),
    /// `CipherString`
    Ciphers(TlsCiphers),
    /// `Groups`, `Curves`
    Groups(TlsGroups),
    /// `Protocol`, `MinProtocol`, `MaxProtocol`: the versions that they turn on or off.
    Protocols {
        tls12: Option<bool>,
        tls13: Option<bool>,
    },
    /// `Options`: those that exist here.
    Options {
        /// `SessionTicket`
        tickets: Option<bool>,
        server_preference: Option<bool>,
        /// `IgnoreUnexpectedEOF`, of connections to backends
        ignores_cut: Option<bool>,
    },
    Certificate(CertificateFile),
    PrivateKey(CertificateFile),
    /// Any other, which has no effect.
    Ignored,
}

/// The settings of either side that commands change.
pub(super) struct TlsChoices {
    pub(super) protocols: TlsProtocols,
    pub(super) tls13_suites: Vec<TlsSuite>,
    pub(super) tls12_suites: Vec<TlsSuite>,
    pub(super) groups: Vec<TlsGroup>,
    /// Whether a server gives tickets, if a command says so.
    pub(super) tickets: Option<bool>,
    /// Whether the server's order of cipher suites counts, if a command says so.
    pub(super) server_preference: Option<bool>,
    /// Whether an end without close_notify is one like any other.
    pub(super) ignores_cut: bool,
    certificate: Option<CertificateFile>,
    key: Option<CertificateFile>,
}

/// Versions from the oldest to the newest.
const VERSIONS: [&[u8]; 5] = [b"SSLv3", b"TLSv1", b"TLSv1.1", b"TLSv1.2", b"TLSv1.3"];
const TLS12: usize = 3;
const TLS13: usize = 4;

impl Value for ConfCommand {
    const SYNTAX: &'static str = "NAME VALUE";
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (name, value) = (from.arg(0), from.arg(1));
        let file = || CertificateFile { text: value.text.clone(), from: from.clone() };
        let read = match &*name.text.to_ascii_lowercase() {
            b"ciphersuites" => Some(Self::Tls13Suites(parse_tls13_suites(&value.text))),
            b"cipherstring" => Some(Self::Ciphers(TlsCiphers::read(value, from)?)),
            b"groups" | b"curves" => Some(Self::Groups(TlsGroups::read(value, from, load)?)),
            b"protocol" => Self::protocol(&value.text),
            b"minprotocol" => Self::between(&value.text, |named, version| version >= named),
            b"maxprotocol" => Self::between(&value.text, |named, version| version <= named),
            b"options" => Some(Self::options(from, load)),
            b"certificate" => Some(Self::Certificate(file())),
            b"privatekey" => Some(Self::PrivateKey(file())),
            _ => {
                let reason = "it is a command of OpenSSL's, and rustls has nothing like it";
                let message = format!("\"{} {name}\" is ignored: {reason}", from.name);
                load.warn(from.error_at(name, message));
                Some(Self::Ignored)
            }
        };
        let failed = format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed");
        read.ok_or_else(|| from.error_at(value, failed))
    }
}

impl ConfCommand {
    /// A list such as `-SessionTicket,ServerPreference`.
    fn options(from: &Directive, load: &mut Load<'_>) -> Self {
        let (mut tickets, mut server_preference, mut ignores_cut) = (None, None, None);
        let is_of_backends = *from.name.text != *b"ssl_conf_command";
        let value = from.arg(1);
        for item in value.text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let (is_on, name) = switch(item);
            match &*name.to_ascii_lowercase() {
                b"sessionticket" => tickets = Some(is_on),
                b"serverpreference" => server_preference = Some(is_on),
                b"ignoreunexpectedeof" if is_of_backends => ignores_cut = Some(is_on),
                // Nobody renegotiates here.
                b"norenegotiation" if is_on => {}
                _ => {
                    let name = String::from_utf8_lossy(item);
                    let reason = "it is an option of OpenSSL's, and rustls has nothing like it";
                    let message = format!("\"{} Options {name}\" is ignored: {reason}", from.name);
                    load.warn(from.error_at(value, message));
                }
            }
        }
        Self::Options { tickets, server_preference, ignores_cut }
    }

    /// A list such as `-ALL,TLSv1.2`; `None`: a name is unknown.
    fn protocol(text: &[u8]) -> Option<Self> {
        let (mut tls12, mut tls13) = (None, None);
        for item in text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let (is_on, name) = switch(item);
            let is_all = name.eq_ignore_ascii_case(b"ALL");
            let version = version(name);
            if !is_all && version.is_none() && !name.eq_ignore_ascii_case(b"SSLv2") {
                return None;
            }
            if is_all || version == Some(TLS12) {
                tls12 = Some(is_on);
            }
            if is_all || version == Some(TLS13) {
                tls13 = Some(is_on);
            }
        }
        Some(Self::Protocols { tls12, tls13 })
    }

    /// Turns off the versions on one side of a version.
    fn between(text: &[u8], stays: impl Fn(usize, usize) -> bool) -> Option<Self> {
        if text.eq_ignore_ascii_case(b"None") {
            return Some(Self::Protocols { tls12: None, tls13: None });
        }
        let named = version(text)?;
        let off = |version| (!stays(named, version)).then_some(false);
        Some(Self::Protocols { tls12: off(TLS12), tls13: off(TLS13) })
    }
}

/// Whether an item of a list turns something on, and its name.
fn switch(item: &[u8]) -> (bool, &[u8]) {
    match item {
        [b'-', name @ ..] => (false, name),
        [b'+', name @ ..] | name => (true, name),
    }
}

fn version(name: &[u8]) -> Option<usize> {
    VERSIONS.iter().position(|version| version.eq_ignore_ascii_case(name))
}

impl TlsChoices {
    /// The choices of the directives, changed by the commands.
    pub(super) fn new(
        protocols: TlsProtocols,
        ciphers: &TlsCiphers,
        groups: &[TlsGroup],
        commands: &[ConfCommand],
    ) -> Self {
        let mut choices = Self {
            protocols,
            tls13_suites: TlsSuite::TLS13.to_vec(),
            tls12_suites: ciphers.0.clone(),
            groups: groups.to_vec(),
            tickets: None,
            server_preference: None,
            ignores_cut: false,
            certificate: None,
            key: None,
        };
        commands.iter().for_each(|command| choices.apply(command));
        choices
    }

    fn apply(&mut self, command: &ConfCommand) {
        match command {
            ConfCommand::Tls13Suites(suites) => self.tls13_suites.clone_from(suites),
            ConfCommand::Ciphers(list) => self.tls12_suites.clone_from(&list.0),
            ConfCommand::Groups(list) => self.groups.clone_from(&list.0),
            ConfCommand::Protocols { tls12, tls13 } => {
                self.protocols.change(*tls12, *tls13);
            }
            ConfCommand::Options { tickets, server_preference, ignores_cut } => {
                self.ignores_cut = ignores_cut.unwrap_or(self.ignores_cut);
                self.tickets = tickets.or(self.tickets);
                self.server_preference = server_preference.or(self.server_preference);
            }
            ConfCommand::Certificate(file) => self.certificate = Some(file.clone()),
            ConfCommand::PrivateKey(file) => self.key = Some(file.clone()),
            ConfCommand::Ignored => {}
        }
    }

    /// The suites of both versions, best first.
    pub(super) fn suites(&self) -> Vec<TlsSuite> {
        [&self.tls13_suites[..], &self.tls12_suites].concat()
    }

    /// The certificate of the commands. Without `PrivateKey`, its file has the key as well.
    pub(super) fn credential(
        &self,
        passwords: Option<&PasswordFile>,
        load: &mut Load<'_>,
    ) -> Result<Option<Credential>> {
        let Some(certificate) = &self.certificate else { return Ok(None) };
        let key = self.key.as_ref().unwrap_or(certificate);
        files::credential(certificate, key, passwords, load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(command: Option<ConfCommand>) -> Option<(Option<bool>, Option<bool>)> {
        match command? {
            ConfCommand::Protocols { tls12, tls13 } => Some((tls12, tls13)),
            _ => None,
        }
    }

    #[test]
    fn protocols_are_turned_on_and_off() {
        let protocol = |text: &str| versions(ConfCommand::protocol(text.as_bytes()));
        assert_eq!(protocol("-ALL,TLSv1.2"), Some((Some(true), Some(false))));
        assert_eq!(protocol("-TLSv1.3"), Some((None, Some(false))));
        assert_eq!(protocol("ALL, -tlsv1.2,-SSLv2"), Some((Some(false), Some(true))));
        assert_eq!(protocol("TLSv1.4"), None);
    }

    #[test]
    fn protocols_lie_between_versions() {
        let least = |text: &str| {
            versions(ConfCommand::between(text.as_bytes(), |named, version| version >= named))
        };
        assert_eq!(least("TLSv1.3"), Some((Some(false), None)));
        assert_eq!(least("TLSv1.1"), Some((None, None)));
        assert_eq!(least("None"), Some((None, None)));
        assert_eq!(least("1.3"), None);
    }
}
