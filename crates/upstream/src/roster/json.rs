//! A roster as JSON, in the form of NGINX Plus's API.

use conf::Subsystem;
use wire::json::write_text;

use super::{Roster, RosterLine};
use crate::server::{ServerStatus, ServerTerms};

impl Roster {
    /// All servers: `[{"id":0,…},…]`.
    pub fn to_json(&self, subsystem: Subsystem) -> Vec<u8> {
        let mut out = vec![b'['];
        for (number, line) in self.lines.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            line.write_json(subsystem, &mut out);
        }
        out.push(b']');
        out
    }
}

impl RosterLine {
    pub fn to_json(&self, subsystem: Subsystem) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(subsystem, &mut out);
        out
    }

    fn write_json(&self, subsystem: Subsystem, out: &mut Vec<u8>) {
        let ServerTerms { text, weight, max_conns, failure_policy, slow_start_ms, status, route } =
            &self.spec.terms;
        out.extend_from_slice(format!("{{\"id\":{},\"server\":", self.id).as_bytes());
        write_text(text, out);
        if let Some(service) = &self.spec.service {
            out.extend_from_slice(b",\"service\":");
            write_text(service, out);
        }
        let policy = failure_policy;
        let numbers = format!(
            ",\"weight\":{weight},\"max_conns\":{max_conns},\"max_fails\":{},\
             \"fail_timeout\":\"{}\",\"slow_start\":\"{}\"",
            policy.max_fails,
            shown_time(policy.fail_timeout_ms),
            shown_time(*slow_start_ms),
        );
        out.extend_from_slice(numbers.as_bytes());
        if subsystem != Subsystem::Stream {
            out.extend_from_slice(b",\"route\":");
            write_text(route.as_deref().unwrap_or_default(), out);
        }
        let is_down = *status == ServerStatus::Down;
        let flags = format!(",\"backup\":{},\"down\":{is_down}", self.spec.backup);
        out.extend_from_slice(flags.as_bytes());
        if *status == ServerStatus::Drain {
            out.extend_from_slice(b",\"drain\":true");
        }
        out.push(b'}');
    }
}

fn shown_time(time_ms: u64) -> String {
    match time_ms % 1000 {
        0 => format!("{}s", time_ms / 1000),
        _ => format!("{time_ms}ms"),
    }
}
