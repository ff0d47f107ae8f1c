//! A roster as `server` lines, for the file of `state`.

use std::fmt;

use super::{Roster, ServerSpec};
use crate::server::{ServerStatus, ServerTerms};

impl Roster {
    /// The lines, which say only what differs from the defaults.
    pub fn to_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.lines.iter().for_each(|line| line.spec.write_line(&mut out));
        out
    }
}

/// The arguments of its line.
impl fmt::Display for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_arguments(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl ServerSpec {
    fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"server ");
        self.write_arguments(out);
        out.extend_from_slice(b";\n");
    }

    fn write_arguments(&self, out: &mut Vec<u8>) {
        let ServerTerms { text, weight, max_conns, failure_policy, slow_start_ms, status, route } =
            &self.terms;
        let plain = ServerTerms::plain(b"");
        write_word(out, text);
        let mut number = |name: &str, value: u64, default: u64, unit: &str| {
            if value != default {
                out.extend_from_slice(format!(" {name}={value}{unit}").as_bytes());
            }
        };
        let defaults = plain.failure_policy;
        number("weight", (*weight).into(), plain.weight.into(), "");
        number("max_conns", (*max_conns).into(), 0, "");
        number("max_fails", failure_policy.max_fails.into(), defaults.max_fails.into(), "");
        let seconds = |time_ms: u64| time_ms / 1000;
        let fail_timeout = seconds(failure_policy.fail_timeout_ms);
        number("fail_timeout", fail_timeout, seconds(defaults.fail_timeout_ms), "s");
        match slow_start_ms % 1000 {
            0 => number("slow_start", seconds(*slow_start_ms), 0, "s"),
            _ => number("slow_start", *slow_start_ms, 0, "ms"),
        }
        for (name, text) in [(&b"route="[..], route), (b"service=", &self.service)] {
            if let Some(text) = text {
                out.push(b' ');
                write_word(out, &[name, text].concat());
            }
        }
        let flags = [
            (" resolve", self.resolve),
            (" backup", self.backup),
            (" down", *status == ServerStatus::Down),
            (" drain", *status == ServerStatus::Drain),
        ];
        for (flag, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            out.extend_from_slice(flag.as_bytes());
        }
    }
}

/// A word that the configuration's parser reads as these bytes.
fn write_word(out: &mut Vec<u8>, word: &[u8]) {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-:/[]=".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return out.extend_from_slice(word);
    }
    out.push(b'"');
    for byte in word {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}
