//! Names of hosts, as configurations and as clients write them.

/// As in nginx-acme: labels of printable ASCII, perhaps after `*.`.
pub(crate) fn check_host(host: &str) -> std::result::Result<(), &'static str> {
    let labels = host.strip_prefix("*.").unwrap_or(host);
    if labels.is_empty() || host.len() > 253 {
        return Err("it is no host");
    }
    let is_in_label = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~%!$&'()+,;=".contains(&byte);
    for label in labels.split('.') {
        match label.bytes().find(|byte| !is_in_label(*byte)) {
            Some(b'*') => return Err("a wildcard can only be at the beginning"),
            Some(_) => return Err("a character is not allowed in it"),
            None if label.is_empty() => return Err("a label is empty"),
            None => {}
        }
    }
    Ok(())
}

/// The name, if it can be that of a host that others reach.
pub(crate) fn host_of(server_name: &[u8]) -> Option<Box<str>> {
    let name = std::str::from_utf8(server_name).ok()?.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_host = name.bytes().all(is_plain) && check_host(&name).is_ok();
    // An address has no letters behind its last dot.
    let has_domain = name
        .rsplit_once('.')
        .is_some_and(|(_, last)| last.bytes().any(|byte| byte.is_ascii_alphabetic()));
    (is_host && has_domain).then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_checked_as_in_nginx_acme() {
        for host in ["example", "_a.b-c", "00.example.test", "*.example.test", "xn--e1afmkfd.test"]
        {
            assert_eq!(check_host(host), Ok(()), "{host}");
        }
        for host in ["", "*", "*.", "a..b", "a.", "*ww.a", "ww*.a", "www.example.*", "a b", "a:b"] {
            assert!(check_host(host).is_err(), "{host}");
        }
    }

    #[test]
    fn only_names_of_hosts_are_asked_about() {
        assert_eq!(host_of(b"A.Example").as_deref(), Some("a.example"));
        let long = [b'a'; 254];
        for name in [&b""[..], b"localhost", b"10.0.0.1", b"*.a.test", b"a..b", b"a_b.test", &long]
        {
            assert_eq!(host_of(name), None);
        }
    }
}
