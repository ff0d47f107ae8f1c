//! The address of a store: `valkey://[user:password@]host:port[/db][?parameter=value&...]`, with
//! TLS `valkeys://`.
//!
//! The text may have a password, so neither errors nor pages show it: [`StoreAddress::shown`] is
//! what they show.

use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Word, units};
use net::Address;
use upstream::address::{self, Endpoint};

use super::tls::{StoreTls, StoreTlsParameters};

/// The schemes, and whether they mean TLS.
const SCHEMES: [(&[u8], bool); 4] =
    [(b"valkey://", false), (b"redis://", false), (b"valkeys://", true), (b"rediss://", true)];
const PORT: u16 = 6379;
const INTERVAL_MS: u64 = 100;
const INTERVALS_MS: std::ops::RangeInclusive<u64> = 10..=1000;
const TIMEOUT_MS: u64 = 1000;
const TIMEOUTS_MS: std::ops::RangeInclusive<u64> = 10..=60_000;
const PREFIX: &[u8] = b"weir:";
const PREFIX_BYTES_MAX: usize = 64;
/// The most nodes that share a limit.
pub(super) const NODES_MAX: u32 = 1000;
const DATABASE_MAX: u64 = 65_535;
/// Bytes of a user's name or a password.
const SECRET_BYTES_MAX: usize = 1024;

/// A store, and how it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    pub(super) place: Endpoint,
    /// `None`: connections are plain.
    pub(super) tls: Option<StoreTls>,
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) database: u64,
    pub(super) interval_ms: u64,
    /// The time to connect, and the time for the answer to a pipeline.
    pub(super) timeout_ms: u64,
    pub(super) prefix: Arc<[u8]>,
    /// The number of nodes until the store has told it.
    pub(super) nodes: u32,
}

impl StoreAddress {
    /// Reads an address: a word of the line `from`, without what comes before it.
    pub fn read(text: &[u8], word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = &from.name;
        // Without the word, which may have a password.
        let refuse = |reason: &str| {
            from.error_at(word, format!("{reason} in the address of the store of \"{name}\""))
        };
        let (text, parameters) = cut(text, b'?');
        let (mut store, is_secure) = Self::parse(text).map_err(refuse)?;
        if load.checking {
            store.warn(is_secure, word, from, load);
        }
        let mut tls = StoreTlsParameters::default();
        for parameter in parameters.into_iter().flat_map(|all| all.split(|byte| *byte == b'&')) {
            let (name, value) = cut(parameter, b'=');
            let value = value.unwrap_or_default();
            if name == b"password_file" && !value.is_empty() {
                store.read_password(value, word, from, load)?;
            } else {
                let set = tls.set(name, value).unwrap_or_else(|| store.set(name, value));
                set.map_err(|reason| refuse(&reason))?;
            }
        }
        if is_secure {
            store.tls = Some(tls.read(&store.place, word, from, load)?);
        } else if tls.are_there() {
            return Err(refuse("parameters of TLS without \"valkeys://\""));
        }
        Ok(store)
    }

    /// Host, port and database: without a password.
    pub fn shown(&self) -> String {
        format!("{}/{}", self.place, self.database)
    }

