//! The normal form of a path: decoded, without "." and "..", optionally without empty segments.
//!
//! Decoding comes first, so that an escaped dot or slash counts as one, as in nginx. The result
//! begins with "/", has no segment "." or "..", and no NUL.

use alloc::vec::Vec;

use crate::uri::{Unescape, hex, unescape};

/// The path cannot be decoded, has NUL, or leads above its root: answer 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPath;

/// The characters found by normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// Something was escaped.
    pub quoted: bool,
    /// There is a "+", escaped or not.
    pub plus: bool,
}

/// Appends the normal form of `path`, which is as sent and without "?" and "#". After an error
/// `out` is unchanged.
pub fn normalise(
    path: &[u8],
    merge_slashes: bool,
    out: &mut Vec<u8>,
) -> Result<Normal, InvalidPath> {
    let root = out.len();
    let normal = append(path, merge_slashes, root, out);
    if normal.is_err() {
        out.truncate(root);
    }
    normal
}

fn append(
    path: &[u8],
    merge_slashes: bool,
    root: usize,
    out: &mut Vec<u8>,
) -> Result<Normal, InvalidPath> {
    if path.first() != Some(&b'/') {
        return Err(InvalidPath);
    }
    out.reserve(path.len());
    let mut normal = Normal::default();
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let byte = match byte {
            b'%' => {
                normal.quoted = true;
                let (decoded, after) = decode(rest).ok_or(InvalidPath)?;
                rest = after;
                decoded
            }
            byte => byte,
        };
        match byte {
            0 => return Err(InvalidPath),
            b'/' => slash(merge_slashes, root, out)?,
            byte => {
                normal.plus |= byte == b'+';
                out.push(byte);
            }
        }
    }
    end_segment(root, out)?;
    Ok(normal)
}

fn decode(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], rest) = text.split_first_chunk()?;
    Some((hex(high)? << 4 | hex(low)?, rest))
}

fn slash(merge_slashes: bool, root: usize, out: &mut Vec<u8>) -> Result<(), InvalidPath> {
    let ends_with_slash = end_segment(root, out)?;
    if ends_with_slash || merge_slashes && out[root..].ends_with(b"/") {
        return Ok(());
    }
    out.push(b'/');
    Ok(())
}

/// Removes the last segment if it is ".", and also the one before it if it is "..". The rest then
/// ends with "/".
fn end_segment(root: usize, out: &mut Vec<u8>) -> Result<bool, InvalidPath> {
    let path = &out[root..];
    let kept = if path.ends_with(b"/.") {
        path.len() - 1
    } else if path.ends_with(b"/..") {
        let parent = &path[..path.len() - b"/..".len()];
        memchr::memrchr(b'/', parent).ok_or(InvalidPath)? + 1
    } else {
        return Ok(false);
    };
    out.truncate(root + kept);
    Ok(true)
}

/// Splits a location from a backend, a subrequest or a `Destination` header into path and
/// arguments.
///
/// Appends the path, unescaped, and returns the arguments; `None` when the path is unsafe: empty,
/// with NUL, or with a segment "..", before or after unescaping. nginx overlooks `/..?`.
pub fn parse_unsafe<'a>(uri: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (path, args) = match memchr::memchr(b'?', uri) {
        Some(mark) => (&uri[..mark], &uri[mark + 1..]),
        None => (uri, &[][..]),
    };
    if path.is_empty() || is_unsafe(path) {
        return None;
    }
    let start = out.len();
    unescape(Unescape::All, path, out);
    if is_unsafe(&out[start..]) {
        out.truncate(start);
        return None;
    }
    Some(args)
}

fn is_unsafe(path: &[u8]) -> bool {
    path.contains(&0) || path.split(|&byte| byte == b'/').any(|segment| segment == b"..")
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    fn normal(path: &str, merge_slashes: bool) -> Option<String> {
        let mut out = vec![b'x', b'/'];
        match normalise(path.as_bytes(), merge_slashes, &mut out) {
            Ok(_) => Some(String::from_utf8_lossy(&out[2..]).into_owned()),
            Err(InvalidPath) => {
                assert_eq!(out, b"x/", "{path}");
                None
            }
        }
    }

    #[test]
    fn paths() {
        let table = [
            ("/", "/"),
            ("//", "/"),
            ("/a/./b/../c", "/a/c"),
            ("/foo/bar/.", "/foo/bar/"),
            ("/foo/bar/..", "/foo/"),
            ("/foo/bar/../", "/foo/"),
            ("/a/b/../../c", "/c"),
            ("/a/..", "/"),
            ("/.", "/"),
            ("/./", "/"),
            ("/...", "/..."),
            ("/.a/..b/c..", "/.a/..b/c.."),
            ("/a.", "/a."),
            ("/a//.//b///", "/a/b/"),
            ("/a//../b", "/b"),
            ("/%41%2fb", "/A/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e", "/"),
            ("/a%2f..%2fb", "/b"),
            ("/%2f%2f/", "/"),
            ("/a%3f%23%25", "/a?#%"),
            ("/%252e", "/%2e"),
            ("/.%23/..%3f", "/.#/..?"),
            ("/%02", "/\x02"),
            ("/a+b", "/a+b"),
            ("/a\\b", "/a\\b"),
        ];
        for (path, expected) in table {
            assert_eq!(normal(path, true).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn empty_segments_stay_without_merge_slashes() {
        let table = [
            ("//", "//"),
            ("/foo//../bar", "/foo/bar"),
            ("/foo///../bar", "/foo//bar"),
            ("//..", "/"),
            ("/a/.//b", "/a//b"),
            ("/a/..//b", "//b"),
        ];
        for (path, expected) in table {
            assert_eq!(normal(path, false).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in [
            "", "a", "%2f", "/..", "/../", "/../a", "/a/../..", "/./..", "//../..", "/%2e%2e",
            "/%", "/%4", "/%4g", "/%g4", "/%00", "/a%00b", "/% 4",
        ] {
            assert_eq!(normal(path, true), None, "{path}");
        }
        // Without merging, ".." removes the empty segment.
        assert_eq!(normal("//..", false).as_deref(), Some("/"));
    }

    #[test]
    fn flags() {
        let flags = |path: &[u8]| normalise(path, true, &mut Vec::new());
        assert_eq!(flags(b"/a"), Ok(Normal { quoted: false, plus: false }));
        assert_eq!(flags(b"/%61"), Ok(Normal { quoted: true, plus: false }));
        assert_eq!(flags(b"/a+"), Ok(Normal { quoted: false, plus: true }));
        assert_eq!(flags(b"/%2b"), Ok(Normal { quoted: true, plus: true }));
    }

    #[test]
    fn unsafe_locations() {
        let parse = |uri: &'static str| {
            let mut out = Vec::new();
            let args = parse_unsafe(uri.as_bytes(), &mut out)?;
            Some((String::from_utf8_lossy(&out).into_owned(), args))
        };
        let safe: [(&str, &str, &[u8]); 5] = [
            ("/a", "/a", b""),
            ("a?b?c", "a", b"b?c"),
            ("/%41?%41", "/A", b"%41"),
            ("/..a/b../.", "/..a/b../.", b""),
            ("/a?/../", "/a", b"/../"),
        ];
        for (uri, path, args) in safe {
            assert_eq!(parse(uri), Some((String::from(path), args)), "{uri}");
        }
        for uri in
            ["", "?a", "..", "../a", "/..", "/../", "/a/../b", "/..?a", "/a\0", "/%2e.", "/a%00"]
        {
            assert_eq!(parse(uri), None, "{uri:?}");
        }
    }
}
