//! Session tickets: sessions stored by clients, encrypted with keys that only servers have.
//!
//! ```text
//! name of the key (16) | nonce (12) | AES-256-GCM of: time (8), session | tag (16)
//! ```
//!
//! Keys are derived for each virtual server, whose identity is authenticated: another server does
//! not accept its tickets. Keys that are not configured are derived from a secret that is replaced
//! by its own hash every hour. A process that has the secret of an hour can derive all later keys,
//! but no earlier ones.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, rand};
use rustls::server::ProducesTickets;

/// Lifetime of a secret in seconds.
const ROTATION_S: u64 = 3600;
/// Maximum number of secrets kept for valid tickets: the maximum lifetime of a ticket.
const KEPT_MAX: usize = 7 * 24 + 1;
/// Maximum number of hours that a secret may be behind: ten years.
const STEPS_MAX: u64 = 10 * 366 * 24;

static OF_PROCESS: OnceLock<Arc<RotatingTicketKeys>> = OnceLock::new();

/// Maximum number of bytes of a session in a ticket. Client certificates make sessions long; the
/// length of a ticket has two bytes, and the client sends the whole ticket in its next first
/// message.
const SESSION_MAX: usize = 12 * 1024;

const NAME: usize = 16;
const TIME: usize = 8;
const SECRET: usize = 32;

/// Identifies a virtual server.
pub(super) type ServerIdentity = [u8; 32];

/// The secret of an hour.
#[derive(Clone, PartialEq, Eq)]
struct TicketSecret {
    hour: u64,
    bytes: [u8; SECRET],
}

/// Secrets that are replaced every hour, for all workers of a process.
pub struct RotatingTicketKeys {
    /// Secrets, the newest one first.
    secrets: Mutex<VecDeque<TicketSecret>>,
    /// The file in which other processes find the newest secret.
    shared: Option<File>,
    /// Maximum lifetime of tickets in seconds.
    kept_s: AtomicU64,
}

/// A key from a file.
#[derive(Clone)]
pub struct TicketKey {
    name: [u8; NAME],
    secret: Box<[u8]>,
}

/// The source of a server's keys.
#[derive(Clone)]
pub enum TicketKeys {
    /// Secrets that are replaced every hour.
    Rotating(Arc<RotatingTicketKeys>),
    /// Keys from files: the first one encrypts, the others only decrypt.
    Fixed(Vec<TicketKey>),
}

/// Seals and opens the tickets of a server.
pub(super) struct ServerTickets {
    pub(super) keys: TicketKeys,
    pub(super) identity: ServerIdentity,
    pub(super) lifetime_s: u32,
}

impl TicketSecret {
    fn random() -> Self {
        let mut bytes = [0; SECRET];
        // From the system: a master needs no generator of its own, which takes 40 ms to seed.
        crate::system::fill_random(&mut bytes);
        Self { hour: now_s() / ROTATION_S, bytes }
    }

    fn to_bytes(&self) -> Vec<u8> {
        [&self.hour.to_le_bytes()[..], &self.bytes].concat()
    }

    /// The inverse of [`to_bytes`](Self::to_bytes); `None`: the bytes are invalid.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (hour, bytes) = bytes.split_first_chunk()?;
        Some(Self { hour: u64::from_le_bytes(*hour), bytes: bytes.try_into().ok()? })
    }

    fn next(&self) -> Self {
        Self { hour: self.hour + 1, bytes: derive(&self.bytes, b"weir next hour") }
    }
}

