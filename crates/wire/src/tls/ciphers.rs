//! OpenSSL's language of cipher strings (`ssl_ciphers`), as `ciphers(1)` describes it.
//!
//! A string is a list of steps that add, remove or move suites. It is evaluated over the suites of
//! TLS 1.2 that exist here. Other names select nothing, as in an OpenSSL that was compiled without
//! them. The suites of TLS 1.3 are not part of the language.

use alloc::vec::Vec;
use core::fmt;

use super::TlsSuite;

/// The suites that a cipher string selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CipherList {
    /// Suites of TLS 1.2, the preferred one first. Never empty.
    pub suites: Vec<TlsSuite>,
    /// The level of `@SECLEVEL=`, 0 to 5. Suites with shorter keys are already removed.
    pub security_level: Option<u8>,
}

/// Why a cipher string selects nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherListError {
    /// Neither a name nor a command begins at this offset.
    Command(usize),
    /// None of the selected suites exists here.
    NoMatch,
}

impl CipherList {
    /// Evaluates a cipher string.
    pub fn parse(text: &[u8]) -> Result<Self, CipherListError> {
        let mut rules = Rules::new();
        let (prefix, rest) = expand_prefix(text);
        rules.run(prefix)?;
        rules.run(rest).map_err(|error| error.moved(text.len() - rest.len()))?;
        let bits_min = rules.security_level.map_or(0, |level| LEVEL_BITS[usize::from(level)]);
        let is_left = |suite: &TlsSuite| suite.strength_bits() >= bits_min;
        let suites: Vec<_> = rules.active.into_iter().filter(is_left).collect();
        if suites.is_empty() {
            return Err(CipherListError::NoMatch);
        }
        Ok(Self { suites, security_level: rules.security_level })
    }

    /// The names that select suites.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let suites = TlsSuite::TLS12.into_iter().map(TlsSuite::name);
        suites.chain(ALIASES.into_iter().map(|(name, _)| name))
    }
}

/// The suites of TLS 1.3 in a list of names separated by colons (`Ciphersuites` of
/// `ssl_conf_command`). Unknown names are skipped; an empty list turns TLS 1.3 off.
pub fn parse_tls13_suites(text: &[u8]) -> Vec<TlsSuite> {
    let mut suites = Vec::new();
    for name in text.split(|byte| *byte == b':').map(<[u8]>::trim_ascii) {
        let known = TlsSuite::TLS13.into_iter().find(|suite| suite.name().as_bytes() == name);
        suites.extend(known.filter(|suite| !suites.contains(suite)));
    }
    suites
}

impl CipherListError {
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Command(at) => Self::Command(at + by),
            Self::NoMatch => self,
        }
    }
}

impl fmt::Display for CipherListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(at) => write!(f, "invalid command at character {}", at + 1),
            Self::NoMatch => f.write_str(
                "no cipher match: of TLS 1.2 there is ECDHE with AES-GCM and CHACHA20 only",
            ),
        }
    }
}

/// The shortest keys at each security level.
const LEVEL_BITS: [u16; 6] = [0, 80, 112, 128, 192, 256];

/// Sets of suites: bit `n` is suite `n` of [`TlsSuite::TLS12`].
const ECDSA: u8 = 0b01_01_01;
const RSA: u8 = 0b10_10_10;
const AES256: u8 = 0b00_00_11;
const CHACHA20: u8 = 0b00_11_00;
const AES128: u8 = 0b11_00_00;
const ALL: u8 = ECDSA | RSA;

/// Names of sets. Sets without any existing suite are not listed: `MEDIUM`, `aNULL`, `kRSA`, `DHE`,
/// `SHA256` (CBC suites with that MAC; the AEAD suites have none) and many more.
const ALIASES: [(&str, u8); 17] = [
    ("ALL", ALL),
    ("HIGH", ALL),
    ("TLSv1.2", ALL),
    ("kECDHE", ALL),
    ("kEECDH", ALL),
    ("ECDHE", ALL),
    ("EECDH", ALL),
    ("ECDH", ALL),
    ("aECDSA", ECDSA),
    ("ECDSA", ECDSA),
    ("aRSA", RSA),
    ("AES", AES128 | AES256),
    ("AESGCM", AES128 | AES256),
    ("FIPS", AES128 | AES256),
    ("AES128", AES128),
    ("AES256", AES256),
    ("CHACHA20", CHACHA20),
];

