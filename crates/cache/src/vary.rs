//! `Vary`: the digest of a variant, which names the file of every variant but the first.

use md5::{Digest, Md5};

use crate::key::KeyDigest;

/// Fields of requests whose values are lists: spaces and commas between their items do not matter.
const LISTS: [&[u8]; 3] = [b"accept-charset", b"accept-encoding", b"accept-language"];

/// The digest of the variant of `main` that a request is given. `values_of` calls its argument
/// with each value of the request's field of that name, in lower case.
pub fn variant<F>(main: KeyDigest, vary: &[u8], mut values_of: F) -> KeyDigest
where
    F: FnMut(&[u8], &mut dyn FnMut(&[u8])),
{
    let mut md5 = Md5::new_with_prefix(main.0);
    let vary = vary.to_ascii_lowercase();
    for name in items(&vary) {
        md5.update(name);
        md5.update(b":");
        let is_list = LISTS.contains(&name);
        let mut is_first = true;
        values_of(name, &mut |value| {
            let mut add = |text: &[u8]| {
                if !std::mem::take(&mut is_first) {
                    md5.update(b",");
                }
                md5.update(text);
            };
            match is_list {
                true => items(value).for_each(add),
                false => add(value),
            }
        });
        md5.update(b"\r\n");
    }
    KeyDigest(md5.finalize().into())
}

/// The same by RFC 9111, section 4.1: several fields of one name are one list, and neither the
/// spaces in it matter nor, where the field has preferences, the order and the case.
pub fn normalized_variant<F>(main: KeyDigest, vary: &[u8], mut values_of: F) -> KeyDigest
where
    F: FnMut(&[u8], &mut dyn FnMut(&[u8])),
{
    let mut md5 = Md5::new_with_prefix(main.0);
    let vary = vary.to_ascii_lowercase();
    let mut names: Vec<_> = items(&vary).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        md5.update(name);
        md5.update(b":");
        let has_preferences = LISTS.contains(&name);
        let mut values = Vec::new();
        values_of(name, &mut |value| {
            let parts = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            let parts = parts.filter(|part| !part.is_empty());
            match has_preferences {
                true => values.extend(parts.map(preference)),
                false => values.extend(parts.map(<[u8]>::to_vec)),
            }
        });
        if has_preferences {
            values.sort_unstable();
        }
        for value in values {
            md5.update(value);
            md5.update(b",");
        }
        md5.update(b"\r\n");
    }
    KeyDigest(md5.finalize().into())
}

/// An item of a list of preferences: `en;q=0.5`.
fn preference(item: &[u8]) -> Vec<u8> {
    let mut item = item.to_ascii_lowercase();
    item.retain(|byte| !matches!(byte, b' ' | b'\t'));
    item
}

/// The parts of a list that commas and spaces separate.
fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b',' | b' ')).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vary: &str, fields: &[(&str, &str)]) -> KeyDigest {
        variant(KeyDigest([1; 16]), vary.as_bytes(), |name, add| {
            for (_, value) in fields.iter().filter(|(own, _)| own.as_bytes() == name) {
                add(value.as_bytes());
            }
        })
    }

    #[test]
    fn a_variant_is_the_md5_of_names_and_values() {
        let text = [&[1; 16][..], b"x-a:1,2\r\naccept-encoding:gzip,br\r\n"].concat();
        let fields = [("x-a", "1"), ("x-a", "2"), ("accept-encoding", " gzip, br")];
        assert_eq!(of("X-A, Accept-Encoding", &fields), KeyDigest::of(&text));
    }

    fn normalized(vary: &str, fields: &[(&str, &str)]) -> KeyDigest {
        normalized_variant(KeyDigest([1; 16]), vary.as_bytes(), |name, add| {
            for (_, value) in fields.iter().filter(|(own, _)| own.as_bytes() == name) {
                add(value.as_bytes());
            }
        })
    }

    #[test]
    fn requests_that_mean_the_same_have_one_variant() {
        for (vary, one, other) in [
            ("foo", &[("foo", "1,2")][..], &[("foo", " 1, 2 ")][..]),
            ("foo", &[("foo", "1, 2")], &[("foo", "1"), ("foo", "2")]),
            ("Foo, bar", &[("foo", "1"), ("bar", "2")], &[("bar", "2"), ("foo", "1")]),
            ("accept-language", &[("accept-language", "en, de")], &[("accept-language", "De,eN")]),
            (
                "accept-language",
                &[("accept-language", "en; q=0.5")],
                &[("accept-language", "en;q=0.5")],
            ),
        ] {
            assert_eq!(normalized(vary, one), normalized(vary, other), "{one:?} {other:?}");
        }
        assert_eq!(normalized("a, b", &[]), normalized("b, A, a", &[]));
        for (one, other) in [
            (&[("foo", "1, 2")][..], &[("foo", "2, 1")][..]),
            (&[("foo", "a")], &[("foo", "A")]),
            (&[("foo", "1 2")], &[("foo", "12")]),
            (&[], &[("foo", "1")]),
        ] {
            assert_ne!(normalized("foo", one), normalized("foo", other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn lists_are_compared_without_their_spaces() {
        let with = |name, value| of(name, &[(name, value)]);
        assert_eq!(with("accept-language", "en,de"), with("accept-language", " en , de,"));
        assert_ne!(with("accept-language", "en,de"), with("accept-language", "de,en"));
        assert_ne!(with("x-a", "en,de"), with("x-a", "en, de"));
        assert_ne!(of("x-a", &[]), of("x-b", &[]));
    }
}
