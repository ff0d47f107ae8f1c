//! Whether a certificate belongs to a host, by the rules of OpenSSL's `X509_check_host`.

use core::iter::from_fn;

use super::{SUBJECT_ALT_NAME, X509};
use crate::der::{DerReader, Element, tag};

/// `dNSName` of `GeneralName`.
const DNS_NAME: u8 = tag::primitive(2);

impl X509<'_> {
    /// Whether one of its names is the host's. Common names count only without DNS names.
    ///
    /// A `*` matches a whole first label, and at least two labels must follow it. Unlike in
    /// OpenSSL, a `*` within a label matches only itself.
    pub fn is_of_host(&self, host: &[u8]) -> bool {
        if host.is_empty() {
            return false;
        }
        self.host_names().any(|name| matches(name, host))
    }

    /// The names of its hosts: the DNS names, or else the common names.
    pub fn host_names(&self) -> impl Iterator<Item = &[u8]> {
        let has_names = self.dns_names().next().is_some();
        self.dns_names().chain(self.subject.common_names().filter(move |_| !has_names))
    }

    fn dns_names(&self) -> impl Iterator<Item = &[u8]> {
        self.alternative_names().filter(|name| name.tag == DNS_NAME).map(|name| name.contents)
    }

    /// The names in `subjectAltName`, of any kind.
    pub(super) fn alternative_names(&self) -> impl Iterator<Item = Element<'_>> {
        let names = self.extension(SUBJECT_ALT_NAME);
        let names = names.and_then(|der| DerReader::new(der).inside(tag::SEQUENCE).ok());
        names.into_iter().flat_map(|mut names| from_fn(move || names.any().ok()))
    }
}

/// Whether a pattern in a certificate matches the host.
fn matches(pattern: &[u8], host: &[u8]) -> bool {
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(rest) = pattern.strip_prefix(b"*") else { return false };
    let Some(dot) = host.iter().position(|byte| *byte == b'.') else { return false };
    let is_long = rest.iter().filter(|byte| **byte == b'.').count() >= 2;
    is_long && dot > 0 && rest.eq_ignore_ascii_case(&host[dot..])
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_one_label() {
        for (pattern, host, expected) in [
            ("example.com", "Example.COM", true),
            ("*.example.com", "foo.example.com", true),
            ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.com", "example.com", false),
            ("*", "example", false),
            ("f*.example.com", "foo.example.com", false),
            ("example.com", "foo.example.com", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), host.as_bytes()), expected, "{pattern} {host}");
        }
    }
}
