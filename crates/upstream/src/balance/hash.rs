//! `hash KEY`: by the checksum of a text, as Cache::Memcached does.

use conf::Template;

use super::crc32::Crc32;
use super::{Balance, RefusedParameters, Round};

/// The hash of a text selects the server.
#[derive(Debug)]
pub(crate) struct HashBalance {
    pub key: Template,
}

impl Balance for HashBalance {
    fn pick(&self, round: &mut Round<'_>) -> Option<usize> {
        let key = round.ask.key;
        if key.is_empty() {
            return round.rotate(|_| true);
        }
        round.probe(|attempt, _| {
            let mut text = Decimal::default();
            let again = if attempt.rehash > 0 { text.write(attempt.rehash) } else { &[] };
            let crc = Crc32::new().update(again).update(key).value();
            attempt.rehash += 1;
            attempt.hash += u64::from(crc >> 16 & 0x7fff);
            attempt.hash
        })
    }

    fn key(&self) -> Option<&Template> {
        Some(&self.key)
    }

    fn refused(&self) -> RefusedParameters {
        RefusedParameters { backup: true, slow_start: true }
    }
}

/// Room for a number as text.
#[derive(Default)]
struct Decimal([u8; 10]);

impl Decimal {
    fn write(&mut self, mut number: u32) -> &[u8] {
        let mut start = self.0.len();
        loop {
            start -= 1;
            self.0[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return &self.0[start..];
            }
        }
    }
}