    /// The address without its parameters, and whether it asks for TLS.
    fn parse(text: &[u8]) -> std::result::Result<(Self, bool), &'static str> {
        let lower = text.to_ascii_lowercase();
        let scheme = SCHEMES.iter().find(|(scheme, _)| lower.starts_with(scheme));
        let (scheme, is_secure) = scheme.ok_or("no \"valkey://\" or \"valkeys://\"")?;
        let rest = &text[scheme.len()..];
        let (secret, rest) = match rest.iter().rposition(|byte| *byte == b'@') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (&b""[..], rest),
        };
        let (user, password) = match cut(secret, b':') {
            (user, Some(password)) => (unescaped(user)?, unescaped(password)?),
            (b"", None) => (Vec::new(), Vec::new()),
            (_, None) => return Err("a user without a password is"),
        };
        let (place, database) = place(rest)?;
        let some = |text: Vec<u8>| (!text.is_empty()).then_some(text);
        let store = Self {
            place,
            tls: None,
            user: some(user),
            password: some(password),
            database,
            interval_ms: INTERVAL_MS,
            timeout_ms: TIMEOUT_MS,
            prefix: PREFIX.into(),
            nodes: 1,
        };
        Ok((store, *is_secure))
    }

    /// Warns of secrets that others may see. `self` is the address without its parameters.
    fn warn(&self, is_secure: bool, word: &Word, from: &Directive, load: &mut Load<'_>) {
        if self.password.is_some() {
            let error = from.error_at(word, "the store's password is in the configuration");
            load.warn(error.help("name a file that has it: \"password_file=\""));
        }
        if !is_secure && is_public(&self.place) {
            let place = &self.place;
            let message = format!("connections to the store {place} are not encrypted");
            let error = from.error_at(word, message);
            load.warn(error.help("use \"valkeys://\", or a private network"));
        }
    }

    fn set(&mut self, name: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        let shown = String::from_utf8_lossy(name);
        let invalid = || format!("invalid value of \"{shown}\"");
        let time = |range: std::ops::RangeInclusive<u64>| {
            let time = units::milliseconds(value).filter(|time| range.contains(time));
            time.ok_or_else(invalid)
        };
        match name {
            b"interval" => self.interval_ms = time(INTERVALS_MS)?,
            b"timeout" => self.timeout_ms = time(TIMEOUTS_MS)?,
            b"nodes" => {
                let nodes = units::number(value).and_then(|nodes| u32::try_from(nodes).ok());
                let nodes = nodes.filter(|nodes| (1..=NODES_MAX).contains(nodes));
                self.nodes = nodes.ok_or_else(invalid)?;
            }
            b"prefix" if (1..=PREFIX_BYTES_MAX).contains(&value.len()) => {
                self.prefix = value.into();
            }
            b"prefix" | b"password_file" => return Err(invalid()),
            _ => return Err(format!("unknown parameter \"{shown}\"")),
        }
        Ok(())
    }

    /// The password is the first line of the file.
    fn read_password(
        &mut self,
        path: &[u8],
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<()> {
        if self.password.is_some() {
            return Err(from.error_at(word, "a store has one password: of its address or its file"));
        }
        let path = load.conf_path(path).into_os_string().into_vec();
        let read = load.files.read(&path);
        let read = read.map_err(|error| from.error_at(word, error.describe(&path)));
        let Some(text) = load.of_this_machine(read)? else { return Ok(()) };
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.len() > SECRET_BYTES_MAX {
            return Err(no_password(&path, word, from));
        }
        self.password = Some(line.to_vec());
        Ok(())
    }
}

fn no_password(path: &[u8], word: &Word, from: &Directive) -> Error {
    let path = String::from_utf8_lossy(path);
    from.error_at(word, format!("no password in the first line of \"{path}\""))
}

/// The place and the database. A Unix socket has its path instead of host, port and database.
fn place(text: &[u8]) -> std::result::Result<(Endpoint, u64), &'static str> {
    if text.starts_with(b"unix:") {
        return Ok((address::parse(text, 0)?.place, 0));
    }
    let (host, database) = cut(text, b'/');
    let database = match database {
        None | Some(b"") => 0,
        Some(digits) => {
            let number = units::number(digits).filter(|number| *number <= DATABASE_MAX);
            number.ok_or("invalid number of a database")?
        }
    };
    Ok((address::parse(host, PORT)?.place, database))
}

/// Whether it is an address outside this machine and private networks. A name may be either.
fn is_public(place: &Endpoint) -> bool {
    let Endpoint::At(Address::Ip(address)) = place else { return false };
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => {
            // 100.64.0.0/10 (RFC 6598).
            let is_shared = matches!(ip.octets(), [100, 64..=127, ..]);
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared)
        }
        IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()),
    }
}

