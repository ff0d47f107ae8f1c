//! `$5$` and `$6$`: SHA-256 and SHA-512 in many rounds (Drepper, "Unix crypt using SHA-256 and
//! SHA-512").

use sha_crypt::{Params, sha256_crypt, sha512_crypt};

use super::{before_dollar, write_low_first};

const SALT_LENGTH_MAX: usize = 16;
/// Precedes the number of rounds, if that is not 5000.
const ROUNDS: &[u8] = b"rounds=";

/// `$5$[rounds=N$]salt$digest`
pub fn sha256(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let Setting { params, salt, mut text } = Setting::of(kept)?;
    let digest = sha256_crypt(password, salt, params);
    // Ten groups of three bytes with a distance of ten, each rotated once more than the one before.
    for at in 0..10 {
        let [a, b, c] = [at, at + 10, at + 20].map(|at| digest[at]);
        write_turned([[a, b, c], [c, a, b], [b, c, a]][at % 3], &mut text);
    }
    write_low_first(u32::from_be_bytes([0, 0, digest[31], digest[30]]), 3, &mut text);
    Some(text)
}

/// `$6$[rounds=N$]salt$digest`
pub fn sha512(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let Setting { params, salt, mut text } = Setting::of(kept)?;
    let digest = sha512_crypt(password, salt, params);
    // Here the distance is 21, and the rotation has the other direction.
    for at in 0..21 {
        let [a, b, c] = [at, at + 21, at + 42].map(|at| digest[at]);
        write_turned([[a, b, c], [b, c, a], [c, a, b]][at % 3], &mut text);
    }
    write_low_first(digest[63].into(), 2, &mut text);
    Some(text)
}

fn write_turned([high, middle, low]: [u8; 3], text: &mut Vec<u8>) {
    write_low_first(u32::from_be_bytes([0, high, middle, low]), 4, text);
}

/// The parts before the digest.
struct Setting<'k> {
    params: Params,
    salt: &'k [u8],
    text: Vec<u8>,
}

impl<'k> Setting<'k> {
    fn of(kept: &'k [u8]) -> Option<Self> {
        let (name, rest) = kept.split_at_checked(b"$5$".len())?;
        let (params, rounds, rest) = match rest.strip_prefix(ROUNDS) {
            None => (Params::RECOMMENDED, &b""[..], rest),
            Some(number) => {
                let number = before_dollar(number);
                let (rounds, rest) = rest.split_at_checked(ROUNDS.len() + number.len() + 1)?;
                let number = conf::units::number(number)?.try_into().ok()?;
                (Params::new(number).ok()?, rounds, rest)
            }
        };
        let salt = before_dollar(rest);
        let salt = &salt[..salt.len().min(SALT_LENGTH_MAX)];
        Some(Self { params, salt, text: [name, rounds, salt, b"$"].concat() })
    }
}
