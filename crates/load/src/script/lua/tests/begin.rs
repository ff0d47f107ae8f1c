//! What a script finds when it begins: the table `wrk`, its arguments, its thread.

use std::net::TcpListener;

use super::*;

#[test]
fn the_table_holds_the_command_lines_request() {
    let addrs = vec!["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
    let headers = vec![("A".into(), "b".into())];
    let target = ScriptTarget { body: Some(b"text".to_vec()), addrs, headers, ..target() };
    let source = b"seen = table.concat({ wrk.scheme, wrk.host, wrk.port, wrk.method, wrk.path,
        wrk.body, wrk.headers.A, tostring(wrk.thread), type(wrk.port), #wrk.addrs,
        tostring(wrk.addrs[1]), tostring(wrk.addrs[2]) }, ' ')";
    let script = Script::load("test.lua", source, &target).unwrap();
    assert_eq!(
        text(&script, "seen"),
        "http example.org 8080 GET /a?b=c text b nil string 2 127.0.0.1:80 ::1:80"
    );
}

#[test]
fn arguments_begin_with_the_url() {
    let script = begun("function init(args) seen = args[0] .. #args .. args[1] .. args[2] end");
    assert_eq!(text(&script, "seen"), "http://example.org:8080/a?b=c2onetwo");
}

/// As the scripts of wrk before 4 do it.
#[test]
fn init_may_call_the_init_of_wrk() {
    let script = begun(
        "calls = 0
        function init(args) calls = calls + 1 wrk.init(args) seen = wrk.request() end",
    );
    assert_eq!(script.get("calls"), Ok(LuaValue::Number(1.0)));
    assert_eq!(text(&script, "seen"), request(&script));
}

#[test]
fn endless_recursion_is_an_error() {
    let endless = [
        "local format = wrk.format wrk.format = function() wrk.init() return format() end",
        "function init() return init() .. '' end",
    ];
    for source in endless {
        let wrong = message(load(source).init(&[]));
        assert!(wrong.contains("endlessly") || wrong.contains("stack overflow"), "{wrong}");
    }
}

#[test]
fn a_thread_stops_itself_once_it_runs() {
    let script =
        begun("function init() wrk.thread:stop() end function response() wrk.thread:stop() end");
    assert!(!script.stopped());
    respond(&script, &[], b"").unwrap();
    assert!(script.stopped());
}

#[test]
fn a_thread_reads_and_sets_its_own_globals_and_address() {
    let script = load(
        "function init()
            local thread = wrk.thread
            thread:set('a', { b = 1 })
            seen = a.b .. thread:get('a').b .. tostring(thread.addr)
            thread.addr = wrk.lookup('127.0.0.1', 81)[1]
        end",
    );
    script.set_addr("127.0.0.1:80".parse().unwrap());
    script.init(&[]).unwrap();
    assert_eq!(text(&script, "seen"), "11127.0.0.1:80");
    assert_eq!(script.addr(), Some("127.0.0.1:81".parse().unwrap()));
}

#[test]
fn names_are_looked_up_and_addresses_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = load(
        "function try(port)
            local addrs = wrk.lookup('127.0.0.1', port)
            seen = #addrs .. tostring(wrk.connect(addrs[1]))
        end
        function init(args) try(args[1]) end
        http = tostring(wrk.lookup('127.0.0.1', 'http')[1])
        bare = tostring(wrk.lookup('127.0.0.1')[1])",
    );
    assert_eq!(
        (text(&script, "http"), text(&script, "bare")),
        ("127.0.0.1:80".into(), "127.0.0.1:0".into())
    );
    let port = listener.local_addr().unwrap().port().to_string();
    script.init(&["".into(), port.clone()]).unwrap();
    assert_eq!(text(&script, "seen"), "1true");
    drop(listener);
    script.init(&["".into(), port]).unwrap();
    assert_eq!(text(&script, "seen"), "1false");
}

#[test]
fn a_first_line_for_the_system_is_no_lua() {
    assert_eq!(
        message(Script::load("test.lua", b"#!/usr/bin/wrk -s\nx = y.z", &target())),
        "test.lua:2: attempt to index global 'y' (a nil value)"
    );
    load("#!only this");
}

#[test]
fn the_libraries_of_luajit_are_there() {
    load("assert(jit.version and bit.band(3, 2) == 2 and os.time and io.open and require)");
}
