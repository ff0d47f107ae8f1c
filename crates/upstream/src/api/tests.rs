use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conf::Subsystem;

use super::{RosterDifference, ServersPath, SpecRefusal};
use crate::resolver::ResolvedPeer;
use crate::roster::{GroupChange, Roster, ServerOperation, line_of_server};
use crate::testing::{ask, group, lease, load, load_of, load_state, sequence, short};
use crate::{Ask, Attempt, Group, ServerChoice, Waited};

const NOW: u64 = 1_000_000;

fn at(now_ms: u64) -> Ask<'static> {
    Ask { now_ms, ..Ask::default() }
}

/// The group's servers as the lines of a state file.
fn lines(group: &Group) -> String {
    String::from_utf8(group.roster().to_text()).unwrap()
}

/// Answers a request of the API and makes its change.
fn request(group: &Group, method: &str, id: &str, body: &str) -> Result<String, SpecRefusal> {
    let server = (!id.is_empty()).then(|| id.as_bytes().into());
    let path = ServersPath { subsystem: group.subsystem(), group: group.name().into(), server };
    let rules = group.rules().unwrap();
    let answer = rules.answer(method.as_bytes(), &path, body.as_bytes(), &group.roster())?;
    if let Some(operation) = &answer.operation {
        let (subsystem, name) = (group.subsystem(), group.name().into());
        let change = GroupChange { subsystem, group: name, operation: operation.clone() };
        let change = GroupChange::from_bytes(&change.to_bytes()).unwrap();
        assert!(group.change(&change.operation, true));
    }
    Ok(String::from_utf8(answer.json).unwrap())
}

fn refusal(group: &Group, method: &str, id: &str, body: &str) -> String {
    let refused = request(group, method, id, body).unwrap_err();
    format!("{} {}", refused.status, refused.code)
}

