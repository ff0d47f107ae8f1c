//! What a request with an unsafe method makes invalid (RFC 9111, section 4.4): the reply stored for
//! its URI, and those that `Location` and `Content-Location` of its reply name, on the same host.

/// Methods that change nothing.
const SAFE: [&[u8]; 8] =
    [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PROPFIND", b"REPORT", b"SEARCH", b"QUERY"];

/// Whether a request with this method may change what is stored. Unknown ones may.
pub fn is_unsafe(method: &[u8]) -> bool {
    !SAFE.contains(&method)
}

/// The path and the arguments that a reference means, if it is on the host of the request. `target`
/// is the path and the arguments of the request. References with `.` or `..` mean nothing here.
pub fn same_origin_target(reference: &[u8], host: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let end = reference.iter().position(|byte| *byte == b'#').unwrap_or(reference.len());
    let reference = &reference[..end];
    let found = match after_authority(reference, host) {
        Some(b"") => b"/".to_vec(),
        Some(path) => path.to_vec(),
        None if has_scheme(reference) || reference.starts_with(b"//") => return None,
        None if reference.is_empty() => target.to_vec(),
        None if reference.starts_with(b"/") => reference.to_vec(),
        None => {
            let path = target.split(|byte| *byte == b'?').next()?;
            let base = match reference.starts_with(b"?") {
                true => path,
                false => &path[..=path.iter().rposition(|byte| *byte == b'/')?],
            };
            [base, reference].concat()
        }
    };
    let mut parts = found.split(|byte| *byte == b'?').next()?.split(|byte| *byte == b'/');
    let is_plain = !parts.any(|part| matches!(part, b"." | b".."));
    (found.starts_with(b"/") && is_plain).then_some(found)
}

/// What follows the authority of a URI of that host.
fn after_authority<'r>(reference: &'r [u8], host: &[u8]) -> Option<&'r [u8]> {
    let start = [&b"http://"[..], b"https://", b"//"].into_iter().find(|start| {
        reference.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start))
    })?;
    let (own, rest) = reference[start.len()..].split_at_checked(host.len())?;
    let is_same = !host.is_empty() && own.eq_ignore_ascii_case(host);
    (is_same && matches!(rest.first(), None | Some(b'/' | b'?'))).then_some(rest)
}

fn has_scheme(reference: &[u8]) -> bool {
    let colon = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'));
    colon.is_some_and(|at| reference[at] == b':')
}

/// The key of another target, if the key of the request ends with the request's own.
pub fn sibling_key(key: &[u8], target: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let start = key.strip_suffix(target).filter(|_| !target.is_empty())?;
    Some([start, other].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_are_unsafe() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get", "X"] {
            assert!(is_unsafe(method.as_bytes()), "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS", "PROPFIND"] {
            assert!(!is_unsafe(method.as_bytes()), "{method}");
        }
    }

    #[test]
    fn references_to_the_same_host() {
        let target = |reference: &str| {
            let found = same_origin_target(reference.as_bytes(), b"h:81", b"/a/b?c=/d")?;
            Some(String::from_utf8(found).unwrap())
        };
        for (reference, expected) in [
            ("/x?y", "/x?y"),
            ("/x#f", "/x"),
            ("x", "/a/x"),
            ("?z", "/a/b?z"),
            ("", "/a/b?c=/d"),
            ("http://h:81", "/"),
            ("HTTPS://H:81/x", "/x"),
            ("//h:81/x", "/x"),
        ] {
            assert_eq!(target(reference).as_deref(), Some(expected), "{reference}");
        }
        for reference in [
            "http://h/x",
            "http://h:811/x",
            "http://other/x",
            "//other/x",
            "mailto:x",
            "../x",
            "/a/./x",
            "http://h:81?x",
        ] {
            assert_eq!(target(reference), None, "{reference}");
        }
        assert_eq!(same_origin_target(b"http:///x", b"", b"/"), None);
    }

    #[test]
    fn keys_of_other_targets() {
        assert_eq!(sibling_key(b"http://app/a?b", b"/a?b", b"/x"), Some(b"http://app/x".to_vec()));
        assert_eq!(sibling_key(b"http://app/z", b"/a", b"/x"), None);
        assert_eq!(sibling_key(b"k", b"", b"/x"), None);
    }
}
