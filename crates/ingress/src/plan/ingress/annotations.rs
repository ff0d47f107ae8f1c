//! Reading annotations: what is read is checked, and what nobody has read is reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::plan::names;
use crate::plan::object::texts;

pub(super) const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// The annotations of one Ingress, without their prefix.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations<'v> {
    values: BTreeMap<&'v str, &'v str>,
    read: BTreeSet<&'static str>,
    /// What is not done, for people.
    pub(super) warnings: Vec<String>,
}

impl<'v> Annotations<'v> {
    pub(super) fn of(object: &'v Value) -> Self {
        let ours = |(name, value): (&'v str, &'v str)| Some((name.strip_prefix(PREFIX)?, value));
        let values = texts(object, "/metadata/annotations").filter_map(ours).collect();
        Self { values, ..Self::default() }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<&'v str> {
        self.read.insert(name);
        self.values.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A value that `parse` understands; any other one is reported.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'v str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(text);
        if value.is_none() {
            self.refuse(name, "its value is not valid");
        }
        value
    }

    pub(super) fn refuse(&mut self, name: &str, why: &str) {
        let value: String = self.values.get(name).unwrap_or(&"").chars().take(80).collect();
        self.warnings.push(format!("{name} \"{value}\" is not used: {why}"));
    }

    pub(super) fn switch(&mut self, name: &'static str) -> Option<bool> {
        self.parsed(name, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        })
    }

    pub(super) fn is_on(&mut self, name: &'static str) -> bool {
        self.switch(name).unwrap_or(false)
    }

    pub(super) fn number(&mut self, name: &'static str, max: u64) -> Option<u64> {
        self.parsed(name, |text| text.parse().ok().filter(|number| *number <= max))
    }

    /// A size of nginx.conf (`8m`) within these bounds, in bytes.
    pub(super) fn bytes(
        &mut self,
        name: &'static str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        self.parsed(name, |text| size(text).filter(|bytes| bounds.contains(bytes)))
    }

    pub(super) fn size(
        &mut self,
        name: &'static str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Option<String> {
        self.bytes(name, bounds).map(shown_size)
    }

    /// Seconds, as ingress-nginx has them, or a time with a unit.
    pub(super) fn time(&mut self, name: &'static str) -> Option<String> {
        self.parsed(name, time)
    }

    /// Several values, separated by commas; all must be sound.
    pub(super) fn several(
        &mut self,
        name: &'static str,
        is_sound: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        self.parsed(name, |text| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let parts: Vec<_> = parts.map(str::to_owned).collect();
            (!parts.is_empty() && parts.iter().all(|part| is_sound(part))).then_some(parts)
        })
    }

    /// Reports the annotations that nobody has read.
    pub(super) fn finish(mut self) -> Vec<String> {
        let left = self.values.keys().filter(|name| !self.read.contains(**name));
        let left: Vec<_> = left.map(|name| (*name).to_owned()).collect();
        for name in left {
            self.refuse(&name, "it is not supported");
        }
        self.warnings
    }
}

const KILO: u64 = 1 << 10;
const MEGA: u64 = 1 << 20;

/// Sizes of bodies and files.
pub(super) const ANY_SIZE: std::ops::RangeInclusive<u64> = 0..=(1 << 50);
/// Sizes of buffers, which are memory.
pub(super) const BUFFER_SIZE: std::ops::RangeInclusive<u64> = KILO..=16 * MEGA;

fn size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, scale) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if lower.ends_with('k') => (digits, KILO),
        Some(digits) if lower.ends_with('m') => (digits, MEGA),
        Some(digits) => (digits, KILO * MEGA),
        None => (lower.as_str(), 1),
    };
    let is_number = digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(scale)
}

/// Only some directives know gigabytes.
pub(super) fn shown_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes % MEGA == 0 => format!("{}m", bytes / MEGA),
        bytes if bytes % KILO == 0 => format!("{}k", bytes / KILO),
        bytes => bytes.to_string(),
    }
}