#[test]
fn servers_are_added_changed_and_removed() {
    let group = group("server 10.0.0.1; server 10.0.0.2 weight=2 backup;");
    let added = request(&group, "POST", "", r#"{"server":"10.0.0.3:81","weight":3}"#).unwrap();
    let expected = "{\"id\":2,\"server\":\"10.0.0.3:81\",\"weight\":3,\"max_conns\":0,\
        \"max_fails\":1,\"fail_timeout\":\"10s\",\"slow_start\":\"0s\",\"route\":\"\",\
        \"backup\":false,\"down\":false}";
    assert_eq!(added, expected);
    assert_eq!(sequence(&group, 8, NOW).matches("3:81").count(), 6);
    let drained = request(&group, "PATCH", "2", r#"{"drain":true}"#).unwrap();
    assert!(drained.ends_with("\"drain\":true}"), "{drained}");
    assert_eq!(sequence(&group, 2, NOW), "1 1");
    request(&group, "PATCH", "0", r#"{"down":true}"#).unwrap();
    assert_eq!(sequence(&group, 2, NOW), "2 2", "the backup");
    request(&group, "DELETE", "1", "").unwrap();
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::None));
    request(&group, "PATCH", "2", r#"{"down":false,"drain":false}"#).unwrap();
    assert_eq!(sequence(&group, 1, NOW), "10.0.0.3:81".trim_start_matches("10.0.0."));
    assert_eq!(lines(&group), "server 10.0.0.1 down;\nserver 10.0.0.3:81 weight=3;\n");
    let again = request(&group, "POST", "", r#"{"server":"10.0.0.2","backup":true}"#).unwrap();
    assert!(again.starts_with("{\"id\":3,"), "an id is never used again: {again}");
}

#[test]
fn requests_go_on_and_counts_stay_exact() {
    let group = group("least_conn; server 10.0.0.1; server 10.0.0.2;");
    let held: Vec<_> = (0..4).map(|_| lease(ask(&group, at(NOW)))).collect();
    let state = group.servers()[0].clone();
    assert_eq!(state.in_progress(), 2);
    request(&group, "PATCH", "0", r#"{"weight":2}"#).unwrap();
    assert_eq!(group.servers()[0].in_progress(), 2, "the same count under other parameters");
    request(&group, "DELETE", "0", "").unwrap();
    assert_eq!(sequence(&group, 2, NOW), "2 2");
    request(&group, "POST", "", r#"{"server":"10.0.0.1"}"#).unwrap();
    assert_eq!(group.servers()[1].in_progress(), 2, "it is the same server again");
    drop(held);
    assert!(group.servers().iter().all(|server| server.in_progress() == 0));
}

#[test]
fn a_limit_is_changed_for_those_that_wait() {
    let group = group("queue 10; server 10.0.0.1 max_conns=1; server 10.0.0.2 max_conns=1;");
    let mut held: Vec<_> = (0..2).map(|_| lease(ask(&group, at(NOW)))).collect();
    let mut attempts = [Attempt::default(), Attempt::default(), Attempt::default()];
    let mut waiting: Vec<_> = attempts
        .iter_mut()
        .map(|attempt| {
            assert!(matches!(group.choose(attempt, &at(NOW)), ServerChoice::Busy));
            group.wait(attempt, NOW).unwrap()
        })
        .collect();
    let mut poll = |number: usize| {
        let cx = &mut Context::from_waker(Waker::noop());
        waiting[number].poll(cx, &mut attempts[number], NOW)
    };
    assert!((0..3).all(|number| poll(number).is_pending()));
    request(&group, "PATCH", "0", r#"{"max_conns":2}"#).unwrap();
    let Poll::Ready(Waited::Server(first)) = poll(0) else { panic!("the oldest is served") };
    assert_eq!(short(&first), "1");
    request(&group, "POST", "", r#"{"server":"10.0.0.3","max_conns":1}"#).unwrap();
    let Poll::Ready(Waited::Server(second)) = poll(1) else { panic!("the next is served") };
    assert_eq!(short(&second), "3");
    // The last one may use any of three servers, and loses one after the other.
    request(&group, "DELETE", "2", "").unwrap();
    request(&group, "PATCH", "1", r#"{"drain":true}"#).unwrap();
    assert!(poll(2).is_pending(), "it keeps its place");
    request(&group, "PATCH", "0", r#"{"max_conns":1}"#).unwrap();
    held.retain(|lease| short(lease) != "1");
    assert!(poll(2).is_pending(), "one is still above the lower limit");
    drop(first);
    let Poll::Ready(Waited::Server(last)) = poll(2) else { panic!("a slot is free") };
    assert_eq!((short(&last), last.server().in_progress()), ("1".into(), 1));
}

#[test]
fn a_request_that_finds_other_servers_than_before_chooses_again() {
    let group = group("queue 10; server 10.0.0.1 max_conns=1;");
    let _held = lease(ask(&group, at(NOW)));
    let mut attempt = Attempt::default();
    assert!(matches!(group.choose(&mut attempt, &at(NOW)), ServerChoice::Busy));
    request(&group, "POST", "", r#"{"server":"10.0.0.2"}"#).unwrap();
    request(&group, "DELETE", "0", "").unwrap();
    let waited = group.wait(&mut attempt, NOW);
    assert!(waited.is_ok() || waited.err() == Some(crate::WaitRefused::Changed));
    assert_eq!(short(&lease(group.choose(&mut attempt, &at(NOW)))), "2");
}

#[test]
fn max_conns_may_be_set_on_a_server_without() {
    let group = group("server 10.0.0.1; server 10.0.0.2 down;");
    request(&group, "PATCH", "0", r#"{"max_conns":1}"#).unwrap();
    let held = lease(ask(&group, at(NOW)));
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::Busy));
    request(&group, "PATCH", "0", r#"{"max_conns":0}"#).unwrap();
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::Server(_)));
    drop(held);
}

#[test]
fn a_draining_server_keeps_the_requests_that_are_bound_to_it() {
    let group = group("sticky route $arg_r; server 10.0.0.1 route=a; server 10.0.0.2 route=b;");
    request(&group, "PATCH", "0", r#"{"drain":true}"#).unwrap();
    let bound = Ask { sticky: Some(b"a"), ..at(NOW) };
    assert_eq!(short(&lease(ask(&group, bound))), "1");
    assert_eq!(sequence(&group, 3, NOW), "2 2 2");
    request(&group, "PATCH", "1", r#"{"route":"a"}"#).unwrap();
    request(&group, "DELETE", "0", "").unwrap();
    assert_eq!(short(&lease(ask(&group, bound))), "2");
}

#[test]
fn requests_are_refused_as_by_nginx_plus() {
    let group = group("hash $arg_x; server 10.0.0.1; server 10.0.0.2 route=r;");
    for (method, id, body, expected) in [
        ("POST", "", "{", "415 JsonError"),
        ("POST", "", "[]", "400 UpstreamConfFormatError"),
        ("POST", "", "{}", "400 UpstreamConfFormatError"),
        ("POST", "", r#"{"server":"10.0.0.3","size":1}"#, "400 UpstreamConfFormatError"),
        ("POST", "", r#"{"server":["10.0.0.3"]}"#, "400 UpstreamConfFormatError"),
        ("POST", "", r#"{"server":"10.0.0.3/x"}"#, "400 UpstreamBadAddress"),
        ("POST", "", r#"{"server":"10.0.0.3\n"}"#, "400 UpstreamBadAddress"),
        ("POST", "", r#"{"server":"name"}"#, "400 UpstreamConfNoResolver"),
        ("POST", "", r#"{"server":"10.0.0.3","service":"a"}"#, "400 UpstreamBadAddress"),
        ("POST", "", r#"{"server":"10.0.0.3","weight":0}"#, "400 UpstreamBadWeight"),
        ("POST", "", r#"{"server":"10.0.0.3","weight":"1"}"#, "400 UpstreamBadWeight"),
        ("POST", "", r#"{"server":"10.0.0.3","max_conns":-1}"#, "400 UpstreamBadMaxConns"),
        ("POST", "", r#"{"server":"10.0.0.3","max_fails":1.5}"#, "400 UpstreamBadMaxFails"),
        ("POST", "", r#"{"server":"10.0.0.3","fail_timeout":"x"}"#, "400 UpstreamBadFailTimeout"),
        ("POST", "", r#"{"server":"10.0.0.3","slow_start":"5s"}"#, "400 UpstreamBadSlowStart"),
        ("POST", "", r#"{"server":"10.0.0.3","backup":true}"#, "400 UpstreamNoBackup"),
        ("POST", "", r#"{"server":"10.0.0.1:80"}"#, "409 EntryExists"),
        ("PATCH", "0", r#"{"server":"10.0.0.3"}"#, "400 UpstreamServerImmutable"),
        ("PATCH", "0", r#"{"backup":true}"#, "400 UpstreamConfFormatError"),
        ("PATCH", "2", r#"{"weight":2}"#, "404 UpstreamServerNotFound"),
        ("PATCH", "x", r#"{"weight":2}"#, "400 UpstreamBadServerId"),
        ("DELETE", "7", "", "404 UpstreamServerNotFound"),
        ("DELETE", "", "", "405 MethodDisabled"),
        ("PUT", "0", "{}", "405 MethodDisabled"),
    ] {
        assert_eq!(refusal(&group, method, id, body), expected, "{method} {id} {body}");
    }
    assert_eq!(lines(&group), "server 10.0.0.1;\nserver 10.0.0.2 route=r;\n", "nothing changed");
    let whole = r#"{"server":"10.0.0.1","backup":false,"weight":5,"id":0,"fail_timeout":"3s"}"#;
    request(&group, "PATCH", "0", whole).unwrap();
    let (stream, _) = load_of(Subsystem::Stream, "s", "server 10.0.0.1:1;").unwrap();
    assert_eq!(refusal(&stream, "POST", "", r#"{"server":"10.0.0.3"}"#), "400 UpstreamBadAddress");
    let route = r#"{"server":"10.0.0.3:1","route":"a"}"#;
    assert_eq!(refusal(&stream, "POST", "", route), "400 UpstreamConfFormatError");
}

#[test]
fn a_name_is_added_with_its_addresses_to_come() {
    let group = group("resolver 127.0.0.1; server 10.0.0.1;");
    let added = request(&group, "POST", "", r#"{"server":"app.test:81","weight":2}"#).unwrap();
    assert!(added.starts_with("{\"id\":1,\"server\":\"app.test:81\""), "{added}");
    let peer = |address: &str| ResolvedPeer {
        backup: false,
        address: address.parse().unwrap(),
        name: None,
        weight: 1,
    };
    group.found(1, &[peer("10.0.0.8:81"), peer("10.0.0.9:81")]);
    let ids = || group.servers().iter().map(|server| server.id()).collect::<Vec<_>>();
    let before = ids();
    assert!(before.iter().all(|id| [0, 1].contains(&line_of_server(*id))), "{before:?}");
    request(&group, "PATCH", &before[1].to_string(), r#"{"max_fails":7}"#).unwrap();
    assert_eq!(ids(), before);
    assert_eq!(group.servers()[2].terms.failure_policy.max_fails, 7);
    let child = before[1].to_string();
    assert_eq!(refusal(&group, "DELETE", &child, ""), "400 UpstreamServerImmutable");
    assert_eq!(
        lines(&group),
        "server 10.0.0.1;\nserver app.test:81 weight=2 max_fails=7 resolve;\n"
    );
    request(&group, "DELETE", "1", "").unwrap();
    assert_eq!(group.servers().len(), 1);
}

#[test]
fn a_state_file_is_read_as_it_was_written() {
    let text = "server 10.0.0.1;\n\
        server 10.0.0.2:81 weight=2 max_conns=3 max_fails=0 fail_timeout=30s slow_start=5s \
        route=a backup;\n\
        server \"unix:/run/a b.sock\" slow_start=1500ms \"route=x\\\"y\" down;\n\
        server 10.0.0.3 drain;\n";
    let group = load_state(Some(text), "").unwrap();
    assert_eq!(lines(&group), text);
    assert_eq!(group.servers().len(), 4);
    let empty = load_state(None, "").unwrap();
    assert!(matches!(ask(&empty, at(NOW)), ServerChoice::None));
    request(&empty, "POST", "", r#"{"server":"10.0.0.7"}"#).unwrap();
    assert_eq!(sequence(&empty, 1, NOW), "7");
}

#[test]
fn a_wrong_state_file_is_an_error_at_its_line() {
    for (text, lines, expected) in [
        (
            "server 10.0.0.1;\nserver 10.0.0.2 wieght=1;",
            "",
            "invalid parameter \"wieght=1\" in /state:2",
        ),
        ("listen 80;", "", "\"listen\" is not a server of a state file in /state:1"),
        ("server 10.0.0.1", "", "unexpected end of file"),
        ("server 10.0.0.1 backup;", "hash $a;", "balancing method does not support"),
        ("", "server 10.0.0.1;", "\"state\" directive cannot be used together with \"server\""),
    ] {
        let refused = load_state(Some(text), lines).unwrap_err();
        assert!(refused.starts_with(expected), "{text}: {refused}");
    }
}

#[test]
fn changes_survive_as_bytes_and_nothing_else_does() {
    let (group, _) =
        load("server 10.0.0.1 route=a; server unix:/a backup down; server 10.0.0.2 drain;")
            .unwrap();
    let operation = ServerOperation::Replace(group.roster());
    let change = GroupChange { subsystem: Subsystem::Stream, group: (*b"x").into(), operation };
    let bytes = change.to_bytes();
    assert_eq!(GroupChange::from_bytes(&bytes), Some(change));
    for end in 0..bytes.len() {
        assert_eq!(GroupChange::from_bytes(&bytes[..end]), None, "{end}");
    }
    assert_eq!(GroupChange::from_bytes(&[&bytes[..], b"x"].concat()), None);
}

#[test]
fn a_replaced_roster_keeps_the_servers_that_stay() {
    let (old, _) = load("server 10.0.0.1; server 10.0.0.2; server 10.0.0.1;").unwrap();
    let had = old.servers();
    let read = old.roster();
    let mut wanted = read.clone();
    wanted.apply(&ServerOperation::Remove { id: 0 });
    assert!(old.change(&ServerOperation::Replace(wanted), true));
    let have = old.servers();
    assert_eq!(have.len(), 2);
    assert!(Arc::ptr_eq(&have[0], &had[1]) && Arc::ptr_eq(&have[1], &had[2]));
    assert!(!old.change(&ServerOperation::Remove { id: 0 }, true));
    // The one that comes back takes the state that is free.
    assert!(old.change(&ServerOperation::Replace(read), true));
    assert_eq!(old.servers()[0].twin, 0);
}

#[test]
fn servers_keep_their_ids_in_the_next_configuration() {
    let roster = |lines: &str| load(lines).unwrap().0.roster();
    let mut before = roster("server 10.0.0.1; server 10.0.0.2; server 10.0.0.3;");
    before.apply(&ServerOperation::Remove { id: 1 });
    let after = roster("server 10.0.0.9; server 10.0.0.3 weight=4; server 10.0.0.1;");
    let after = after.with_ids_of(&before);
    let ids: Vec<u64> = after.lines().iter().map(|line| line.id).collect();
    assert_eq!((ids, after.next_id()), (vec![3, 2, 0], 4));
    assert_eq!(Roster::default().with_ids_of(&before).next_id(), 3);
}

/// Applies a list of all servers; what it changed, as `added changed removed unchanged`.
fn list(group: &Group, body: &str) -> Result<[usize; 4], SpecRefusal> {
    let rules = group.rules().unwrap();
    let (roster, difference) = rules.listed(body.as_bytes(), group.subsystem(), &group.roster())?;
    let operation = ServerOperation::Replace(roster);
    let (subsystem, name) = (group.subsystem(), group.name().into());
    let change = GroupChange { subsystem, group: name, operation };
    let change = GroupChange::from_bytes(&change.to_bytes()).unwrap();
    assert!(group.change(&change.operation, true));
    let RosterDifference { added, changed, removed, unchanged } = difference;
    Ok([added, changed, removed, unchanged])
}

#[test]
fn a_list_adds_changes_and_removes_in_one_change() {
    let group = group("server 10.0.0.1; server 10.0.0.2 weight=2; server 10.0.0.3 backup;");
    let held = lease(ask(&group, at(NOW)));
    let leased = held.server().clone();
    let body = r#"[{"server":"10.0.0.4"},{"server":"10.0.0.2:80"},{"server":"10.0.0.1"}]"#;
    assert_eq!(list(&group, body).unwrap(), [1, 1, 1, 1]);
    let expected = "server 10.0.0.4;\nserver 10.0.0.2;\nserver 10.0.0.1;\n";
    assert_eq!(lines(&group), expected, "in the order of the list, without what it leaves out");
    let ids: Vec<u64> = group.roster().lines().iter().map(|line| line.id).collect();
    assert_eq!(ids, [3, 1, 0], "those that stay keep their ids");
    let servers = group.servers();
    let same = servers.iter().find(|server| server.address() == leased.address()).unwrap();
    assert_eq!(same.in_progress(), 1, "requests go on and stay counted");
    assert_eq!(list(&group, body).unwrap(), [0, 0, 0, 3]);
    assert_eq!(list(&group, "[]").unwrap(), [0, 0, 3, 0]);
    drop(held);
    assert_eq!(leased.in_progress(), 0);
    assert_eq!(list(&group, body).unwrap(), [3, 0, 0, 0]);
    assert!(group.roster().lines().iter().all(|line| line.id > 3), "no id is used again");
}

#[test]
fn one_wrong_entry_refuses_the_whole_list() {
    let group = group("hash $arg_x; server 10.0.0.1;");
    for (body, expected) in [
        ("{}", "400 UpstreamConfFormatError a list is expected"),
        ("[", "415 JsonError"),
        ("[7]", "400 UpstreamConfFormatError entry 1 of the list: an object is expected"),
        (
            r#"[{"server":"10.0.0.1"},{"server":"10.0.0.2","weight":0}]"#,
            "400 UpstreamBadWeight entry 2 of the list: invalid \"weight\"",
        ),
        (
            r#"[{"server":"10.0.0.2"},{"server":"10.0.0.3"},{"server":"10.0.0.2:80"}]"#,
            "400 EntryExists entry 3 of the list: the server is that of entry 1",
        ),
        (
            r#"[{"server":"10.0.0.2","backup":true}]"#,
            "400 UpstreamNoBackup entry 1 of the list: the upstream has no backup",
        ),
        (
            r#"[{"weight":1}]"#,
            "400 UpstreamConfFormatError entry 1 of the list: missing \"server\" argument",
        ),
    ] {
        let refused = list(&group, body).unwrap_err();
        let told = format!("{} {} {}", refused.status, refused.code, refused.text);
        assert!(told.starts_with(expected), "{body}: {told}");
    }
    assert_eq!(lines(&group), "server 10.0.0.1;\n");
    let many = |count: usize| {
        let entry = |at: usize| format!("{{\"server\":\"10.0.{}.{}\"}}", at / 250, at % 250);
        format!("[{}]", (0..count).map(entry).collect::<Vec<_>>().join(","))
    };
    let refused = list(&group, &many(4097)).unwrap_err();
    assert_eq!((refused.status, refused.code), (400, "UpstreamOutOfMemory"));
    assert_eq!(list(&group, &many(4096)).unwrap(), [4095, 0, 0, 1]);
}

#[test]
fn paths_of_servers() {
    let parsed = |path: &str| {
        let ServersPath { subsystem, group, server } = ServersPath::parse(path.as_bytes())?;
        let server = server.map(|id| String::from_utf8(id.into()).unwrap());
        Some((subsystem, String::from_utf8(group.into()).unwrap(), server))
    };
    let http =
        |server: Option<&str>| Some((Subsystem::Http, "a".to_owned(), server.map(str::to_owned)));
    assert_eq!(parsed("http/upstreams/a/servers"), http(None));
    assert_eq!(parsed("/http/upstreams/a/servers/"), http(None));
    assert_eq!(parsed("http/upstreams/a/servers/3"), http(Some("3")));
    assert_eq!(parsed("http/upstreams/a/servers/3/"), http(Some("3")));
    let encoded = Some((Subsystem::Stream, "a/b".to_owned(), None));
    assert_eq!(parsed("stream/upstreams/a%2fb/servers"), encoded);
    for other in [
        "",
        "http",
        "http/upstreams/a",
        "http/upstreams//servers",
        "udp/upstreams/a/servers",
        "http/upstreams/a/servers/3/x",
        "http/upstreams/a/servers//x",
    ] {
        assert_eq!(parsed(other), None, "{other}");
    }
}
