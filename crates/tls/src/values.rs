//! The values of TLS settings, towards clients and towards servers.

use std::ops::RangeInclusive;

use conf::{Directive, Error, Load, Result, Value, Word, add_words, suggest};
use wire::tls::{CipherList, GroupList, GroupListError, TlsGroup, TlsSuite};

/// A file with certificates or a key.
#[derive(Clone)]
pub struct CertificateFile {
    /// Its name as it was written, or `data:` and its contents.
    pub text: Box<[u8]>,
    pub from: Directive,
}

impl Value for CertificateFile {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        for scheme in ["engine:", "store:"] {
            if word.text.starts_with(scheme.as_bytes()) {
                let message = format!("\"{word}\": there are no OpenSSL engines and stores");
                return Err(from.error_at(word, message).help("use a file"));
            }
        }
        if word.text.contains(&b'$') && !word.text.starts_with(b"data:") {
            let message = format!("variables in \"{}\" are not supported yet", from.name);
            return Err(from.error_at(word, message));
        }
        Ok(Self { text: word.text.clone(), from: from.clone() })
    }
}

conf::words! {
    /// `ssl_ocsp`
    pub enum OcspMode {
        /// All certificates of the chain but the trusted one are checked.
        On = "on",
        /// None is checked.
        Off = "off",
        /// The client's own certificate is checked.
        Leaf = "leaf",
    }
}

conf::words! {
    /// `ssl_verify_client`
    pub enum VerifyClient {
        /// Clients need a certificate that is trusted.
        On = "on",
        /// Clients are not asked for one.
        Off = "off",
        /// Clients may have one, which must be trusted.
        Optional = "optional",
        /// Clients may have one of any authority.
        OptionalNoCa = "optional_no_ca",
    }
}

/// `ssl_verify_client`, with its line.
#[derive(Clone)]
pub struct VerifyClientLine {
    pub(super) mode: VerifyClient,
    pub(super) from: Directive,
}

impl Value for VerifyClientLine {
    const SYNTAX: &'static str = VerifyClient::SYNTAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Ok(Self { mode: VerifyClient::parse(from, load)?, from: from.clone() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsProtocols(u16);

const TLS12: u16 = 1 << 4;
const TLS13: u16 = 1 << 5;

/// The best one first: of names that are equally near to a misspelled one, that is suggested.
const PROTOCOLS: [(&str, u16); 6] = [
    ("TLSv1.3", TLS13),
    ("TLSv1.2", TLS12),
    ("TLSv1.1", 1 << 3),
    ("TLSv1", 1 << 2),
    ("SSLv3", 1 << 1),
    ("SSLv2", 1),
];

impl Value for TlsProtocols {
    const SYNTAX: &'static str = "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]";
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut protocols = Self(0);
        protocols.repeat(from, load)?;
        Ok(protocols)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &PROTOCOLS, load)?;
        let named = from.args.iter().filter_map(|word| Some((word, lacking(word)?)));
        let (words, names): (Vec<_>, Vec<_>) = named.unzip();
        let Some(word) = words.first() else { return Ok(()) };
        let (names, are, reason) = match &names[..] {
            [others @ .., last] if !others.is_empty() => (
                format!("{} and {last}", others.join(", ")),
                "are",
                "they are broken, and rustls does not have them",
            ),
            _ => (names.concat(), "is", "it is broken, and rustls does not have it"),
        };
        if !self.has_tls12() && !self.has_tls13() {
            let message =
                format!("no protocol of \"{}\" is supported: {names}: {reason}", from.name);
            return Err(from.error_at(word, message).help("use TLSv1.2 and TLSv1.3"));
        }
        load.warn(from.error_at(word, format!("{names} {are} ignored: {reason}")));
        Ok(())
    }
}

/// The name of a protocol that is not supported.
fn lacking(word: &Word) -> Option<&'static str> {
    let supported = TLS12 | TLS13;
    let known = PROTOCOLS.iter().filter(|(_, bit)| bit & supported == 0);
    known.map(|(name, _)| *name).find(|name| word.text.eq_ignore_ascii_case(name.as_bytes()))
}

impl TlsProtocols {
    pub fn has_tls12(self) -> bool {
        self.0 & TLS12 != 0
    }

    pub fn has_tls13(self) -> bool {
        self.0 & TLS13 != 0
    }

    /// Turns versions on or off.
    pub fn change(&mut self, tls12: Option<bool>, tls13: Option<bool>) {
        for (bit, choice) in [(TLS12, tls12), (TLS13, tls13)] {
            match choice {
                Some(true) => self.0 |= bit,
                Some(false) => self.0 &= !bit,
                None => {}
            }
        }
    }
}

/// Cipher suites of TLS 1.2, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsCiphers(pub Vec<TlsSuite>);

impl Value for TlsCiphers {
    const SYNTAX: &'static str = "CIPHERS";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Self::read(from.arg(0), from)
    }
}

impl TlsCiphers {
    pub(super) fn read(word: &Word, from: &Directive) -> Result<Self> {
        match CipherList::parse(&word.text) {
            Ok(list) => Ok(Self(list.suites)),
            Err(error) => {
                let message = format!("no cipher suite is left of \"{word}\": {error}");
                let mut names = word.text.split(|byte| b": ,".contains(byte));
                let meant = names.find_map(|name| suggest::nearest(name, CipherList::names()));
                Err(from.error_at(word, message).guess(meant))
            }
        }
    }
}

/// Groups to exchange keys with, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsGroups(pub Vec<TlsGroup>);

/// What `auto` stands for.
const AUTO: [TlsGroup; 4] =
    [TlsGroup::X25519MlKem768, TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1];

impl Value for TlsGroups {
    const SYNTAX: &'static str = "GROUPS";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Self::read(from.arg(0), from, load)
    }
}

impl TlsGroups {
    pub(super) fn read(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let invalid = |reason: &dyn std::fmt::Display| -> Error {
            from.error_at(word, format!("invalid groups \"{word}\": {reason}"))
        };
        let list = GroupList::parse(&word.text).map_err(|error| match error {
            GroupListError::Unknown(start, end) => {
                invalid(&error).meant(&word.text[start..end], GroupList::names())
            }
            GroupListError::NoneLeft => invalid(&error),
        });
        match list? {
            GroupList::Auto => Ok(Self(AUTO.to_vec())),
            GroupList::Groups { groups, lacking } => {
                for (start, end) in lacking {
                    let name = String::from_utf8_lossy(&word.text[start..end]);
                    let message =
                        format!("the group \"{name}\" is ignored: rustls does not have it");
                    load.warn(from.error_at(word, message));
                }
                Ok(Self(groups))
            }
        }
    }
}

/// `ssl_dhparam`, which changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoDhparam;

impl Value for NoDhparam {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let reason = "rustls has no cipher suites with finite-field Diffie-Hellman";
        load.warn(from.error(format!("\"{}\" is ignored: {reason}", from.name)));
        Ok(Self)
    }
}
