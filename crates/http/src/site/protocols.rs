//! The protocols that the `listen` lines of one address name, and when nginx warns of them: a line
//! may leave them out or repeat them, but lines that name different ones are probably a mistake.

use std::ops::BitOr;

/// A set of protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols(u8);

impl Protocols {
    /// The PROXY protocol's header comes before everything else.
    pub const PROXY_PROTOCOL: Self = Self(1);
    /// Connections are encrypted.
    pub const SSL: Self = Self(2);
    /// HTTP/2, whatever the directive `http2` says: `listen ... http2`.
    pub const HTTP2: Self = Self(4);

    /// Whether all of `other` are among them.
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

/// What the lines of an address have said so far.
#[derive(Default)]
pub(crate) struct ProtocolLines {
    /// All protocols that any line named.
    pub(crate) all: Protocols,
    /// What a further line is expected to name.
    expected: Option<Protocols>,
    changed: bool,
    options_said: bool,
}

impl ProtocolLines {
    /// The first line; `options`: it says how the socket is opened.
    pub(crate) fn new(all: Protocols, options: bool) -> Self {
        Self { all, options_said: options, ..Self::default() }
    }

    /// A further line; whether nginx warns of it.
    pub(crate) fn add(&mut self, line: Protocols, options: bool) -> bool {
        let before = self.all;
        let unexpected = self.expected.is_some_and(|expected| expected != line);
        self.options_said |= options;
        self.all = before | line;
        let (added, removed) = (!before.has(line), !line.has(before));
        let warns = match (added, removed) {
            (true, removed) => (self.options_said && !options) || self.changed || removed,
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

    /// Which lines nginx warns of: `p` names the protocol, `P` with options, `-` and `o` do not.
    fn warned(lines: &str) -> String {
        let read = |line| {
            let named = matches!(line, 'p' | 'P');
            let protocols = if named { Protocols::PROXY_PROTOCOL } else { Protocols::default() };
            (protocols, matches!(line, 'P' | 'o'))
        };
        let mut rest = lines.chars().map(read);
        let (protocols, options) = rest.next().unwrap();
        let mut said = ProtocolLines::new(protocols, options);
        rest.map(|(line, options)| if said.add(line, options) { '!' } else { '.' }).collect()
    }

    #[test]
    fn one_line_may_speak_for_all() {
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
