//! Changes of records by a program of the administrator's (`dns_hook`).
//!
//! It is run by the worker process, as its user, once for each change, with the arguments
//! `add|remove NAME VALUE` behind its own.

use std::ffi::OsString;

use net::HelperProgram;
use net::process::Exit;
use observe::Level;

use super::settings::{DnsHook, DnsRecord, RecordChange};

/// The folders with programs of the hook's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most bytes of its output that are logged, and the most lines.
const OUTPUT_BYTES_MAX: usize = 4096;
const OUTPUT_LINES_MAX: usize = 20;

/// Runs the program. The error says how it ended.
pub(super) async fn change(
    hook: &DnsHook,
    record: &DnsRecord,
    change: RecordChange,
    time_ms_max: u64,
) -> Result<(), String> {
    let shown = hook.program.display();
    let program = call(hook, record, change);
    let outcome = program.run(time_ms_max, OUTPUT_BYTES_MAX).await;
    let outcome = outcome.map_err(|error| format!("\"{shown}\" cannot be run: {error}"))?;
    let result = match outcome.exit {
        Some(Exit::Code(0)) => Ok(()),
        Some(Exit::Code(code)) => Err(format!("\"{shown}\" failed with code {code}")),
        Some(Exit::Signal { number, .. }) => Err(format!("\"{shown}\" got signal {number}")),
        None => Err(format!("\"{shown}\" was killed after {} s", time_ms_max / 1000)),
    };
    let level = if result.is_ok() { Level::Notice } else { Level::Error };
    for line in lines(&outcome.output) {
        observe::log(level, format_args!("acme: \"{shown}\" says: {line}"));
    }
    result
}

fn call(hook: &DnsHook, record: &DnsRecord, change: RecordChange) -> HelperProgram {
    let action = match change {
        RecordChange::Add => "add",
        RecordChange::Remove => "remove",
    };
    let own = [action, &record.name, &record.value].map(OsString::from);
    HelperProgram {
        program: hook.program.clone(),
        arguments: hook.arguments.iter().cloned().chain(own).collect(),
        variables: vec![
            ("PATH", PATH.into()),
            ("ACME_ACTION", action.into()),
            ("ACME_DOMAIN", record.domain.clone().into()),
            ("ACME_NAME", record.name.clone().into()),
            ("ACME_VALUE", record.value.clone().into()),
        ],
    }
}

/// The lines of an output, without what could break one of a log.
fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let clean = |line: &str| -> String {
        line.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
    };
    lines.take(OUTPUT_LINES_MAX).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_breaks_no_line_of_a_log() {
        assert_eq!(lines(b"a\x1b[1m\r\n\n  \nb\xff\tc"), ["a [1m", "b\u{fffd} c"]);
        assert_eq!(lines(&b"a\n".repeat(100)).len(), OUTPUT_LINES_MAX);
    }

    #[test]
    fn a_hook_gets_its_own_arguments_first() {
        let hook = DnsHook { program: "/bin/hook".into(), arguments: vec!["-v".into()] };
        let record =
            DnsRecord { domain: "a.test".into(), name: "_x.b.test".into(), value: "v".into() };
        let call = call(&hook, &record, RecordChange::Remove);
        assert_eq!(call.arguments, ["-v", "remove", "_x.b.test", "v"]);
        assert!(call.variables.contains(&("ACME_DOMAIN", "a.test".into())));
    }
}
