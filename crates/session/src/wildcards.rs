//! Values by host name, with nginx's wildcards: `*.example.org` for all names below, `.example.org`
//! for these and the name itself, `www.example.*` for all names with that prefix.
//!
//! An exact name beats a wildcard, `*.` beats `.*`, and of two wildcards of the same kind the
//! longer one wins.

use crate::table::HashTable;

#[derive(Clone, Debug)]
pub struct Wildcards<T> {
    exact: HashTable<T>,
    /// `.example.org` for `*.example.org`.
    leading: HashTable<T>,
    /// `www.example.` for `www.example.*`.
    trailing: HashTable<T>,
}

/// The reason why a name is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WildcardError {
    /// It is neither a name nor a wildcard.
    Invalid,
    /// It exists already.
    Conflicting,
}

impl<T> Default for Wildcards<T> {
    fn default() -> Self {
        Self {
            exact: HashTable::default(),
            leading: HashTable::default(),
            trailing: HashTable::default(),
        }
    }
}

impl<T: Clone> Wildcards<T> {
    /// Adds a name literally, without wildcards.
    pub fn add_exact(&mut self, name: &[u8], value: T) -> Result<(), WildcardError> {
        added(self.exact.insert(name, value))
    }

    /// Adds a name or a wildcard.
    pub fn add(&mut self, name: &[u8], value: T) -> Result<(), WildcardError> {
        let stars = name.iter().filter(|byte| **byte == b'*').count();
        let doubled = name.windows(2).any(|pair| pair == b"..");
        if stars > 1 || doubled || name.contains(&0) {
            return Err(WildcardError::Invalid);
        }
        match name {
            [b'.', bare @ ..] if !bare.is_empty() => {
                if self.exact.find(bare).is_some() {
                    return Err(WildcardError::Conflicting);
                }
                added(self.leading.insert(name, value.clone()))?;
                self.add_exact(bare, value)
            }
            [b'*', b'.', _, ..] => added(self.leading.insert(&name[1..], value)),
            [_, .., b'.', b'*'] => added(self.trailing.insert(&name[..name.len() - 1], value)),
            _ if stars > 0 => Err(WildcardError::Invalid),
            _ => self.add_exact(name, value),
        }
    }

    pub fn find(&self, name: &[u8]) -> Option<&T> {
        (self.exact.find(name)).or_else(|| self.below(name)).or_else(|| self.beginning(name))
    }

    /// The value of the longest wildcard that matches the end of the name.
    fn below(&self, name: &[u8]) -> Option<&T> {
        if self.leading.is_empty() {
            return None;
        }
        dots(name).find_map(|at| self.leading.find(&name[at..]))
    }

    /// The value of the longest wildcard that matches the start of the name.
    fn beginning(&self, name: &[u8]) -> Option<&T> {
        if self.trailing.is_empty() {
            return None;
        }
        dots(name).rev().find_map(|at| self.trailing.find(&name[..=at]))
    }
}

fn added(is_new: bool) -> Result<(), WildcardError> {
    if is_new { Ok(()) } else { Err(WildcardError::Conflicting) }
}

fn dots(name: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    memchr::memchr_iter(b'.', name)
}

#[cfg(test)]
mod tests {
    use super::WildcardError::{Conflicting, Invalid};
    use super::*;

    fn table(names: &[&'static str]) -> Wildcards<&'static str> {
        let mut table = Wildcards::default();
        for name in names {
            table.add(name.as_bytes(), *name).expect(name);
        }
        table
    }

    #[test]
    fn exact_names_and_longer_wildcards_come_first() {
        let table = table(&[
            "example.com",
            "*.example.com",
            "*.www.example.com",
            ".dot.example.com",
            "www.*",
            "www.example.*",
            "*.net",
        ]);
        let cases = [
            ("example.com", Some("example.com")),
            ("EXAMPLE.COM", Some("example.com")),
            ("a.example.com", Some("*.example.com")),
            ("a.b.example.com", Some("*.example.com")),
            ("www.example.com", Some("*.example.com")),
            ("a.www.example.com", Some("*.www.example.com")),
            ("dot.example.com", Some(".dot.example.com")),
            ("a.dot.example.com", Some(".dot.example.com")),
            ("www.example.org", Some("www.example.*")),
            ("www.example.co.uk", Some("www.example.*")),
            ("www.example", Some("www.*")),
            ("www.other.net", Some("*.net")),
            ("www", None),
            ("net", None),
            ("example.org", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(table.find(name.as_bytes()).copied(), expected, "{name}");
        }
    }

    #[test]
    fn invalid_and_duplicate_names_are_refused() {
        let mut table = table(&["a.com", "*.b.com", ".c.com", "d.*", "."]);
        for invalid in ["*", "*.", "**.a", "a*", "a..b", "*a.com", "a.*.com", "a\0"] {
            assert_eq!(table.add(invalid.as_bytes(), "x"), Err(Invalid), "{invalid}");
        }
        for taken in ["A.com", ".a.com", "*.b.com", ".b.com", "c.com", "*.c.com", "d.*", "."] {
            assert_eq!(table.add(taken.as_bytes(), "x"), Err(Conflicting), "{taken}");
        }
        // A refused name changes nothing.
        assert_eq!(table.find(b"b.com"), None);
        assert_eq!(table.find(b"x.a.com"), None);
    }
}
