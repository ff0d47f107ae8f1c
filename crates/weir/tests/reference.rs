//! `weir reference`, as it is typed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

fn reference(arguments: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("reference").args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = reference(arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is said of arguments that are not understood.
fn complaint(arguments: &[&str]) -> String {
    let output = reference(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_directive_is_explained_in_every_context() {
    let text = printed(&["keepalive_timeout"]);
    assert!(text.contains("Syntax:   keepalive_timeout TIME [HEADER_TIME];"), "{text}");
    assert!(text.contains("Default:  75s") && text.contains("Default:  60s"), "{text}");
    assert!(printed(&["health_check", "queue"]).contains("\nqueue\n"));
}

#[test]
fn without_a_name_every_directive_is_listed() {
    let list = printed(&[]);
    assert!(list.lines().count() > 200, "{list}");
    assert!(list.lines().any(|line| line.starts_with("proxy_pass ")), "{list}");
}

#[test]
fn pages_and_help_are_printed() {
    assert!(printed(&["--markdown"]).starts_with("# Directives\n"));
    assert!(printed(&["--unsupported"]).starts_with("# Unsupported directives\n"));
    assert!(printed(&["--help"]).starts_with("Usage: weir reference [NAME...]"));
}

#[test]
fn unknown_directives_and_options_are_errors() {
    let unknown =
        "weir reference: there is no directive \"proxy_pas\"; did you mean \"proxy_pass\"?\n";
    assert_eq!(complaint(&["proxy_pas"]), unknown);
    assert!(complaint(&["--html"]).starts_with("weir reference: unknown option --html"));
}
