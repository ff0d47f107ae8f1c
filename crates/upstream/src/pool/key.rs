//! The keys of interchangeable connections, and lists by key.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use net::Address;

/// Connections with different keys are not exchanged for each other.
#[derive(Clone, Debug, Eq)]
pub struct PoolKey {
    pub to: Address,
    /// How and for whom it was made; `None` for a plain one.
    pub origin: Option<Arc<PoolOrigin>>,
}

/// How and for whom a connection was made.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PoolOrigin {
    /// The local address that was requested.
    pub from: Option<SocketAddr>,
    pub secured: Option<SecuredAs>,
    /// The location's number, if locations have connections of their own.
    pub location: Option<u64>,
    pub protocol: PoolProtocol,
}

/// How requests travel on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PoolProtocol {
    /// One at a time.
    #[default]
    Exclusive,
    Http2,
}

/// How a connection is secured. A connection serves only requests that would be secured alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecuredAs {
    /// The number of the TLS settings.
    pub settings: u64,
    /// The server's name.
    pub name: Arc<[u8]>,
    /// This side's certificate, if it depends on the request.
    pub certificate: Option<CertificateNames>,
}

/// The names of the files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateNames {
    pub certificate: Arc<[u8]>,
    pub key: Arc<[u8]>,
}

/// Paths are compared byte by byte, which is cheap: a socket whose path is written in two ways just
/// has two lists.
impl PartialEq for PoolKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let is_same_server = match (&self.to, &other.to) {
            (Address::Unix(path), Address::Unix(other)) => path.as_os_str() == other.as_os_str(),
            (address, other) => address == other,
        };
        is_same_server && self.origin == other.origin
    }
}

impl Hash for PoolKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.to {
            Address::Ip(address) | Address::Udp(address) => address.hash(state),
            Address::Unix(path) => path.as_os_str().hash(state),
        }
        self.origin.hash(state);
    }
}

/// A list for each key. The last one used is found without a hash, because many groups have one
/// server.
pub(super) struct ListsByKey<T> {
    lists: Vec<(PoolKey, Vec<T>)>,
    /// Positions in `lists`.
    places: HashMap<PoolKey, usize, BuildHasherDefault<KeyHasher>>,
    last_used: usize,
}

impl<T> ListsByKey<T> {
    /// The list of a key, if it has one.
    #[inline]
    pub fn find(&mut self, key: &PoolKey) -> Option<&mut Vec<T>> {
        let is_last = self.lists.get(self.last_used).is_some_and(|(last, _)| last == key);
        if !is_last {
            self.last_used = self.look_up(key)?;
        }
        Some(&mut self.lists.get_mut(self.last_used)?.1)
    }

    #[inline(never)]
    fn look_up(&self, key: &PoolKey) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// Adds to the list of a key.
    #[inline]
    pub fn push(&mut self, key: PoolKey, entry: T) {
        match self.find(&key) {
            Some(list) => list.push(entry),
            None => self.begin(key, entry),
        }
    }

    #[inline(never)]
    fn begin(&mut self, key: PoolKey, entry: T) {
        self.last_used = self.lists.len();
        self.places.insert(key.clone(), self.last_used);
        self.lists.push((key, vec![entry]));
    }

    pub fn all(&self) -> impl Iterator<Item = &Vec<T>> {
        self.lists.iter().map(|(_, list)| list)
    }

    /// Removes entries, and keys that have none.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let before = self.lists.len();
        self.lists.retain_mut(|(_, list)| {
            list.retain_mut(&mut keep);
            !list.is_empty()
        });
        if self.lists.len() < before {
            let keys = self.lists.iter().map(|(key, _)| key.clone());
            self.places = keys.zip(0..).collect();
        }
    }
}

impl<T> Default for ListsByKey<T> {
    fn default() -> Self {
        Self { lists: Vec::new(), places: HashMap::default(), last_used: 0 }
    }
}

/// A cheap hash of addresses and names. It does not withstand names crafted to collide, but every
/// key has a connection, which bounds their number.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl KeyHasher {
    fn fold(&mut self, word: u64) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.fold(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_le_bytes(last));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.fold(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    fn key(number: u16) -> PoolKey {
        let to = match number % 3 {
            0 => Address::Unix(format!("/run/{number}.sock").into()),
            _ => Address::Ip(([10, 0, 0, 1], number).into()),
        };
        PoolKey { to, origin: None }
    }

    #[test]
    fn keys_without_entries_are_dropped_and_all_others_found() {
        let mut lists = ListsByKey::default();
        (0..1000).for_each(|number| lists.push(key(number), number));
        lists.retain_mut(|number| *number % 2 == 1);
        assert_eq!(lists.all().count(), 500);
        for number in 0..1000 {
            let expected = (number % 2 == 1).then(|| vec![number]);
            assert_eq!(lists.find(&key(number)).cloned(), expected, "{number}");
        }
        lists.push(key(0), 0);
        lists.push(key(1), 2);
        assert_eq!(lists.find(&key(0)), Some(&mut vec![0]));
        assert_eq!(lists.find(&key(1)), Some(&mut vec![1, 2]));
    }

    #[test]
    fn addresses_and_names_spread_over_the_buckets() {
        let hash = |key: &PoolKey| BuildHasherDefault::<KeyHasher>::new().hash_one(key);
        let named = |number: u16| {
            let name = Arc::from(format!("{number}.example").as_bytes());
            let secured = Some(SecuredAs { settings: 1, name, certificate: None });
            let protocol = PoolProtocol::Exclusive;
            let origin = PoolOrigin { from: None, secured, location: None, protocol };
            PoolKey { origin: Some(Arc::new(origin)), ..key(1) }
        };
        let address = |number: u16| {
            let [high, low] = number.to_be_bytes();
            PoolKey { to: Address::Ip(([10, 0, high, low], 80).into()), origin: None }
        };
        for make in [key, named, address] as [fn(u16) -> PoolKey; 3] {
            let buckets: HashSet<u64> =
                (0..1024).map(|number| hash(&make(number)) % 1024).collect();
            // Random numbers would fill 647.
            assert!(buckets.len() > 550, "{}", buckets.len());
        }
    }
}
