//! Hashes of passwords in a user file, and their verification.
//!
//! As in nginx, the hash of the given password is computed and compared with the stored one; here
//! in constant time.

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use wire::base64;

use super::crypt::{self, blowfish, des, md5, sha, yescrypt};

/// A format of stored passwords.
#[derive(Clone, Copy)]
pub(super) struct Scheme {
    /// The beginning of a stored password.
    prefix: &'static [u8],
    /// Whether a check takes so long that it has to run on a thread.
    pub(super) is_slow: bool,
    /// Computes the hash of a password with the parameters of the stored one. `None` if the stored
    /// one does not have the format.
    compute: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
}

const SCHEMES: &[Scheme] = &[
    quick(b"{PLAIN}", plain),
    quick(b"{SSHA}", salted_sha),
    quick(b"{SHA}", plain_sha),
    slow(b"$apr1$", md5::apache),
    slow(b"$1$", md5::freebsd),
    slow(b"$5$", sha::sha256),
    slow(b"$6$", sha::sha512),
    slow(b"$2a$", blowfish::crypt),
    slow(b"$2b$", blowfish::crypt),
    slow(b"$2y$", blowfish::crypt),
    slow(b"$y$", yescrypt::crypt),
];

const TRADITIONAL: Scheme = slow(b"", des::crypt);

const fn quick(prefix: &'static [u8], compute: fn(&[u8], &[u8]) -> Option<Vec<u8>>) -> Scheme {
    Scheme { prefix, is_slow: false, compute }
}

const fn slow(prefix: &'static [u8], compute: fn(&[u8], &[u8]) -> Option<Vec<u8>>) -> Scheme {
    Scheme { prefix, is_slow: true, compute }
}

impl Scheme {
    /// The scheme of a stored password; `None` if it is not supported.
    pub(super) fn of(kept: &[u8]) -> Option<Self> {
        let named = SCHEMES.iter().find(|scheme| kept.starts_with(scheme.prefix)).copied();
        named
            .or_else(|| (!kept.starts_with(b"$") && !kept.starts_with(b"_")).then_some(TRADITIONAL))
    }

    /// Whether `kept` is the hash of the password. As in C, a zero byte ends either.
    pub(super) fn accepts(&self, password: &[u8], kept: &[u8]) -> bool {
        let (password, kept) = (before_zero(password), before_zero(kept));
        if self.is_slow && password.len() > crypt::PASSWORD_LENGTH_MAX {
            return false;
        }
        let computed = (self.compute)(password, kept);
        computed.is_some_and(|computed| computed.ct_eq(kept).into())
    }
}

/// The name of an unsupported scheme, as far as it can be recognised.
pub(super) fn scheme_name(kept: &[u8]) -> &[u8] {
    const NAME_LENGTH_MAX: usize = 8;
    let end = kept.iter().skip(1).position(|byte| *byte == b'$').map_or(1, |at| at + 2);
    &kept[..end.min(NAME_LENGTH_MAX).min(kept.len())]
}

