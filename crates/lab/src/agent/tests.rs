//! What an agent refuses. None of these tests starts a program.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::connection::AgentConnection;
use super::line::LINE_BYTES_MAX;
use super::protocol::{AgentHello, AgentReply, AgentRequest, PROTOCOL, VERSION};
use super::rights::AgentRights;
use super::service::{AgentAddresses, AgentService};
use super::token::AgentToken;
use super::{handshake, line, listener};

const LIMIT: Duration = Duration::from_secs(20);

fn rights() -> AgentRights {
    AgentRights::new(&PathBuf::from("/no/weir"), &["/usr/sbin/nginx".into()])
}

fn token(text: &str) -> AgentToken {
    AgentToken::new(text.as_bytes()).unwrap()
}

/// An agent whose token is `0123456789abcdef`, until the tests end.
fn agent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener::accept(&listener, token("0123456789abcdef"), &rights()));
    address
}

fn connect(address: SocketAddr, text: &str) -> Result<AgentConnection, String> {
    AgentConnection::tcp("it".to_owned(), address, &token(text))
}

fn refusal(request: &Value) -> String {
    let mut service = AgentService::new(&rights(), AgentAddresses::default());
    match service.reply(&request.to_string()) {
        AgentReply::Error(why) => why,
        AgentReply::Ok(value) => panic!("{request} was done: {value}"),
    }
}

#[test]
fn a_controller_with_the_token_is_told_about_the_machine() {
    let address = agent();
    let mut connection = connect(address, "0123456789abcdef").unwrap();
    let hello: AgentHello = connection.ask(&AgentRequest::Hello {}, LIMIT).unwrap();
    assert_eq!(hello.check(), Ok(()));
    assert_eq!(hello.own, Some(std::net::Ipv4Addr::LOCALHOST));
    let clock: u64 = connection.ask(&AgentRequest::Clock {}, LIMIT).unwrap();
    assert!(clock > 1_700_000_000_000_000_000);
}

#[test]
fn another_version_is_refused() {
    let hello = |protocol, version: &str| AgentHello {
        protocol,
        version: version.to_owned(),
        ..AgentHello::default()
    };
    assert_eq!(hello(PROTOCOL, VERSION).check(), Ok(()));
    let told = hello(PROTOCOL, "0.0.9").check().err().unwrap_or_default();
    assert!(told.starts_with("it is weir 0.0.9 (protocol 1), this is weir"), "{told}");
    assert!(hello(PROTOCOL + 1, VERSION).check().is_err());
}

#[test]
fn a_wrong_token_is_refused() {
    let told = connect(agent(), "0123456789abcdeF").err().unwrap_or_default();
    assert_eq!(told, "agent it: wrong token");
}

