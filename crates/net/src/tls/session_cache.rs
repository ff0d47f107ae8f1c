//! `ssl_session_cache`: sessions stored by the server, for clients without tickets.
//!
//! Several virtual servers may share a cache, but each finds only its own sessions. The oldest
//! sessions make room for new ones.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::server::StoresServerSessions;

use super::tickets::{ServerIdentity, now_s};

/// A cache of sessions, shared by all workers of a process.
pub struct TlsSessionCache {
    bytes_max: usize,
    entries: Mutex<CachedSessions>,
}

#[derive(Default)]
struct CachedSessions {
    by_key: HashMap<SessionKey, CachedSession>,
    /// Sessions in the order of arrival; removed ones are skipped.
    arrivals: VecDeque<(SessionKey, u64)>,
    bytes: usize,
    /// Number of sessions that have arrived.
    arrived: u64,
}

/// A session's server and session id.
type SessionKey = (ServerIdentity, Box<[u8]>);

struct CachedSession {
    session: Box<[u8]>,
    since_s: u64,
    /// Number of sessions that arrived before it.
    arrival: u64,
}

/// A virtual server's part of a cache.
pub(super) struct ServerSessions {
    pub(super) cache: Arc<TlsSessionCache>,
    pub(super) identity: ServerIdentity,
    pub(super) lifetime_s: u64,
}

/// Memory of a session in the cache in addition to its bytes.
const ENTRY_OVERHEAD: usize = 256;

impl TlsSessionCache {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, CachedSessions> {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl CachedSessions {
    fn put(&mut self, key: SessionKey, session: Vec<u8>, since_s: u64, bytes_max: usize) {
        self.bytes += session.len() + ENTRY_OVERHEAD;
        let arrival = self.arrived;
        self.arrived += 1;
        self.arrivals.push_back((key.clone(), arrival));
        let session = CachedSession { session: session.into(), since_s, arrival };
        if let Some(replaced) = self.by_key.insert(key, session) {
            self.bytes -= replaced.session.len() + ENTRY_OVERHEAD;
        }
        let stale_max = 2 * self.by_key.len() + 16;
        while self.bytes > bytes_max || self.arrivals.len() > stale_max {
            let Some((oldest, arrival)) = self.arrivals.pop_front() else { break };
            if self.by_key.get(&oldest).is_some_and(|session| session.arrival == arrival) {
                self.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, key: &SessionKey) -> Option<CachedSession> {
        let removed = self.by_key.remove(key)?;
        self.bytes -= removed.session.len() + ENTRY_OVERHEAD;
        Some(removed)
    }
}

impl ServerSessions {
    fn key(&self, id: &[u8]) -> SessionKey {
        (self.identity, id.into())
    }

    fn is_good(&self, session: &CachedSession) -> bool {
        now_s().saturating_sub(session.since_s) < self.lifetime_s
    }
}

impl StoresServerSessions for ServerSessions {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        let bytes_max = self.cache.bytes_max;
        if session.len() + ENTRY_OVERHEAD > bytes_max {
            return false;
        }
        self.cache.entries().put(self.key(&id), session, now_s(), bytes_max);
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let entries = self.cache.entries();
        let found = entries.by_key.get(&self.key(id)).filter(|session| self.is_good(session))?;
        Some(found.session.to_vec())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let taken = self.cache.entries().remove(&self.key(id))?;
        self.is_good(&taken).then(|| taken.session.into())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for ServerSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSessions")
            .field("lifetime_s", &self.lifetime_s)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(cache: &Arc<TlsSessionCache>, identity: u8, lifetime_s: u64) -> ServerSessions {
        ServerSessions { cache: cache.clone(), identity: [identity; 32], lifetime_s }
    }

    #[test]
    fn sessions_are_found_by_their_server_until_they_expire() {
        let cache = Arc::new(TlsSessionCache::new(10_000));
        let (a, b, expired) = (server(&cache, 1, 60), server(&cache, 2, 60), server(&cache, 1, 0));
        assert!(a.put(vec![1], vec![7; 9]));
        assert_eq!(a.get(&[1]), Some(vec![7; 9]));
        assert_eq!((b.get(&[1]), b.take(&[1])), (None, None));
        assert_eq!(expired.get(&[1]), None);
        assert_eq!(a.take(&[1]), Some(vec![7; 9]));
        assert_eq!(a.get(&[1]), None);
    }

    #[test]
    fn the_oldest_sessions_make_room() {
        let cache = Arc::new(TlsSessionCache::new(10 * (ENTRY_OVERHEAD + 100)));
        let server = server(&cache, 1, 60);
        for id in 0..100 {
            assert!(server.put(vec![id], vec![0; 100]));
        }
        let kept: Vec<u8> = (0..100).filter(|id| server.get(&[*id]).is_some()).collect();
        assert_eq!(kept, (90..100).collect::<Vec<u8>>());
        for _ in 0..1000 {
            assert!(server.put(vec![1], vec![0; 100]) && server.take(&[1]).is_some());
        }
        assert!(cache.entries().arrivals.len() < 100);
        assert!(!server.put(vec![1], vec![0; 10_000]));
    }
}
