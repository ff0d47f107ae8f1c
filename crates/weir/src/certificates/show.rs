//! Certificates as text.

use std::fmt::Write;

use serde_json::Value;
use wire::date;

use crate::top::span;

/// Why the next attempt is at its time, for people.
const REASONS: [(&str, &str); 10] = [
    ("missing", "there is no certificate"),
    ("window", "the authority suggests it (ARI)"),
    ("lifetime", "most of the lifetime is over then"),
    ("issuer", "the configuration names another issuer"),
    ("request", "somebody has asked for it"),
    ("failures", "the pause after failures is over then"),
    ("storage", "the state folder, or who allows the name, has failed"),
    ("haste", "certificates have followed each other quickly"),
    ("unused", "no client has told the name for long, or it is not allowed any more"),
    ("clock", "the certificate is not valid yet; is the clock right?"),
];

/// Whether a certificate is for the name, or is known under it.
pub(super) fn has_name(certificate: &Value, name: &str) -> bool {
    let is = |value: &Value| value.as_str().is_some_and(|own| own.eq_ignore_ascii_case(name));
    let names = certificate["names"].as_array().into_iter().flatten();
    is(&certificate["name"]) || is(&certificate["file"]) || names.into_iter().any(is)
}

pub(super) fn certificates(shown: &[Value], now_ms: u64) -> String {
    if shown.is_empty() {
        return "there is no acme_certificate in the configuration\n".to_owned();
    }
    shown.iter().map(|one| certificate(one, now_ms)).collect()
}

fn certificate(one: &Value, now_ms: u64) -> String {
    let word = |name: &str| one[name].as_str().unwrap_or_default();
    let time = |name: &str| one[name].as_u64().filter(|at_ms| *at_ms > 0);
    let mut text = format!("{}\n", word("name"));
    let mut line = |head: &str, rest: String| {
        let _ = writeln!(text, "  {head:<12} {rest}");
    };
    line("names", words(&one["names"]));
    line("issuers", words(&one["issuers"]));
    match time("not_after_at") {
        None => line("certificate", "none; one that signs itself is shown".to_owned()),
        Some(end_ms) => {
            let issuer = match word("issuer") {
                "" => "of an issuer that is not configured any more".to_owned(),
                name => format!("of {name}"),
            };
            line("certificate", format!("{issuer}, serial {}", word("serial")));
            line("expires", when(end_ms, now_ms));
        }
    }
    match time("next_attempt_at") {
        Some(next_ms) if next_ms > now_ms => {
            line("next attempt", format!("{}: {}", when(next_ms, now_ms), why(one)));
        }
        _ => line("next attempt", format!("now: {}", why(one))),
    }
    match word("order") {
        "" | "none" => {}
        "stored" => line("order", "stored; the next attempt continues it".to_owned()),
        order => line("order", order.to_owned()),
    }
    if let failures @ 1.. = one["failures"].as_u64().unwrap_or(0) {
        line("failures", format!("{failures} in a row"));
    }
    if !word("last_error").is_empty() {
        let at = time("last_error_at").map_or_else(String::new, |at| when(at, now_ms) + ": ");
        line("last error", format!("{at}{}", word("last_error")));
    }
    if let Some(until_ms) = time("blocked_until_at").filter(|until_ms| *until_ms > now_ms) {
        line("blocked", format!("until {}", when(until_ms, now_ms)));
    }
    text
}

fn words(list: &Value) -> String {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}

fn why(one: &Value) -> &str {
    let word = one["next_attempt_why"].as_str().unwrap_or_default();
    REASONS.iter().find(|(name, _)| *name == word).map_or(word, |(_, text)| text)
}

/// A time, and how far away it is.
fn when(at_ms: u64, now_ms: u64) -> String {
    let time = date::iso8601((at_ms / 1000).cast_signed(), 0);
    let time = String::from_utf8_lossy(&time[..19]).replace('T', " ");
    let away = span(at_ms.abs_diff(now_ms) as f64);
    match at_ms < now_ms {
        true => format!("{time} UTC ({away} ago)"),
        false => format!("{time} UTC (in {away})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_certificate_and_its_failures() {
        let one = json!({
            "name": "a.test", "names": ["a.test", "b.test"], "issuers": ["le", "other"],
            "issuer": "le", "serial": "0AFF", "not_after_at": 86_400_000_u64 * 100,
            "next_attempt_at": 86_400_000_u64 * 70, "next_attempt_why": "window", "order": "none",
            "failures": 2, "last_error": "refused", "last_error_at": 86_400_000_u64 * 2,
            "blocked_until_at": 86_400_000_u64 * 20 });
        let expected = "a.test\n  names        a.test, b.test\n  issuers      le, other\n  \
                        certificate  of le, serial 0AFF\n  \
                        expires      1970-04-11 00:00:00 UTC (in 90 days)\n  \
                        next attempt 1970-03-12 00:00:00 UTC (in 60 days): the authority suggests \
                        it (ARI)\n  failures     2 in a row\n  \
                        last error   1970-01-03 00:00:00 UTC (8 days ago): refused\n  \
                        blocked      until 1970-01-21 00:00:00 UTC (in 10 days)\n";
        let now_ms = 86_400_000 * 10;
        assert_eq!(certificates(&[one], now_ms), expected);
    }

    #[test]
    fn a_name_without_certificate() {
        let one = json!({
            "name": "a.test", "names": ["a.test"], "issuers": ["le"], "order": "under way",
            "next_attempt_at": 5, "next_attempt_why": "missing", "failures": 0 });
        let text = certificates(std::slice::from_ref(&one), 1000);
        assert!(text.contains("next attempt now: there is no certificate\n"), "{text}");
        assert!(text.contains("order        under way\n") && !text.contains("failures"), "{text}");
        assert!(has_name(&one, "A.test") && !has_name(&one, "b.test"));
    }
}
