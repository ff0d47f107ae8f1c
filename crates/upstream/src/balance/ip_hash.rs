//! `ip_hash`: by the client's address, of IPv4 the first three bytes.

use super::{Balance, RefusedParameters, Round};

#[derive(Debug)]
pub(crate) struct IpHash;

/// nginx's numbers, so that clients keep their servers after a move to Weir.
const SEED: u64 = 89;
const FACTOR: u64 = 113;
const MODULUS: u64 = 6271;

impl Balance for IpHash {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        let client = match round.ask.client {
            [first, second, third, _] => &[*first, *second, *third],
            v6 if v6.len() == 16 => v6,
            _ => &[0; 3],
        };
        round.probe(|attempt, _| {
            let before = if attempt.rehash == 0 { SEED } else { attempt.hash };
            attempt.rehash += 1;
            attempt.hash = client
                .iter()
                .fold(before, |hash, byte| (hash * FACTOR + u64::from(*byte)) % MODULUS);
            attempt.hash
        })
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters { backup: true, slow_start: true }
    }
}
