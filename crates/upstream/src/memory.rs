//! The standing of every server by group and address, so that a reload forgets nothing.
//!
//! It holds what some group still uses: the new generation is built before the old one goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use net::Address;

use crate::standing::Standing;
use crate::sticky::Sessions;

/// Where standings are found again.
#[derive(Debug, Default)]
pub struct Memory {
    known: Mutex<HashMap<Key, Weak<Standing>>>,
    /// By zone.
    sessions: Mutex<HashMap<Box<[u8]>, Weak<Sessions>>>,
}

/// The group's name, the address, and how many of the group's servers before it have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    group: Box<[u8]>,
    address: Address,
    twin: u32,
}

impl Memory {
    /// The process's.
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<Memory> = OnceLock::new();
        PROCESS.get_or_init(Self::default)
    }

    /// The standing of a server, new where nobody uses it.
    pub(crate) fn standing(&self, group: &[u8], address: &Address, twin: u32) -> Arc<Standing> {
        let key = Key { group: group.into(), address: address.clone(), twin };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = known.get(&key).and_then(Weak::upgrade) {
            return standing;
        }
        if known.len() == known.capacity() {
            known.retain(|_, standing| standing.strong_count() > 0);
        }
        let standing = Arc::default();
        known.insert(key, Arc::downgrade(&standing));
        standing
    }

    /// The sessions of a zone, new where nobody uses it.
    pub(crate) fn sessions(&self, zone: &[u8], new: impl FnOnce() -> Sessions) -> Arc<Sessions> {
        let mut known = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = known.get(zone).and_then(Weak::upgrade) {
            return sessions;
        }
        known.retain(|_, sessions| sessions.strong_count() > 0);
        let sessions = Arc::new(new());
        known.insert(zone.into(), Arc::downgrade(&sessions));
        sessions
    }
}
