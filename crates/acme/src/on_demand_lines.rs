//! `on_demand` of an issuer: who allows names, and how many.

use conf::{Directive, Result, Word, units};

use crate::client::AcmeUrl;
use crate::line_words::text;
use crate::on_demand_rules::OnDemandRules;

const NAMES_MAX: usize = 1000;
const NEW_PER_HOUR_MAX: u32 = 60;
const WAIT_MS: u64 = 10_000;
/// The longest time that a handshake may wait: clients do not wait longer.
const WAIT_MS_MAX: u64 = 60_000;
const DAY_S: i64 = 24 * 60 * 60;
const UNUSED_S: i64 = 30 * DAY_S;

/// Reads the line. Without somebody to ask, any client could order certificates.
pub(crate) fn read(line: &Directive) -> Result<OnDemandRules> {
    let mut ask = None;
    let mut rules = OnDemandRules {
        ask: String::new(),
        names_max: NAMES_MAX,
        new_per_hour_max: NEW_PER_HOUR_MAX,
        wait_ms: WAIT_MS,
        unused_s: UNUSED_S,
    };
    for word in &line.args {
        let Some((name, value)) = split(&word.text) else {
            return Err(line.error_at(word, format!("invalid parameter \"{word}\"")));
        };
        let known = match name {
            b"ask" => {
                ask = Some(uri(line, word)?);
                true
            }
            b"names" => set(&mut rules.names_max, count(value).and_then(|n| n.try_into().ok())),
            b"new_per_hour" => {
                let most = count(value).filter(|most| *most <= 3600);
                set(&mut rules.new_per_hour_max, most.and_then(|n| n.try_into().ok()))
            }
            b"wait" => {
                let wait_ms = units::milliseconds(value);
                set(&mut rules.wait_ms, wait_ms.filter(|wait_ms| *wait_ms <= WAIT_MS_MAX))
            }
            b"unused" => {
                let unused_s = units::seconds(value).and_then(|time| i64::try_from(time).ok());
                set(&mut rules.unused_s, unused_s.filter(|time_s| *time_s >= DAY_S))
            }
            _ => {
                let error = line.error_at(word, format!("invalid parameter \"{word}\""));
                let names = ["ask", "names", "new_per_hour", "wait", "unused"];
                return Err(error.meant(name, names));
            }
        };
        if !known {
            return Err(line.error_at(word, format!("invalid value in \"{word}\"")));
        }
    }
    let Some(ask) = ask else {
        let help = "URI says which names are allowed; else anybody could have any ordered";
        return Err(line.error("\"on_demand\" requires \"ask=URI\"").help(help));
    };
    Ok(OnDemandRules { ask, ..rules })
}

fn split(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = word.iter().position(|byte| *byte == b'=')?;
    Some((&word[..equals], &word[equals + 1..]))
}

fn uri(line: &Directive, word: &Word) -> Result<String> {
    let uri = text(line, word)?;
    let uri = uri.strip_prefix("ask=").unwrap_or(&uri);
    match AcmeUrl::parse(uri) {
        Ok(_) => Ok(uri.to_owned()),
        Err(reason) => Err(line.error_at(word, format!("{reason} in \"{word}\""))),
    }
}

fn count(value: &[u8]) -> Option<u64> {
    units::number(value).filter(|number| *number > 0)
}

fn set<T>(to: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *to = value;
            true
        }
        None => false,
    }
}