fn time(text: &str) -> Option<String> {
    let digits = text.trim_end_matches(|next: char| next.is_ascii_alphabetic());
    let is_number =
        !digits.is_empty() && digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let unit = &text[digits.len()..];
    let is_unit = matches!(unit, "" | "ms" | "s" | "m" | "h" | "d");
    (is_number && is_unit).then(|| format!("{digits}{}", if unit.is_empty() { "s" } else { unit }))
}

/// Variables that a redirect may have: they cannot bring a line break into a field.
const VARIABLES: [(&str, &str); 11] = [
    ("args", "$args"),
    ("best_http_host", "$client_host"),
    ("escaped_request_uri", "$request_uri"),
    ("host", "$host"),
    ("http_host", "$client_host"),
    ("is_args", "$is_args"),
    ("pass_access_scheme", "$scheme"),
    ("query_string", "$args"),
    ("request_uri", "$request_uri"),
    ("scheme", "$scheme"),
    ("server_name", "$server_name"),
];

/// A URL to redirect to, as a template of nginx.conf.
pub(super) fn url_template(text: &str) -> Option<String> {
    let is_url = text.starts_with('/')
        || text.starts_with("http://")
        || text.starts_with("https://")
        || text.starts_with("$scheme://");
    let is_sound = |next: char| !next.is_whitespace() && !next.is_control();
    if !is_url || !names::is_printable(text) || !text.chars().all(is_sound) {
        return None;
    }
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|next: char| !next.is_ascii_alphanumeric() && next != '_')
            .unwrap_or(part.len());
        let (_, variable) = VARIABLES.iter().find(|(name, _)| *name == &part[..end])?;
        out.push_str(&format!("${{{}}}", &variable[1..]));
        out.push_str(&part[end..]);
    }
    Some(out)
}

/// Whether a text of directives ends where it begins: in no block, no quotes and no directive.
pub(super) fn is_whole(snippet: &str) -> bool {
    let (mut depth, mut quote, mut is_ended) = (0_i64, None, true);
    let mut characters = snippet.chars();
    while let Some(next) = characters.next() {
        match (quote, next) {
            (_, '\\') => {
                characters.next();
            }
            (Some(open), next) if open == next => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(next),
            (None, '#') => {
                for skipped in characters.by_ref() {
                    if skipped == '\n' {
                        break;
                    }
                }
            }
            (None, '{') => depth += 1,
            (None, '}') => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        if quote.is_some() || !(next.is_whitespace() || next == '#') {
            is_ended = quote.is_none() && matches!(next, ';' | '{' | '}');
        }
    }
    depth == 0 && quote.is_none() && is_ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_could_be_more_than_a_value_are_refused() {
        for text in ["", "1m;", "8 m", "m", "1mm", "-1", "+1", "9999999999999"] {
            assert_eq!(size(text), None, "{text}");
        }
        for (text, shown) in [("8M", "8m"), ("1g", "1024m"), ("1000", "1000"), ("2048", "2k")] {
            assert_eq!(size(text).map(shown_size).as_deref(), Some(shown));
        }
        for text in ["", "5;", "s", "5y", "-5", "5 s"] {
            assert_eq!(time(text), None, "{text}");
        }
        assert_eq!((time("5"), time("5ms")), (Some("5s".to_owned()), Some("5ms".to_owned())));
    }

    #[test]
    fn a_url_has_known_variables_alone() {
        let known = url_template("https://a.test/x?rd=$scheme://$host$escaped_request_uri");
        let wanted = "https://a.test/x?rd=${scheme}://${host}${request_uri}";
        assert_eq!(known.as_deref(), Some(wanted));
        for text in ["$uri", "https://a/$uri", "https://a/$http_x", "https://a/ b", "javascript:x"]
        {
            assert_eq!(url_template(text), None, "{text}");
        }
    }

    #[test]
    fn a_snippet_must_be_whole() {
        for whole in ["", "a b;", "if ($x) { return 1; }", "a \"}\";", "# }\na;", "a '\\'}';\n"] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["a", "}", "a; } server {", "if ($x) {", "a \"b;", "a; # }\n}", "a; b"] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
