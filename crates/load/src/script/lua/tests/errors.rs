//! Whatever is wrong with a script is one line that says where.

use super::*;

fn loading(source: &str) -> String {
    message(Script::load("test.lua", source.as_bytes(), &target()))
}

#[test]
fn scripts_that_do_not_load() {
    let table = [
        ("\nx = = 1", "test.lua:2: unexpected symbol near '='"),
        ("\n\nlocal x = nil + 1", "test.lua:3: attempt to perform arithmetic on a nil value"),
        ("error('own words')", "test.lua:1: own words"),
        ("error('own words', 0)", "test.lua: own words"),
        ("\nwrk.connect('here')", "test.lua:2: expected an address from wrk.lookup, not a string"),
        ("wrk.lookup('h', 'gopher')", "test.lua:1: wrk.lookup: unknown service gopher"),
        ("wrk.lookup()", "test.lua:1: wrk.lookup: the host is nil, not a string"),
        ("\nwrk.format(nil, nil, 1)", "test.lua:2: wrk.format: headers: a number, not a table"),
        (
            "wrk.format(nil, nil, { A = {} })",
            "test.lua:1: wrk.format: value of a header: a table, not a string",
        ),
        ("wrk.format(nil, nil, nil, {})", "test.lua:1: wrk.format: body: a table, not a string"),
        ("local ffi = require 'ffi'", "test.lua:1: module 'ffi' not found:"),
    ];
    for (source, expected) in table {
        let wrong = loading(source);
        assert!(
            wrong == expected || expected.ends_with(':') && wrong.starts_with(expected),
            "{source}: {wrong}"
        );
    }
}

#[test]
fn a_name_that_is_not_there_is_an_error() {
    // Too long to be asked for, so that no network is needed.
    let wrong = loading("wrk.lookup(('a'):rep(300), 80)");
    assert!(wrong.starts_with("test.lua:1: unable to resolve aaa"), "{wrong}");
}

#[test]
fn errors_without_words_are_shown_too() {
    for source in ["error()", "error({})", "error(nil, 0)"] {
        let wrong = loading(source);
        assert!(wrong.starts_with("test.lua: ") && wrong.lines().count() == 1, "{source}: {wrong}");
    }
}

#[test]
fn a_compiled_script_is_refused() {
    let wrong = loading("\x1bLJ\x02");
    assert!(wrong.starts_with("test.lua"), "{wrong}");
}

#[test]
fn a_long_path_stays_whole_or_is_shortened_by_luajit() {
    let name = format!("/{}/test.lua", "long".repeat(30));
    let wrong = message(Script::load(&name, b"x = = 1", &target()));
    assert!(wrong.starts_with("...") && wrong.contains("/test.lua:1: "), "{wrong}");
}

#[test]
fn every_function_may_fail() {
    let script = load(
        "function init() error('i') end
        function request() error('r') end
        function delay() error('d') end
        function response() error('s') end
        function setup() error('t') end
        function done() error('o') end",
    );
    assert_eq!(message(script.init(&[])), "test.lua:1: i");
    assert_eq!(message(script.request(&mut Vec::new())), "test.lua:2: r");
    assert_eq!(message(script.delay()), "test.lua:3: d");
    assert_eq!(message(respond(&script, &[], b"")), "test.lua:4: s");
    assert_eq!(message(script.setup(across::nobody())), "test.lua:5: t");
    let none = Histogram::new(3).unwrap();
    assert_eq!(message(script.done(&ScriptSummary::default(), &none, &none)), "test.lua:6: o");
}

#[test]
fn answers_of_the_wrong_kind() {
    let script = load("function request() end function delay() return {} end");
    assert_eq!(
        message(script.request(&mut Vec::new())),
        "test.lua: request() returned nil, not a string"
    );
    assert_eq!(message(script.delay()), "test.lua: delay() returned a table, not a number");
}

#[test]
fn a_missing_or_wrong_field_of_the_table_is_named() {
    let table = [
        ("wrk.init = nil", "wrk.init is nil, not a function"),
        ("wrk.format = {}", "wrk.format is a table, not a function"),
        ("wrk.headers = nil", "wrk.headers is nil, not a table"),
        ("function wrk.init() end", "wrk.request is nil, not a function"),
    ];
    for (source, expected) in table {
        let script = load(source);
        let asked = script.init(&[]).and_then(|()| script.request(&mut Vec::new()));
        assert_eq!(message(asked), format!("test.lua: {expected}"), "{source}");
    }
}

#[test]
fn recursion_without_end_is_an_error() {
    let wrong =
        message(load("function request() return 1 + request() end").request(&mut Vec::new()));
    assert!(wrong.contains("stack overflow"), "{wrong}");
}

#[test]
fn invalid_uses_of_a_thread_are_errors() {
    let table = [
        ("wrk.thread.addr = 'here'", "expected an address from wrk.lookup, not a string"),
        ("wrk.thread.speed = 1", "only the field addr of a thread can be set"),
        ("print(wrk.thread.speed.limit)", "attempt to index field 'speed' (a nil value)"),
        (
            "wrk.thread:set('a', print)",
            "thread:set(\"a\"): a function cannot be passed between threads",
        ),
        ("wrk.thread:get('print')", "a function cannot be passed between threads"),
        ("wrk.thread.get('a')", ""),
    ];
    for (line, expected) in table {
        let wrong = message(load(&format!("function init()\n{line}\nend")).init(&[]));
        assert!(wrong.starts_with(&format!("test.lua:2: {expected}")), "{line}: {wrong}");
    }
}

/// A script that has caught an error goes on.
#[test]
fn errors_can_be_caught() {
    let script = load("local ok, why = pcall(wrk.connect, 1) seen = tostring(ok) .. tostring(why)");
    assert!(
        text(&script, "seen").starts_with("falseexpected an address"),
        "{}",
        text(&script, "seen")
    );
}
