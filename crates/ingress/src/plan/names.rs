//! What a name may look like before it gets into nginx.conf, and the names that are made of names
//! of objects.
//!
//! The API server checks names of objects, but whoever can change the cluster's schema could leave
//! that out: everything is checked again here.

use crate::ResourceKey;

/// The API group of Gateway API.
pub(crate) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

const NAME_LENGTH_MAX: usize = 253;
const LABEL_LENGTH_MAX: usize = 63;

/// A DNS label, as namespaces and Services have it.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LABEL_LENGTH_MAX
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A DNS name, as most objects have it.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= NAME_LENGTH_MAX && text.split('.').all(is_label)
}

pub(crate) fn is_sound(key: &ResourceKey) -> bool {
    is_name(&key.name) && (key.namespace.is_empty() || is_label(&key.namespace))
}

/// A host name, or one with `*.` before it.
pub(crate) fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    is_name(name) && name.parse::<std::net::IpAddr>().is_err()
}

/// A token of HTTP: a method or the name of a field.
pub(crate) fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 256 && text.bytes().all(is_allowed)
}

/// The name of a field that a variable `$http_...` stands for without doubt: a field whose name has
/// an underscore is dropped by default, and would share the variable of the one with a hyphen.
pub(crate) fn is_plain_field(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.len() <= 256 && text.bytes().all(is_allowed)
}

/// Text without control characters that fits into a word of nginx.conf.
pub(crate) fn is_printable(text: &str) -> bool {
    text.len() <= 2048 && !text.chars().any(char::is_control)
}

/// The kind of an object in lower case and its key: no two objects share it.
pub(crate) fn object_id(kind: &str, key: &ResourceKey) -> String {
    format!("{kind}.{}.{}", key.namespace, key.name)
}

/// A name of a variable for an object's part. No two of them are equal: `-` and `.` are written in
/// a way that no other characters are.
pub(crate) fn variable(kind: &str, key: &ResourceKey, part: &str) -> String {
    let escaped = |text: &str| text.replace('-', "__").replace('.', "_dot_");
    format!("{kind}_{}_in_{}_{part}", escaped(&key.name), escaped(&key.namespace))
}

/// The variable of a request's field.
pub(crate) fn field_variable(name: &str) -> String {
    format!("$http_{}", name.to_ascii_lowercase().replace('-', "_"))
}

/// Whether a name is under a wildcard, or equal. An empty pattern stands for all names.
pub(crate) fn covers(pattern: &str, name: &str) -> bool {
    if pattern.is_empty() || pattern == name {
        return true;
    }
    match pattern.strip_prefix('*') {
        Some(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
        None => false,
    }
}

/// The more specific of two patterns if they have names in common.
pub(crate) fn intersection<'n>(one: &'n str, other: &'n str) -> Option<&'n str> {
    if covers(one, other) {
        Some(other)
    } else if covers(other, one) {
        Some(one)
    } else {
        None
    }
}

/// A network, or an address.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let Ok(address) = address.parse::<std::net::IpAddr>() else { return false };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::object::key;

    #[test]
    fn names_with_other_characters_are_refused() {
        for name in ["", "a b", "a;b", "-a", "a-", "a..b", "A", "a\n", "a$b", "ä", "..", "a/b"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("a.b-c.0"));
        for host in ["*", "*.", "a.*", "*a.b", "*.*.b", "1.2.3.4", "a_b.c"] {
            assert!(!is_host(host), "{host:?}");
        }
        assert!(is_host("*.example.com") && is_host("a"));
        for text in ["10.0.0.0/33", "10.0.0", "a", "10.0.0.0/8;", "::/129", "10.0.0.1/-1"] {
            assert!(!is_network(text), "{text}");
        }
        assert!(is_network("10.0.0.0/8") && is_network("::1") && is_network("::/0"));
    }

    #[test]
    fn variables_of_different_objects_differ() {
        let names = [("a", "b-c"), ("a-b", "c"), ("a", "b.c"), ("b", "in-a"), ("in-a", "b")];
        let mut seen: Vec<_> =
            names.iter().map(|(ns, name)| variable("x", &key(ns, name), "1")).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), names.len());
    }

    #[test]
    fn the_more_specific_name_is_what_two_patterns_have_in_common() {
        for (one, other, common) in [
            ("", "a.b", Some("a.b")),
            ("*.b", "a.b", Some("a.b")),
            ("*.b", "c.a.b", Some("c.a.b")),
            ("*.b", "b", None),
            ("*.b", "*.a.b", Some("*.a.b")),
            ("a.b", "c.b", None),
            ("*.b", "", Some("*.b")),
        ] {
            assert_eq!(intersection(one, other), common, "{one} {other}");
            assert_eq!(intersection(other, one), common, "{other} {one}");
        }
    }
}