impl RotatingTicketKeys {
    /// The keys of this process.
    pub fn of_process() -> &'static Arc<Self> {
        OF_PROCESS.get_or_init(|| Arc::new(Self::new(TicketSecret::random(), None)))
    }

    /// A file in memory with a new secret, for several processes.
    pub fn create_shared() -> io::Result<OwnedFd> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = File::from(rustix::fs::memfd_create("weir-tickets", flags)?);
        file.write_all_at(&TicketSecret::random().to_bytes(), 0)?;
        Ok(file.into())
    }

    /// Makes this process use the secret in the file. Fails if the file is invalid, or the process
    /// already has a secret.
    pub fn join_shared(file: OwnedFd) -> io::Result<()> {
        let file = File::from(file);
        let mut bytes = [0; TIME + SECRET];
        file.read_exact_at(&mut bytes, 0)?;
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let secret = TicketSecret::from_bytes(&bytes).ok_or_else(invalid)?;
        let keys = Arc::new(Self::new(secret, Some(file)));
        OF_PROCESS.set(keys).map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    fn new(secret: TicketSecret, shared: Option<File>) -> Self {
        let secrets = Mutex::new(VecDeque::from([secret]));
        Self { secrets, shared, kept_s: AtomicU64::new(0) }
    }

    /// Keeps keys for tickets of this lifetime.
    pub fn keep_for(&self, seconds: u64) {
        self.kept_s.fetch_max(seconds, Ordering::Relaxed);
    }

    fn with_secrets<T>(&self, now_s: u64, ask: impl FnOnce(&VecDeque<TicketSecret>) -> T) -> T {
        let mut secrets = self.secrets.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let hour = now_s / ROTATION_S;
        // A clock that goes back changes nothing.
        let behind = hour.saturating_sub(secrets[0].hour).min(STEPS_MAX);
        for _ in 0..behind {
            let next = secrets[0].next();
            secrets.push_front(next);
            let kept = self.kept_s.load(Ordering::Relaxed).div_ceil(ROTATION_S) as usize + 1;
            secrets.truncate(kept.min(KEPT_MAX));
        }
        if let Some(shared) = self.shared.as_ref().filter(|_| behind > 0) {
            // All processes write the same bytes at the same hour. If a write fails, the file keeps
            // an older secret, from which the newer ones are derived.
            let _ = shared.write_all_at(&secrets[0].to_bytes(), 0);
        }
        ask(&secrets)
    }
}

impl TicketKey {
    /// Reads a file of `ssl_session_ticket_key`: 48 or 80 random bytes. `None`: it has another
    /// length.
    pub fn read(text: &[u8]) -> Option<Self> {
        if !matches!(text.len(), 48 | 80) {
            return None;
        }
        let (name, secret) = text.split_first_chunk()?;
        Some(Self { name: *name, secret: secret.into() })
    }
}

/// A key's name, and the secret for its derivation.
struct KeyMaterial<'k> {
    name: [u8; NAME],
    secret: &'k [u8],
}

impl<'k> KeyMaterial<'k> {
    fn of(secret: &'k TicketSecret) -> Self {
        let [name @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            derive(&secret.bytes, b"weir ticket key name");
        Self { name, secret: &secret.bytes }
    }

    fn cipher(&self, identity: &ServerIdentity) -> Option<LessSafeKey> {
        let key = derive(self.secret, &[&b"weir ticket key"[..], identity].concat());
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?))
    }
}

impl TicketKeys {
    fn first<T>(&self, now_s: u64, take: impl FnOnce(KeyMaterial<'_>) -> T) -> Option<T> {
        match self {
            Self::Rotating(keys) => {
                Some(keys.with_secrets(now_s, |secrets| take(KeyMaterial::of(&secrets[0]))))
            }
            Self::Fixed(keys) => {
                keys.first().map(|key| take(KeyMaterial { name: key.name, secret: &key.secret }))
            }
        }
    }

    fn named<T>(
        &self,
        name: &[u8; NAME],
        now_s: u64,
        take: impl FnOnce(KeyMaterial<'_>) -> T,
    ) -> Option<T> {
        match self {
            Self::Rotating(keys) => keys.with_secrets(now_s, |secrets| {
                secrets.iter().map(KeyMaterial::of).find(|key| key.name == *name).map(take)
            }),
            Self::Fixed(keys) => {
                let key = keys.iter().find(|key| key.name == *name)?;
                Some(take(KeyMaterial { name: key.name, secret: &key.secret }))
            }
        }
    }
}

impl ServerTickets {
    /// `None`: the session is too long for a ticket.
    fn seal(&self, session: &[u8], now_s: u64) -> Option<Vec<u8>> {
        if session.len() > SESSION_MAX {
            return None;
        }
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let (name, cipher) =
            self.keys.first(now_s, |key| (key.name, key.cipher(&self.identity)))?;
        let mut sealed = [&now_s.to_be_bytes()[..], session].concat();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        cipher?.seal_in_place_append_tag(nonce_used, Aad::from(self.identity), &mut sealed).ok()?;
        Some([&name[..], &nonce, &sealed].concat())
    }

    fn open(&self, ticket: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk()?;
        let (nonce, sealed) = rest.split_first_chunk()?;
        let cipher = self.keys.named(name, now_s, |key| key.cipher(&self.identity))??;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = cipher.open_in_place(nonce, Aad::from(self.identity), &mut sealed).ok()?;
        let (time, session) = opened.split_first_chunk::<TIME>()?;
        let age_s = now_s.saturating_sub(u64::from_be_bytes(*time));
        (age_s < u64::from(self.lifetime_s)).then(|| session.to_vec())
    }
}

impl ProducesTickets for ServerTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime_s
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.seal(session, now_s())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket, now_s())
    }
}

