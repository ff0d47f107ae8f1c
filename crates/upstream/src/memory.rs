//! The standing of every server by group and address, so that a reload forgets nothing.
//!
//! It holds what some group still uses: the new generation is built before the old one goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use net::Address;

use crate::lines::Known;
use crate::resolver::{Peer, Watched};
use crate::standing::Standing;

/// Where standings are found again.
#[derive(Debug, Default)]
pub struct Memory {
    known: Mutex<HashMap<Key, Weak<Standing>>>,
    found: Mutex<HashMap<Name, Weak<Mutex<Vec<Peer>>>>>,
}

/// The group's name, and what is looked up for it.
type Name = (Box<[u8]>, Watched);

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

    /// What was found last for a name of a group.
    pub(crate) fn found(&self, group: &[u8], watched: &Watched) -> Known {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Box::from(group), watched.clone());
        if let Some(known) = found.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        found.retain(|_, known| known.strong_count() > 0);
        let known = Known::default();
        found.insert(key, Arc::downgrade(&known));
        known
    }
}
