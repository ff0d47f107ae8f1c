//! `hash KEY consistent`: ketama, as Cache::Memcached::Fast does. Every server has points on a
//! ring, a text belongs to the next point after its own, and when servers come or go, only the
//! texts of their points move.

use conf::Template;

use super::crc32::Crc32;
use super::{Balance, MISSES_MAX, RefusedParameters, Round};
use crate::peers::{RingPoint, RotationPeer, Tier};

/// The servers are points on a ring; the hash of a text selects the next one.
#[derive(Debug)]
pub(crate) struct ConsistentHash {
    pub key: Template,
}

/// Points per unit of a server's weight.
const POINTS_PER_WEIGHT: u64 = 160;
/// The most points of a tier; above this, heavy servers get fewer. 32 MB.
const POINTS_MAX: u64 = 4 << 20;

impl Balance for ConsistentHash {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        let (key, count) = (round.ask.key, round.tier.points.len() as u64);
        if key.is_empty() || count == 0 {
            return round.rotate(|_| true);
        }
        if round.attempt.rehash == 0 {
            let hash = Crc32::new().update(key).value();
            let after = round.tier.points.partition_point(|point| point.hash < hash);
            (round.attempt.hash, round.attempt.rehash) = (after as u64, 1);
        }
        while round.attempt.misses <= MISSES_MAX {
            let kin = round.tier.points[(round.attempt.hash % count) as usize].kin;
            let found = round.rotate(|peer| peer.kin == kin);
            if found.is_some() {
                return found;
            }
            round.attempt.hash += 1;
            round.attempt.misses += 1;
        }
        round.rotate(|_| true)
    }

    fn arrange(&self, tier: &mut Tier) {
        let per_weight = (POINTS_MAX / tier.total_weight.max(1)).clamp(1, POINTS_PER_WEIGHT);
        let mut points: Vec<RingPoint> = Vec::new();
        for peer in &tier.peers {
            let left = POINTS_MAX.saturating_sub(points.len() as u64);
            let count = (u64::from(peer.server.terms.weight) * per_weight).min(left);
            points.extend(points_of(peer, count));
        }
        points.sort_unstable();
        points.dedup_by_key(|point| point.hash);
        tier.points = points;
    }

    fn key(&self) -> Option<&Template> {
        Some(&self.key)
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters { backup: true, slow_start: true }
    }
}

/// A server's points: each hash is computed from the previous one.
fn points_of(peer: &RotationPeer, count: u64) -> impl Iterator<Item = RingPoint> {
    let (host, port) = split(&peer.server.terms.text);
    let base = Crc32::new().update(host).update(&[0]).update(port);
    let kin = peer.kin;
    (0..count).scan(0_u32, move |hash, _| {
        *hash = base.update(&hash.to_le_bytes()).value();
        Some(RingPoint { hash: *hash, kin })
    })
}

/// Host and port of the text; either may be missing.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:")) {
        return (&text[5..], b"");
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (start, port) = text.split_at(text.len() - digits);
    match start.strip_suffix(b":") {
        Some(host) => (host, port),
        None => (text, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port() {
        let table: [(&str, (&str, &str)); 6] = [
            ("a:80", ("a", "80")),
            ("a", ("a", "")),
            ("10.0.0.1", ("10.0.0.1", "")),
            ("[::1]:80", ("[::1]", "80")),
            ("[::1]", ("[::1]", "")),
            ("unix:/a:80", ("/a:80", "")),
        ];
        for (text, (host, port)) in table {
            assert_eq!(split(text.as_bytes()), (host.as_bytes(), port.as_bytes()), "{text}");
        }
    }
}