/// The identity of a virtual server, by the properties that distinguish it from others.
pub(super) fn identity(parts: &[&[u8]]) -> ServerIdentity {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut identity = [0; 32];
    identity.copy_from_slice(digest.finish().as_ref());
    identity
}

fn derive(secret: &[u8], purpose: &[u8]) -> [u8; SECRET] {
    let mut derived = [0; SECRET];
    let expanded = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir tickets").extract(secret);
    expanded
        .expand(&[purpose], hkdf::HKDF_SHA256)
        .and_then(|key| key.fill(&mut derived))
        .expect("the length is HKDF-SHA-256's own");
    derived
}

pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketSecret").field("hour", &self.hour).finish_non_exhaustive()
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rotating(_) => "Rotating",
            Self::Fixed(_) => "Fixed",
        })
    }
}

impl fmt::Debug for ServerTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTickets").field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000 * ROTATION_S;

    fn secret() -> TicketSecret {
        TicketSecret { hour: NOW / ROTATION_S, bytes: [7; SECRET] }
    }

    fn rotating() -> TicketKeys {
        let keys = RotatingTicketKeys::new(secret(), None);
        keys.keep_for(2 * ROTATION_S);
        TicketKeys::Rotating(Arc::new(keys))
    }

    fn server(keys: TicketKeys, name: &[u8]) -> ServerTickets {
        ServerTickets { keys, identity: identity(&[name]), lifetime_s: 2 * ROTATION_S as u32 }
    }

    #[test]
    fn a_ticket_is_valid_for_its_lifetime_and_its_server() {
        let keys = rotating();
        let (a, b) = (server(keys.clone(), b"a"), server(keys, b"b"));
        let ticket = a.seal(b"session", NOW).unwrap();
        assert_eq!(a.open(&ticket, NOW).as_deref(), Some(&b"session"[..]));
        assert_eq!(a.open(&ticket, NOW + 2 * ROTATION_S - 1).as_deref(), Some(&b"session"[..]));
        assert_eq!(b.open(&ticket, NOW), None, "another server's");
        assert_eq!(a.open(&ticket, NOW + 2 * ROTATION_S), None, "too old");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(a.open(&changed, NOW), None, "{at}");
            assert_eq!(a.open(&ticket[..at], NOW), None, "{at}");
        }
    }

    #[test]
    fn processes_with_a_shared_secret_have_the_same_later_keys() {
        let (first, later) = (server(rotating(), b"a"), NOW + 3 * ROTATION_S);
        let before = first.seal(b"old", later - 2 * ROTATION_S).unwrap();
        let TicketKeys::Rotating(keys) = &first.keys else { panic!("they rotate") };
        let handed = keys.with_secrets(later, |secrets| secrets[0].clone());
        let handed = TicketSecret::from_bytes(&handed.to_bytes()).unwrap();
        let second = TicketKeys::Rotating(Arc::new(RotatingTicketKeys::new(handed, None)));
        let second = server(second, b"a");
        let ticket = first.seal(b"new", later).unwrap();
        assert_eq!(second.open(&ticket, later).as_deref(), Some(&b"new"[..]));
        assert_eq!(second.open(&before, later), None, "the secret of that hour is gone");
        assert_eq!(TicketSecret::from_bytes(b"short"), None);
    }

    #[test]
    fn keys_from_files_decrypt_tickets_of_the_first_key() {
        let (old, new) = (TicketKey::read(&[1; 48]).unwrap(), TicketKey::read(&[2; 80]).unwrap());
        let before = server(TicketKeys::Fixed(vec![old.clone()]), b"a");
        let after = server(TicketKeys::Fixed(vec![new, old]), b"a");
        let ticket = before.seal(b"session", NOW).unwrap();
        assert_eq!(ticket[..NAME], [1; NAME], "nginx's place for the name");
        assert_eq!(after.open(&ticket, NOW).as_deref(), Some(&b"session"[..]));
        assert_eq!(before.open(&after.seal(b"session", NOW).unwrap(), NOW), None);
        assert!(TicketKey::read(&[1; 49]).is_none());
    }
}
