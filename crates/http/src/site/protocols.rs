//! The protocols that the `listen` lines of one address name. As nginx does, a line may omit or
//! repeat them; lines that name different ones are probably a mistake and cause a warning.

use std::ops::BitOr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols(u8);

impl Protocols {
    /// A header of the PROXY protocol comes first.
    pub const PROXY_PROTOCOL: Self = Self(1);
    /// TLS.
    pub const SSL: Self = Self(2);
    /// HTTP/2 by `listen ... http2`, whatever the directive `http2` says.
    pub const HTTP2: Self = Self(4);

    /// Whether the set contains all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Protocols {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The protocols in the lines of an address so far.
#[derive(Default)]
pub(crate) struct ProtocolLines {
    /// All protocols that any line named.
    pub(crate) all: Protocols,
    /// The protocols that another line is expected to name.
    expected: Option<Protocols>,
    changed: bool,
    has_options: bool,
}

impl ProtocolLines {
    /// The first line; `options` if it has socket options.
    pub(crate) fn new(all: Protocols, options: bool) -> Self {
        Self { all, has_options: options, ..Self::default() }
    }

    /// Adds another line. Returns whether nginx warns of it.
    pub(crate) fn add(&mut self, line: Protocols, options: bool) -> bool {
        let before = self.all;
        let unexpected = self.expected.is_some_and(|expected| expected != line);
        self.has_options |= options;
        self.all = before | line;
        let (added, removed) = (!before.has(line), !line.has(before));
        let warns = match (added, removed) {
            (true, removed) => (self.has_options && !options) || self.changed || removed,
            (false, true) => options || unexpected,
            (false, false) => (options && self.changed) || unexpected,
        };
        self.expected = Some(if added { before } else { line });
        self.changed |= added || removed;
        warns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that nginx warns of. `p` and `P` name the protocol, `-` and `o` do not; `P` and
    /// `o` have socket options.
    fn warned(lines: &str) -> String {
        let read = |line| {
            let named = matches!(line, 'p' | 'P');
            let protocols = if named { Protocols::PROXY_PROTOCOL } else { Protocols::default() };
            (protocols, matches!(line, 'P' | 'o'))
        };
        let mut rest = lines.chars().map(read);
        let (protocols, options) = rest.next().unwrap();
        let mut read = ProtocolLines::new(protocols, options);
        rest.map(|(line, options)| if read.add(line, options) { '!' } else { '.' }).collect()
    }

    #[test]
    fn nginx_warns_of_lines_with_different_protocols() {
        let table = [
            ("pp", "."),
            ("--", "."),
            ("p-", "."),
            ("-p", "."),
            ("p--", ".."),
            ("-p-", ".."),
            ("-pp", ".!"),
            ("p-p", ".!"),
            ("o-p", ".!"),
            ("op", "!"),
            ("-P", "."),
            ("po", "!"),
            ("-pP", ".!"),
        ];
        for (lines, expected) in table {
            assert_eq!(warned(lines), expected, "{lines}");
        }
    }
}
