//! The number in the cookie.

use std::cell::Cell;
use std::fmt;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::exchange::Exchange;

/// Four words in memory order: service, time, worker, count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uid([u32; 4]);

/// The increment of counts, as in nginx.
const STEP: u32 = 0x100;
const FIRST_V1: u32 = 1;
const FIRST_V2: u32 = 0x0303_0302;

thread_local! {
    static WORKER: u32 = worker();
    static NEXT_V1: Cell<u32> = const { Cell::new(FIRST_V1) };
    static NEXT_V2: Cell<u32> = const { Cell::new(FIRST_V2) };
}

/// A word that differs between workers: 16 bits of the time, and 16 bits of the process and the
/// number of the worker in it.
fn worker() -> u32 {
    static WORKERS: AtomicU32 = AtomicU32::new(0);
    let micros = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.subsec_micros());
    let number = std::process::id().wrapping_add(WORKERS.fetch_add(1, Ordering::Relaxed));
    (micros / 20) << 16 | number & 0xffff
}

impl Uid {
    /// The next number of the old format, with words in this machine's order.
    pub(super) fn next_v1(service: u32) -> Self {
        let count = NEXT_V1.get();
        NEXT_V1.set(count.wrapping_add(STEP));
        Self::now(service, count)
    }

    /// The next number of the format in use, with words in the network's order.
    pub(super) fn next_v2(service: u32) -> Self {
        let count = NEXT_V2.get();
        NEXT_V2.set(count.checked_add(STEP).unwrap_or(FIRST_V2));
        Self(Self::now(service, count).0.map(u32::to_be))
    }

    fn now(service: u32, count: u32) -> Self {
        let now_s = (net::clock::unix_ms() / 1000) as u32;
        Self([service, now_s, WORKER.with(|worker| *worker), count])
    }

    /// The number with these bytes; missing ones are zero. `None` if it is invalid.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
            let mut whole = [0; 4];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_ne_bytes(whole);
        }
        (words[3] != 0).then_some(Self(words))
    }

    pub(super) fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (chunk, word) in bytes.chunks_mut(4).zip(self.0) {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Appends `name=` and the number; returns true.
    pub(super) fn write_named(self, name: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(name);
        write!(out, "={self}").is_ok()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:08X}"))
    }
}

/// The local address of the connection: an IPv4 address, or the end of an IPv6 address.
pub(super) fn of_address(x: &Exchange) -> u32 {
    match x.client.local().map(|local| local.ip()) {
        Some(IpAddr::V4(ip)) => ip.to_bits(),
        Some(IpAddr::V6(ip)) => ip.to_bits() as u32,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_their_bytes() {
        let bytes: Vec<u8> = (1..=16).collect();
        assert_eq!(Uid::of(&bytes).unwrap().bytes(), bytes[..]);
        let short = Uid::of(&bytes[..13]).unwrap();
        assert_eq!(short.bytes()[..], [&bytes[..13], &[0; 3]].concat());
        assert_eq!(Uid::of(&bytes[..12]), None);
        let shown = Uid([0x1234, 0xabcd_ef01, 2, 3]).to_string();
        assert_eq!(shown, "00001234ABCDEF010000000200000003");
    }
}
