//! Learned sessions with their servers. The least recently used is removed first, when it expires
//! or when room is needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use md5::{Digest, Md5};

use super::BoundName;

/// nginx's memory per session: a zone holds as many sessions here as it would in nginx.
const SESSION_SIZE: u64 = 128;

#[derive(Debug)]
pub(crate) struct Sessions {
    group: Box<[u8]>,
    max: usize,
    known: Mutex<KnownSessions>,
}

#[derive(Debug, Default)]
struct KnownSessions {
    by_id: HashMap<Id, LearnedSession>,
    /// By last use: the time, and a number that distinguishes sessions of the same time.
    by_use: BTreeMap<(u64, u64), Id>,
    uses: u64,
}

/// The time, and the lifetime of an unused session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    pub now_ms: u64,
    pub timeout_ms: u64,
}

/// The hash of a session's id: ids have any length, and their values need not be kept.
type Id = [u8; 16];

#[derive(Debug)]
struct LearnedSession {
    server: BoundName,
    used: (u64, u64),
}

impl Sessions {
    pub fn new(group: &[u8], zone_size: u64) -> Self {
        let max = usize::try_from(zone_size / SESSION_SIZE).unwrap_or(usize::MAX).max(1);
        Self { group: group.into(), max, known: Mutex::default() }
    }

    pub fn group(&self) -> &[u8] {
        &self.group
    }

    pub fn find(&self, id: &[u8], time: Time) -> Option<BoundName> {
        let mut known = self.lock();
        known.expire(time);
        Some(known.by_id.get(&digest(id))?.server)
    }

    /// Records the use of a session on a server; `create`: even if it is not known.
    pub fn note(&self, id: &[u8], server: &[u8], create: bool, time: Time) {
        let id = digest(id);
        let mut known = self.lock();
        known.expire(time);
        match known.by_id.get(&id).map(|session| session.used) {
            Some(used) => {
                known.by_use.remove(&used);
            }
            None if !create => return,
            None => {
                if known.by_id.len() >= self.max {
                    known.forget_oldest();
                }
            }
        }
        known.uses += 1;
        let used = (time.now_ms, known.uses);
        known.by_use.insert(used, id);
        known.by_id.insert(id, LearnedSession { server: BoundName::from(server), used });
    }

    fn lock(&self) -> MutexGuard<'_, KnownSessions> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSessions {
    fn expire(&mut self, time: Time) {
        while let Some(((used_ms, _), _)) = self.by_use.first_key_value() {
            if used_ms.saturating_add(time.timeout_ms) > time.now_ms {
                break;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.by_use.pop_first() {
            self.by_id.remove(&id);
        }
    }
}

fn digest(id: &[u8]) -> Id {
    Md5::digest(id).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ms: u64) -> Time {
        Time { now_ms, timeout_ms: 1000 }
    }

    fn server(sessions: &Sessions, id: &str, now_ms: u64) -> Option<String> {
        let bound = sessions.find(id.as_bytes(), at(now_ms))?;
        Some(String::from_utf8_lossy(bound.text()).into_owned())
    }

    #[test]
    fn sessions_move_and_expire() {
        let sessions = Sessions::new(b"u", 1 << 20);
        sessions.note(b"a", b"one", false, at(0));
        assert_eq!(server(&sessions, "a", 0), None, "only a reply begins one");
        sessions.note(b"a", b"one", true, at(0));
        sessions.note(b"b", b"one", true, at(100));
        sessions.note(b"a", b"two", false, at(500));
        assert_eq!(server(&sessions, "a", 999).as_deref(), Some("two"));
        assert_eq!(server(&sessions, "b", 1099).as_deref(), Some("one"));
        assert_eq!(server(&sessions, "b", 1100), None);
        assert_eq!(server(&sessions, "a", 1499).as_deref(), Some("two"));
        assert_eq!(server(&sessions, "a", 1500), None);
        assert!(sessions.lock().by_use.is_empty());
    }

    #[test]
    fn a_full_zone_drops_the_least_recently_used() {
        let sessions = Sessions::new(b"u", 3 * SESSION_SIZE);
        for (id, now_ms) in [("a", 0), ("b", 1), ("c", 2), ("a", 3), ("d", 4)] {
            sessions.note(id.as_bytes(), b"one", true, at(now_ms));
        }
        let known = ["a", "b", "c", "d"].map(|id| server(&sessions, id, 5).is_some());
        assert_eq!(known, [true, false, true, true]);
    }
}