fn before_zero(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

fn plain(password: &[u8], _: &[u8]) -> Option<Vec<u8>> {
    Some([b"{PLAIN}", password].concat())
}

fn plain_sha(password: &[u8], _: &[u8]) -> Option<Vec<u8>> {
    Some(sha_text(b"{SHA}", password, b""))
}

fn salted_sha(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let mut digest_and_salt = Vec::new();
    base64::decode(kept.strip_prefix(b"{SSHA}")?, &mut digest_and_salt)?;
    let salt = digest_and_salt.get(Sha1::output_size()..)?;
    Some(sha_text(b"{SSHA}", password, salt))
}

fn sha_text(name: &[u8], password: &[u8], salt: &[u8]) -> Vec<u8> {
    let digest = Sha1::new().chain_update(password).chain_update(salt).finalize();
    let mut text = name.to_vec();
    base64::encode(&[&digest, salt].concat(), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "a very much longer text to encrypt. more than 64 bytes this time, really.";

    /// Hashes of libxcrypt and Apache's tools for `password`, for an empty one, and for a long one.
    const KEPT: &[[&str; 3]] = &[
        ["sa3tHJ3/KuYvI", "saFLGt/QKS6yw", "sali.zOEwfRAA"],
        ["zzXUHfURnGg8I", "zz6dpSdr.LHZw", "zzAzcLNzfEUI6"],
        ["..UZoIyj/Hy/c", "..X8NBuQ4l6uQ", "..2uThyH/QJxs"],
        [
            "$1$salt$qJH7.N4xYta3aEG/dfqo/0",
            "$1$salt$UsdFqFVB.FsuinRDK5eE..",
            "$1$salt$5rgYQI6Fk7GZnJRBAkzxJ0",
        ],
        [
            "$5$saltstring$OH4IDuTlsuTYPdED1gsuiRMyTAwNlRWyA6Xr3I4/dQ5",
            "$5$saltstring$FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7",
            "$5$saltstring$x1NUTUpdY8zCaD8WmgRdSWMlzsH1WmaVDzSAa1ygGo.",
        ],
        [
            "$5$rounds=1400$anotherlongsalts$87EGYaZ5e.A4qxHNIAtpTOXMHgQkTK7HhX2JU8P.n.A",
            "$5$rounds=1400$anotherlongsalts$7IcTVudmZDHdXM3GIn4KAxA5tvn.eciiARdqRBeqNs/",
            "$5$rounds=1400$anotherlongsalts$nL2e/LMm.cw8pbRg5j1l7pOleo6gGxWrus.1oRSVFZ7",
        ],
        [
            "$6$rounds=1000$abc$vw5PRczzmm7dyJhZWNpaLcy/M.HywGlo.UsELxKYV/ZI4356.iT3zYgbwHVzPS\
             nvkT2lVlMoWMoJdUSLcmUNg.",
            "$6$rounds=1000$abc$noBronbzNMcAtG61/dMHzc1H.fuLjHArF9.wCx8LbkVDMMEuChQCPee28tiPcX\
             HL/CMNpCqo6OPTyoEpoCMsY/",
            "$6$rounds=1000$abc$wUwdq3h96tM2OESK9gBDImmw6vmR95WyAzi.Cp4V6T0B6MPI3mkiGen166jYb8\
             7U12fbflEX1RBwOpE779GxP.",
        ],
        [
            "$2a$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm",
            "$2a$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq",
            "$2a$04$abcdefghijklmnopqrstuur.hvmVAVNJP6P0TWbvKAm5ozp3KfB8m",
        ],
        [
            "$2b$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm",
            "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq",
            "$2b$04$abcdefghijklmnopqrstuur.hvmVAVNJP6P0TWbvKAm5ozp3KfB8m",
        ],
        [
            "$2y$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu",
            "$2y$05$abcdefghijklmnopqrstuu0oImNDIy4flhldV9YqunRgBAePKmw7m",
            "$2y$05$abcdefghijklmnopqrstuuI4FG6ssi2nRhhFCIWYYoUKJAPpnyDQi",
        ],
        [
            "$y$j75$abcdefgh$hycRI05iyPwUdPZDaw/SJaABdj2h8B1Bgxi1Z/4Xke0",
            "$y$j75$abcdefgh$dnXG1KuMBmwYrnuKh9nriQRakI62k6mwFrGgxhxYD/2",
            "$y$j75$abcdefgh$4j40RzgqLDCmm8rwlK2XR6rJTviajoNGobpEsmav/D2",
        ],
    ];

    fn accepts(password: impl AsRef<[u8]>, kept: &str) -> bool {
        Scheme::of(kept.as_bytes()).unwrap().accepts(password.as_ref(), kept.as_bytes())
    }

    #[test]
    fn hashes_of_crypt_are_verified() {
        for kept in KEPT {
            for (password, kept) in ["password", "", LONG].into_iter().zip(kept) {
                assert!(accepts(password, kept), "{password:?} {kept}");
                assert!(!accepts("passwore", kept) && !accepts("p", kept), "{kept}");
            }
        }
        assert!(accepts("password", "$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/"));
        assert!(accepts(&LONG[..34], "$apr1$ab$Co4W6FLg0J72R7sVgSgPr1"));
        assert!(accepts(b"\xff\xe9x", "saAop5O79I6AI"));
    }

    #[test]
    fn the_default_hash_of_debian_is_verified() {
        let kept = "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC";
        assert!(accepts("password", kept));
    }

    #[test]
    fn schemes_in_braces_are_verified() {
        assert!(accepts("password", "{PLAIN}password") && !accepts("Password", "{PLAIN}password"));
        assert!(accepts("", "{PLAIN}") && !accepts("a", "{PLAIN}"));
        assert!(accepts("password", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="));
        assert!(accepts("password", "{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0"));
        for kept in [
            "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g",
            "{SHA}_____Mm5Pz8GgiULbPgzG37mj9g=",
            "{SSHA}_____wQadOA1e+/f+T+H3eCQQhRzYWx0",
            "{SSHA}Zm9vCg==",
            "{SSHA}",
        ] {
            assert!(!accepts("password", kept), "{kept}");
        }
    }

    #[test]
    fn a_zero_byte_ends_a_password() {
        assert!(accepts("password\0x", "{PLAIN}password"));
        assert!(accepts("password\0x", "sa3tHJ3/KuYvI"));
    }

    #[test]
    fn malformed_hashes_match_no_password() {
        for kept in [
            "",
            "s",
            "sa",
            "password",
            "sa3tHJ3/KuYvIx",
            "!a3tHJ3/KuYvI",
            "{MD5}abc",
            "$1$",
            "$1$$",
            "$apr1$",
            "$5$",
            "$5$rounds=",
            "$5$rounds=1400",
            "$5$rounds=0$a$b",
            "$6$",
            "$2a$",
            "$5$rounds=99999999999999999999$a$b",
            "$2y$99$abcdefghijklmnopqrstuuWG29KuyeAicPCJO",
            "$y$",
            "$y$j75",
            "$y$j75$",
            "$y$j75$a$",
            "$y$jzzz$ab$",
            "$y$jzT$abcdefgh$hycRI05iyPwUd",
            // The salt is one digit longer than the computed one.
            "$1$123456789$o2n/JiO/h5VviOInWJ4OQ/",
        ] {
            assert!(!accepts("password", kept), "{kept}");
        }
        assert!(!accepts("x".repeat(513), "$1$salt$qJH7.N4xYta3aEG/dfqo/0"));
    }

    #[test]
    fn unsupported_schemes_are_named() {
        for (kept, name) in [
            ("$7$C6..../....SodiumChloride$kBGj9", "$7$"),
            ("$2x$05$abc", "$2x$"),
            ("$gy$j75$abcdefgh$", "$gy$"),
            ("_J9..rasmBYk8r9AiWNc", "_"),
            ("$", "$"),
            ("$nothing-that-ends", "$"),
        ] {
            assert!(Scheme::of(kept.as_bytes()).is_none(), "{kept}");
            assert_eq!(scheme_name(kept.as_bytes()), name.as_bytes());
        }
    }
}