#[test]
fn a_second_controller_is_refused_until_the_first_has_left() {
    let address = agent();
    let first = connect(address, "0123456789abcdef").unwrap();
    let told = connect(address, "0123456789abcdef").err().unwrap_or_default();
    assert_eq!(told, "agent it: another controller is connected");
    drop(first);
    let begun = Instant::now();
    while connect(address, "0123456789abcdef").is_err() {
        assert!(begun.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_read_before_the_token_is_proven() {
    for said in ["{\"hello\":{}}\n", "GET / HTTP/1.1\r\n\r\n", &"a".repeat(2000)] {
        let mut stream = TcpStream::connect(agent()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let mut replies = Vec::new();
        // A reset, if bytes were left unread, is an end as well.
        let _ = stream.read_to_end(&mut replies);
        let replies = String::from_utf8_lossy(&replies);
        let last = replies.lines().last().unwrap_or_default();
        assert!(!last.contains("\"ok\""), "{said}: {replies}");
    }
}

#[test]
fn a_line_that_is_too_long_ends_the_connection() {
    let mut stream = TcpStream::connect(agent()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut from = BufReader::new(stream.try_clone().unwrap());
    handshake::prove(&mut from, &mut stream, &token("0123456789abcdef")).unwrap();
    stream.write_all(&vec![b' '; LINE_BYTES_MAX + 1]).unwrap();
    let reply = line::next(&mut from).unwrap().unwrap();
    assert_eq!(reply, "{\"error\":\"a line is longer than 65536 bytes\"}");
    assert!(!matches!(line::next(&mut from), Ok(Some(_))));
}

#[test]
fn unknown_requests_and_parts_are_refused() {
    for request in [
        json!({"shell": {"command": "id"}}),
        json!({"hello": {"more": 1}}),
        json!(["hello"]),
        json!({"stop": {"part": -1}}),
    ] {
        let told = refusal(&request);
        assert!(told.starts_with("this is no request: "), "{request}: {told}");
    }
    for request in ["turn", "cpu", "end_turn", "stop"] {
        assert_eq!(refusal(&json!({request: {"part": 7}})), "there is no part 7", "{request}");
    }
    let begin = json!({"begin_turn": {"part": 7, "middle_ms": 1}});
    assert_eq!(refusal(&begin), "there is no part 7");
}

#[test]
fn only_allowed_programs_are_started() {
    let told = refusal(&json!({"program": {"name": "/bin/sh"}}));
    assert_eq!(told, "the agent may not start /bin/sh: it needs --allow-program with its path");
    let order = |program: &str| {
        json!({"program": program, "text": "events {} http { server { listen %%listen%%; } }",
               "listen": "127.0.0.1", "tls": false, "processors": 0, "place": "whole",
               "counted": []})
    };
    assert!(refusal(&json!({"server": order("sh")})).contains("may not start sh"));
    assert!(refusal(&json!({"test": order("/usr/sbin/../bin/sh")})).contains("may not start"));
    for name in ["nginx", "/usr/sbin/nginx"] {
        assert_eq!(rights().program(name).as_deref(), Ok("/usr/sbin/nginx"));
    }
    assert_eq!(rights().program("/no/weir").as_deref(), Ok("weir"));
}

#[test]
fn a_server_listens_at_one_address_of_the_machine() {
    let order = |listen: &str, text: &str| {
        json!({"server": {"program": "weir", "text": text, "listen": listen, "tls": false,
                          "processors": 0,
                          "place": "anywhere", "counted": []}})
    };
    let told = refusal(&order("0.0.0.0", "events {}"));
    assert_eq!(told, "0.0.0.0 is no address of one machine");
    let told = refusal(&order("127.0.0.1", "events {} user root;"));
    assert!(told.starts_with("the agent refuses %%dir%%/server.conf:1: user"), "{told}");
}

#[test]
fn options_that_name_files_or_addresses_are_refused() {
    let backend = |options: &[&str]| {
        refusal(&json!({"backend": {"listen": "127.0.0.1", "options": options, "udp": false,
                                    "place": "whole", "counted": []}}))
    };
    for words in [
        &["--log", "/etc/x"][..],
        &["--listen", "80"],
        &["-l80"],
        &["--body-file=/etc/shadow"],
        &["--tcp-echo", "1"],
        &["--echo", "-l", "1"],
        &["--echo=1"],
        &["-b", "x"],
    ] {
        let told = backend(words);
        assert!(told.starts_with("a backend of an agent may not have -"), "{words:?}: {told}");
    }
    assert_eq!(backend(&["--sleep"]), "--sleep requires a value");
}

#[test]
fn generators_are_bounded_too() {
    let generator = |change: &dyn Fn(&mut Value)| {
        let mut turn = json!({"connections": 2, "turn_ms": 50, "options": ["--close"],
                              "url": "http://127.0.0.1:1/"});
        change(&mut turn);
        refusal(&json!({"generator": {"turn": turn, "place": "whole"}}))
    };
    let turn =
        json!({"connections": 1, "turn_ms": 1000, "options": [], "url": "http://127.0.0.1:1/"});
    let wrk = refusal(&json!({"generator": {"kind": "wrk", "turn": turn, "place": "whole"}}));
    assert_eq!(wrk, "an agent may not start the generator wrk");
    let with = |options: &[&str]| generator(&|turn| turn["options"] = json!(options));
    assert!(with(&["-s", "/tmp/x.lua"]).contains("load.options has -s"));
    assert!(with(&["--json", "/etc/x"]).contains("load.options has --json"));
    let told = with(&["--close", "--list", "/etc/passwd"]);
    assert_eq!(told, "--list /etc/passwd: it must be in %%dir%%/");
    assert!(with(&["--body-file", "%%dir%%/../x"]).contains("must be in %%dir%%/"));
    assert!(with(&["--idle", "9"]).contains("load.options has --idle"));
    assert!(with(&["--from", "127.0.0.2"]).contains("load.options has --from"));
    for slow in ["10001", "1m", "99999999999,1k"] {
        let told = with(&["--slow", slow]);
        assert_eq!(told, format!("--slow {slow}: at most 10000 connections"));
    }
    let further = generator(&|turn| turn["further_urls"] = json!(["http://localhost/"]));
    assert_eq!(further, "http://localhost/ names no address and port");
    let url = |url: &str| generator(&|turn| turn["url"] = json!(url));
    assert!(url("http://unix:/var/run/docker.sock:/").contains("names no address"));
    assert!(url("--script=x").contains("names no address"));
    assert!(url("http://localhost/").contains("names no address"));
    assert!(generator(&|turn| turn["connections"] = json!(100_000)).contains("from 1 to 10000"));
    assert!(generator(&|turn| turn["turn_ms"] = json!(3_600_000)).contains("from 50 to 10000"));
    let told = generator(&|turn| turn["placed"] = json!(["sh"]));
    assert!(told.starts_with("this is no request: unknown field `placed`"), "{told}");
}

#[test]
fn addresses_of_ssh_are_read() {
    let of = AgentAddresses::of_ssh("10.0.0.1 50000 10.0.0.2 22");
    assert_eq!((of.peer, of.own), ("10.0.0.1".parse().ok(), "10.0.0.2".parse().ok()));
    assert_eq!(AgentAddresses::of_ssh("fe80::1 5 fe80::2 22"), AgentAddresses::default());
    assert_eq!(AgentAddresses::of_ssh(""), AgentAddresses::default());
}