/// Expands a name at the very beginning. Returns the expansion and the rest of the text.
fn expand_prefix(text: &[u8]) -> (&'static [u8], &[u8]) {
    const B128: &[u8] = b"ECDHE-ECDSA-AES128-GCM-SHA256";
    const B192: &[u8] = b"ECDHE-ECDSA-AES256-GCM-SHA384";
    const BOTH: &[u8] = b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";
    // Suite B ignores the rest of the string.
    for (name, suites) in
        [("SUITEB128ONLY", B128), ("SUITEB128C2", B192), ("SUITEB128", BOTH), ("SUITEB192", B192)]
    {
        if text.starts_with(name.as_bytes()) {
            return (suites, b"");
        }
    }
    match text.strip_prefix(b"DEFAULT") {
        Some(rest) => (b"ALL", rest),
        None => (b"", text),
    }
}

/// The state after the steps so far. As in OpenSSL, there is one list of all suites, of which some
/// are active.
struct Rules {
    /// The selected suites, in order.
    active: Vec<TlsSuite>,
    /// The other suites, in the order in which a step would add them.
    inactive: Vec<TlsSuite>,
    security_level: Option<u8>,
}

impl Rules {
    fn new() -> Self {
        Self { active: Vec::new(), inactive: TlsSuite::TLS12.to_vec(), security_level: None }
    }

    fn run(&mut self, text: &[u8]) -> Result<(), CipherListError> {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match byte {
                b':' | b',' | b';' | b' ' => at += 1,
                b'@' => at = self.command(text, at + 1)?,
                b'!' | b'-' | b'+' => at = self.step(*byte, text, at + 1)?,
                _ => at = self.step(b' ', text, at)?,
            }
        }
        Ok(())
    }

    /// Runs a word with the sign before it. Returns the end of the word.
    fn step(&mut self, action: u8, text: &[u8], at: usize) -> Result<usize, CipherListError> {
        let (set, end) = read_set(text, at)?;
        match action {
            b'!' => {
                self.active.retain(|suite| !contains(set, *suite));
                self.inactive.retain(|suite| !contains(set, *suite));
            }
            b'-' => {
                let mut removed: Vec<_> = take(&mut self.active, |suite| contains(set, suite));
                removed.append(&mut self.inactive);
                self.inactive = removed;
            }
            b'+' => self.move_last(|suite| contains(set, suite)),
            _ => {
                let mut added = take(&mut self.inactive, |suite| contains(set, suite));
                self.active.append(&mut added);
            }
        }
        Ok(end)
    }

    /// Runs `@STRENGTH` or `@SECLEVEL=n`. Returns its end.
    fn command(&mut self, text: &[u8], at: usize) -> Result<usize, CipherListError> {
        let end = word_end(text, at);
        let word = &text[at..end];
        if word == b"STRENGTH" {
            self.move_last(|suite| suite.strength_bits() == 128);
            return Ok(end);
        }
        match word.strip_prefix(b"SECLEVEL=") {
            Some([digit @ b'0'..=b'5']) => self.security_level = Some(digit - b'0'),
            _ => return Err(CipherListError::Command(at - 1)),
        }
        Ok(end)
    }

    fn move_last(&mut self, is_moved: impl Fn(TlsSuite) -> bool) {
        let mut moved = take(&mut self.active, is_moved);
        self.active.append(&mut moved);
    }
}

/// The suites common to all names joined by `+`, and the end of the names.
fn read_set(text: &[u8], mut at: usize) -> Result<(u8, usize), CipherListError> {
    let mut set = ALL;
    loop {
        let end = word_end(text, at);
        if end == at {
            return Err(CipherListError::Command(at));
        }
        set &= named(&text[at..end]);
        if text.get(end) != Some(&b'+') {
            return Ok((set, end));
        }
        at = end + 1;
    }
}

/// The suites of a name.
fn named(name: &[u8]) -> u8 {
    let is_name = |suite: &TlsSuite| {
        suite.name().as_bytes() == name || suite.standard_name().as_bytes() == name
    };
    if let Some(index) = TlsSuite::TLS12.iter().position(is_name) {
        return 1 << index;
    }
    ALIASES.iter().find(|(alias, _)| alias.as_bytes() == name).map_or(0, |(_, set)| *set)
}

fn word_end(text: &[u8], at: usize) -> usize {
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-.=_".contains(byte));
    text[at..].iter().position(is_end).map_or(text.len(), |length| at + length)
}

fn contains(set: u8, suite: TlsSuite) -> bool {
    TlsSuite::TLS12.iter().position(|other| *other == suite).is_some_and(|at| set & 1 << at != 0)
}

/// Takes some suites out of a list, in order.
fn take(list: &mut Vec<TlsSuite>, is_taken: impl Fn(TlsSuite) -> bool) -> Vec<TlsSuite> {
    let taken = list.iter().copied().filter(|suite| is_taken(*suite)).collect();
    list.retain(|suite| !is_taken(*suite));
    taken
}