/// The text before the first such byte, and the text after it.
fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(at, text) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    }
}

/// The text of a URL's part, in which `%40` is `@`.
fn unescaped(text: &[u8]) -> std::result::Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.ok_or("an invalid \"%\"")?);
        rest = &rest[2..];
    }
    if out.len() > SECRET_BYTES_MAX { Err("too long a password") } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> std::result::Result<String, &'static str> {
        let (store, _) = StoreAddress::parse(text.as_bytes())?;
        let text = |part: &Option<Vec<u8>>| {
            part.as_deref().map_or("-".into(), |part| String::from_utf8_lossy(part).into_owned())
        };
        Ok(format!("{} {} {}", store.shown(), text(&store.user), text(&store.password)))
    }

    #[test]
    fn addresses_of_stores_are_read() {
        for (text, expected) in [
            ("valkey://127.0.0.1:6380", "127.0.0.1:6380/0 - -"),
            ("redis://store.test", "store.test:6379/0 - -"),
            ("rediss://store.test", "store.test:6379/0 - -"),
            ("REDIS://[::1]:7000/3", "[::1]:7000/3 - -"),
            ("valkey://:secret@a:1/", "a:1/0 - secret"),
            ("valkey://user:p%40:s@a:1/2", "a:1/2 user p@:s"),
            ("valkey://unix:/run/valkey.sock", "unix:/run/valkey.sock/0 - -"),
            ("valkey://:secret@unix:/run/valkey.sock", "unix:/run/valkey.sock/0 - secret"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_told_apart() {
        for (text, expected) in [
            ("127.0.0.1", false),
            ("10.0.0.9", false),
            ("192.168.1.1", false),
            ("169.254.1.1", false),
            ("100.100.1.1", false),
            ("203.0.113.5", true),
            ("172.32.0.1", true),
            ("[::1]", false),
            ("[fd00::1]", false),
            ("[::ffff:10.0.0.9]", false),
            ("[2001:db8::1]", true),
            ("store.test", false),
            ("unix:/run/valkey.sock", false),
        ] {
            let store = StoreAddress::parse(format!("valkey://{text}").as_bytes()).unwrap().0;
            assert_eq!(is_public(&store.place), expected, "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for (text, expected) in [
            ("127.0.0.1:6379", "no \"valkey://\" or \"valkeys://\""),
            ("http://a", "no \"valkey://\" or \"valkeys://\""),
            ("valkey://", "no host"),
            ("valkey://a:0", "invalid port"),
            ("valkey://a/x", "invalid number of a database"),
            ("valkey://a/65536", "invalid number of a database"),
            ("valkey://user@a", "a user without a password is"),
            ("valkey://:%4@a", "an invalid \"%\""),
            ("valkey://:%+1@a", "an invalid \"%\""),
        ] {
            assert_eq!(parsed(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn parameters_have_bounds() {
        let mut store = StoreAddress::parse(b"valkey://a").unwrap().0;
        for (name, value) in [
            ("interval", "10ms"),
            ("interval", "1s"),
            ("timeout", "200ms"),
            ("nodes", "3"),
            ("prefix", "shop:"),
        ] {
            assert_eq!(store.set(name.as_bytes(), value.as_bytes()), Ok(()), "{name}={value}");
        }
        assert_eq!((store.interval_ms, store.timeout_ms, store.nodes), (1000, 200, 3));
        assert_eq!(&*store.prefix, b"shop:");
        for (name, value) in [
            ("interval", "9ms"),
            ("interval", "2s"),
            ("timeout", "0"),
            ("nodes", "0"),
            ("nodes", "1001"),
            ("prefix", ""),
            ("password_file", ""),
            ("database", "1"),
        ] {
            assert!(store.set(name.as_bytes(), value.as_bytes()).is_err(), "{name}={value}");
        }
    }
}
