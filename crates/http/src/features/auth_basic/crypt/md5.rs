//! `$1$` of FreeBSD and `$apr1$` of Apache: a thousand rounds of MD5, different only in their name.

use md5::{Digest, Md5};

use super::{before_dollar, write_low_first};

const SALT_LENGTH_MAX: usize = 8;
const ROUNDS: usize = 1000;

/// The bytes of the digest for each four digits, and the one for the last two.
const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
const LAST: usize = 11;

/// `$1$salt$digest`
pub fn freebsd(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    crypt(b"$1$", password, kept)
}

/// `$apr1$salt$digest`
pub fn apache(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    crypt(b"$apr1$", password, kept)
}

fn crypt(name: &[u8], password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let salt = before_dollar(kept.strip_prefix(name)?);
    let salt = &salt[..salt.len().min(SALT_LENGTH_MAX)];
    let digest = stretch(first(name, password, salt), password, salt);
    let mut text = [name, salt, b"$"].concat();
    for [high, middle, low] in ORDER {
        let bits = u32::from_be_bytes([0, digest[high], digest[middle], digest[low]]);
        write_low_first(bits, 4, &mut text);
    }
    write_low_first(digest[LAST].into(), 2, &mut text);
    Some(text)
}

fn first(name: &[u8], password: &[u8], salt: &[u8]) -> [u8; 16] {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner = inner.finalize();
    let mut outer = Md5::new().chain_update(password).chain_update(name).chain_update(salt);
    for rest in password.chunks(inner.len()) {
        outer.update(&inner[..rest.len()]);
    }
    // Each set bit of the length adds a zero, each clear bit the first byte of the password: a
    // mistake of the first implementation that became the format.
    let mut length = password.len();
    while length > 0 {
        outer.update(if length & 1 == 1 { &[0] } else { &password[..1] });
        length >>= 1;
    }
    outer.finalize().into()
}

fn stretch(mut digest: [u8; 16], password: &[u8], salt: &[u8]) -> [u8; 16] {
    for round in 0..ROUNDS {
        let (start, end) =
            if round % 2 == 1 { (password, &digest[..]) } else { (&digest[..], password) };
        let mut md5 = Md5::new().chain_update(start);
        if round % 3 != 0 {
            md5.update(salt);
        }
        if round % 7 != 0 {
            md5.update(password);
        }
        digest = md5.chain_update(end).finalize().into();
    }
    digest
}
