//! Percent-encoding in nginx's classes, and the entities of HTML.

use alloc::vec::Vec;

/// The bytes to escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EscapeSet {
    /// Bytes not allowed in a path: "?" and "#" are escaped, "/" is not.
    Uri = 1,
    /// Bytes not allowed in an argument: also "&", "+" and ";".
    Args = 2,
    /// All but RFC 3986's unreserved characters.
    UriComponent = 4,
    /// For an address within an HTML attribute.
    Html = 8,
    /// For an address within a refresh page.
    Refresh = 16,
    /// A memcached key: controls, space and "%" only.
    Memcached = 32,
}

/// Appends `text` with the bytes of `kind` as "%XX".
pub fn escape(kind: EscapeSet, text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(text.len());
    for run in text.split_inclusive(|&byte| must_escape(kind, byte)) {
        match run.split_last() {
            Some((&last, before)) if must_escape(kind, last) => {
                out.extend_from_slice(before);
                let (high, low) = (DIGITS[usize::from(last >> 4)], DIGITS[usize::from(last & 15)]);
                out.extend_from_slice(&[b'%', high, low]);
            }
            _ => out.extend_from_slice(run),
        }
    }
}

/// Appends `text` with `<`, `>`, `&` and `"` as entities.
pub fn escape_html(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len());
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(byte),
        }
    }
}

fn must_escape(kind: EscapeSet, byte: u8) -> bool {
    CLASSES[byte as usize] & kind as u8 != 0
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let all_but_memcached = EscapeSet::Uri as u8
        | EscapeSet::Args as u8
        | EscapeSet::UriComponent as u8
        | EscapeSet::Html as u8
        | EscapeSet::Refresh as u8;
    let mut byte = 0;
    while byte < 256 {
        let unreserved =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        if byte < 0x20 {
            classes[byte] = all_but_memcached | EscapeSet::Memcached as u8;
        } else if byte >= 0x7f {
            classes[byte] = all_but_memcached;
        } else if !unreserved {
            classes[byte] = EscapeSet::UriComponent as u8;
        }
        byte += 1;
    }
    let sets: [(EscapeSet, &[u8]); 5] = [
        (EscapeSet::Uri, b" \"#%<>?\\^`{|}"),
        (EscapeSet::Args, b" \"#%&+;<>?\\^`{|}"),
        (EscapeSet::Html, b" \"#%'<>\\^`{|}"),
        // nginx's table has "~" where it means "}".
        (EscapeSet::Refresh, b" \"'<>\\^`{|~"),
        (EscapeSet::Memcached, b" %"),
    ];
    let mut set = 0;
    while set < sets.len() {
        let (kind, bytes) = sets[set];
        let mut at = 0;
        while at < bytes.len() {
            classes[bytes[at] as usize] |= kind as u8;
            at += 1;
        }
        set += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    const ASCII: &[u8] = b"\x01 !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~\x7f";

    #[test]
    fn each_class() {
        use EscapeSet::*;
        let table = [
            (Uri, "%01%20!%22%23$%25&'()*+,-./09:;%3C=%3E%3F@AZ[%5C]%5E_%60az%7B%7C%7D~%7F"),
            (Args, "%01%20!%22%23$%25%26'()*%2B,-./09:%3B%3C=%3E%3F@AZ[%5C]%5E_%60az%7B%7C%7D~%7F"),
            (
                UriComponent,
                "%01%20%21%22%23%24%25%26%27%28%29%2A%2B%2C-.%2F09%3A%3B%3C%3D%3E%3F%40AZ%5B%5C%5D\
                 %5E_%60az%7B%7C%7D~%7F",
            ),
            (Html, "%01%20!%22%23$%25&%27()*+,-./09:;%3C=%3E?@AZ[%5C]%5E_%60az%7B%7C%7D~%7F"),
            (Refresh, "%01%20!%22#$%&%27()*+,-./09:;%3C=%3E?@AZ[%5C]%5E_%60az%7B%7C}%7E%7F"),
            (Memcached, "%01%20!\"#$%25&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~\x7f"),
        ];
        for (kind, expected) in table {
            let mut out = Vec::new();
            escape(kind, ASCII, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{kind:?}");
        }
    }

    #[test]
    fn bytes_above_ascii() {
        for (kind, expected) in
            [(EscapeSet::Uri, &b"%C3%A9"[..]), (EscapeSet::Memcached, b"\xc3\xa9")]
        {
            let mut out = Vec::new();
            escape(kind, "\u{e9}".as_bytes(), &mut out);
            assert_eq!(out, expected, "{kind:?}");
        }
    }

    #[test]
    fn entities() {
        let mut out = Vec::new();
        escape_html(b"<a href=\"'&'\">", &mut out);
        assert_eq!(out, b"&lt;a href=&quot;'&amp;'&quot;&gt;");
    }
}
