//! The exchange of a zone's sums with a store: `limit_req_zone ... sync=`.
//!
//! The store has three numbers for each key. The first is the sum of all requests that nodes have
//! admitted, to which each node adds its own: what the others have admitted since the last exchange
//! goes into its own bucket. The other two serve a node that has not seen the key before, or not
//! lately: the store's time at which the bucket will be empty, and the part of the sum that is in
//! it, as the node that wrote last knows both.

use std::sync::Arc;

use session::store::{MEMBER_COMMANDS_MAX, StoreMember, StoreTalk, StoreTurn};
use wire::resp::{RespCommands, RespReply, RespValue};

use super::sums::{OutgoingSum, SumPlace};
use super::terms::RateZone;

/// The commands for a key.
const KEY_COMMANDS: usize = 2;
/// The most keys of a zone in one exchange; others wait for the next one.
const KEYS_MAX: usize = 2000;
const _: () = assert!(KEYS_MAX * KEY_COMMANDS <= MEMBER_COMMANDS_MAX);
/// The most keys that are taken while the zone is locked.
const LOCKED_KEYS_MAX: usize = 100;
/// Bytes of a key's hash.
const HASH_BYTES: usize = 16;
/// How long a sum stays in the store once the bucket is empty, and at most.
const TTL_MS: u64 = 60_000;
const TTL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// A zone of a configuration that is exchanged.
pub(super) struct SharedZone(pub(super) Arc<RateZone>);

struct RateTalk {
    zone: Arc<RateZone>,
    turn: u64,
    /// The keys of the pipeline under way.
    asked: Vec<SumPlace>,
}

impl StoreMember for SharedZone {
    fn talk(&self) -> Box<dyn StoreTalk> {
        Box::new(RateTalk { zone: self.0.clone(), turn: 0, asked: Vec::new() })
    }
}

impl StoreTalk for RateTalk {
    fn ask(&mut self, turn: &StoreTurn<'_>, commands: &mut RespCommands) {
        self.turn = turn.now_ms.max(self.turn + 1);
        self.asked.clear();
        let mut has_more = true;
        while has_more && self.asked.len() < KEYS_MAX {
            let most = LOCKED_KEYS_MAX.min(KEYS_MAX - self.asked.len());
            let when = (self.turn, turn.now_ms);
            let sums = self.zone.state.lock().take_sums(most, self.zone.parameters.rate, when);
            has_more = sums.len() == most;
            for sum in sums {
                let key = self.store_key(turn.prefix, &sum.key);
                add(&key, &sum, turn.store_ms, commands);
                self.asked.push(sum.place);
            }
        }
        let waiting = self.zone.state.lock().unsent_keys();
        turn.status.count_keys(self.asked.len(), waiting);
    }

    fn take(&mut self, turn: &StoreTurn<'_>, replies: &[RespReply]) -> Result<(), &'static str> {
        let terms = &self.zone.parameters;
        let excess_max = terms.excess_max(turn.nodes);
        for (places, replies) in
            self.asked.chunks(LOCKED_KEYS_MAX).zip(replies.chunks(LOCKED_KEYS_MAX * KEY_COMMANDS))
        {
            let mut rates = self.zone.state.lock();
            for (place, replies) in places.iter().zip(replies.chunks(KEY_COMMANDS)) {
                let [
                    RespValue::Number(total),
                    RespValue::Number(empty_at_ms),
                    RespValue::Number(counted),
                ] = &replies[0][..]
                else {
                    return Err("no three numbers in its answer");
                };
                let full_ms = u64::try_from(empty_at_ms.saturating_sub(turn.store_ms)).unwrap_or(0);
                let stored = full_ms.saturating_mul(terms.rate) / 1000;
                let told = (*total, stored, *counted);
                rates.tell(*place, told, (terms.rate, excess_max), turn.now_ms);
            }
        }
        Ok(())
    }

    fn lost(&mut self, nodes: u32) {
        self.zone.parameters.share_by(nodes);
        self.zone.state.lock().end_sharing();
    }

    fn told_lost(&self, nodes: u32) -> String {
        format!("each node enforces 1/{nodes} of every limit")
    }

    fn found(&mut self) {
        self.zone.state.lock().begin_sharing(net::clock::now_ms());
        self.zone.parameters.share_by(1);
    }
}

impl RateTalk {
    /// The key in the store: with a hash, so that it is short and tells nothing of clients.
    fn store_key(&self, prefix: &[u8], key: &[u8]) -> Vec<u8> {
        let hash = net::sha256(key);
        let mut name = [prefix, b"rate:", &self.zone.name, b":"].concat();
        for byte in &hash[..HASH_BYTES] {
            name.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        name
    }
}

/// Adds the commands for a key. The reply has the new sum, and the two numbers that were there
/// before; a node that does not know what the others have admitted leaves them.
fn add(key: &[u8], sum: &OutgoingSum, store_ms: i64, commands: &mut RespCommands) {
    let admitted = sum.place.admitted.to_string();
    let mut words: Vec<&[u8]> =
        vec![b"BITFIELD", key, b"INCRBY", b"i64", b"#0", admitted.as_bytes()];
    let empty_at = store_ms.saturating_add_unsigned(sum.empty_in_ms).to_string();
    let counted = sum.counted.map(|counted| counted.to_string());
    match &counted {
        Some(counted) => {
            words.extend([&b"SET"[..], b"i64", b"#1", empty_at.as_bytes()]);
            words.extend([&b"SET"[..], b"i64", b"#2", counted.as_bytes()]);
        }
        None => words.extend([&b"GET"[..], b"i64", b"#1", b"GET", b"i64", b"#2"]),
    }
    commands.add(&words);
    let ttl_ms = sum.empty_in_ms.saturating_add(TTL_MS).min(TTL_MS_MAX).to_string();
    commands.add(&[b"PEXPIRE", key, ttl_ms.as_bytes()]);
}
