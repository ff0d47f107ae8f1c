use conf::MemoryFiles;
use net::Mailbox;
use session::steering::{SteeringCall, SteeringReply, SteeringRequest};
use zones::Zones;

use super::{
    AcceptedWhat, Rosters, StateWrite, Steering, StoredState, WorkerChange, apply_to_table,
};
use crate::config_origin::ConfigOrigin;
use crate::load;
use crate::subsystems::Sites;

fn sites(http: &str) -> Sites {
    sites_in(http, MemoryFiles::default())
}

fn sites_in(http: &str, files: MemoryFiles) -> Sites {
    let text = format!("error_log stderr emerg; events {{}} http {{ {http} }}");
    let mut files = files.with("/conf", text);
    let origin = ConfigOrigin { conf: b"/conf"[..].into(), ..ConfigOrigin::default() };
    load::load_quietly(&Zones::default(), &origin, &mut files).unwrap().sites
}

/// The deciding process, without files, workers and sockets.
struct Decider {
    steering: Steering,
    sites: Sites,
    rosters: Rosters,
}

const SERVERS: &str = "http/upstreams/a/servers";

impl Decider {
    fn new(lines: &str) -> Self {
        let sites = sites(&format!("upstream a {{ {lines} }}"));
        Self { steering: Steering::default(), sites, rosters: Rosters::default() }
    }

    fn call(&mut self, request: SteeringRequest) -> (Option<Vec<StateWrite>>, Replies) {
        let (reply, replies) = net::mailbox();
        let call = SteeringCall { request, reply };
        (self.steering.call(call, &self.sites, &self.rosters), Replies(replies))
    }

    /// Makes the changes that were decided.
    fn make(&mut self, stored: Vec<StoredState>) {
        for change in self.steering.stored(stored) {
            for what in &change.whats {
                self.rosters.apply(what, &self.sites);
                if let AcceptedWhat::Workers(WorkerChange::Keyval(change)) = what {
                    apply_to_table(change, &self.sites);
                }
            }
            change.answer(0);
        }
    }

    /// The answer to a request whose change is made at once.
    fn answer(&mut self, request: SteeringRequest) -> SteeringReply {
        let (writes, mut replies) = self.call(request);
        if writes.is_some() {
            self.make(Vec::new());
        }
        replies.next().unwrap()
    }

    fn lines(&self) -> String {
        let group = self.sites.groups().next().unwrap();
        String::from_utf8(self.rosters.roster(group).to_text()).unwrap()
    }
}

struct Replies(Mailbox<SteeringReply>);

impl Replies {
    fn next(&mut self) -> Option<SteeringReply> {
        let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
        match self.0.poll_next(cx) {
            std::task::Poll::Ready(reply) => reply,
            std::task::Poll::Pending => None,
        }
    }
}

fn request(method: &str, path: &str, body: &str) -> SteeringRequest {
    SteeringRequest {
        method: method.as_bytes().into(),
        path: path.as_bytes().into(),
        body: body.as_bytes().into(),
        content_type: (*b"application/json; charset=utf-8").into(),
        ..SteeringRequest::default()
    }
}

fn add(address: &str) -> SteeringRequest {
    request("POST", SERVERS, &format!("{{\"server\":\"{address}\"}}"))
}

#[test]
fn calls_wait_while_files_are_written_and_are_then_decided_together() {
    let mut decider = Decider::new("state /nowhere/a;");
    let (writes, mut first) = decider.call(add("10.0.0.1"));
    assert_eq!(writes.unwrap().len(), 1);
    let (writes, mut second) = decider.call(add("10.0.0.2"));
    assert!(writes.is_none());
    let (writes, mut third) = decider.call(add("10.0.0.2"));
    assert!(writes.is_none() && first.next().is_none());
    decider.make(Vec::new());
    assert_eq!(first.next().unwrap().status, 201);
    let writes = decider.steering.next(&decider.sites, &decider.rosters);
    assert_eq!(writes.unwrap().len(), 1, "one file for both");
    assert_eq!(third.next().unwrap().status, 409, "the second one has the same address");
    decider.make(Vec::new());
    assert_eq!(second.next().unwrap().status, 201);
    assert_eq!(decider.lines(), "server 10.0.0.1;\nserver 10.0.0.2;\n");
}

#[test]
fn a_change_that_is_not_kept_is_not_made() {
    let mut decider = Decider::new("state /nowhere/a;");
    let (writes, mut replies) = decider.call(add("10.0.0.1"));
    let stored: Vec<_> = writes.unwrap().into_iter().map(StateWrite::run).collect();
    assert!(decider.steering.stored(stored).is_empty());
    assert_eq!(replies.next().unwrap().status, 500);
    assert_eq!(decider.lines(), "");
}

#[test]
fn requests_from_elsewhere_and_of_another_kind_are_refused() {
    let mut decider = Decider::new("server 10.0.0.9;");
    let origin = |origin: &str, host: &str| SteeringRequest {
        origin: origin.as_bytes().into(),
        host: host.as_bytes().into(),
        ..add("10.0.0.1")
    };
    for (request, status) in [
        (origin("https://evil.test", "weir.test"), 403),
        (origin("null", ""), 403),
        (origin("http://", ""), 403),
        (SteeringRequest { content_type: Box::default(), ..add("10.0.0.1") }, 415),
        (SteeringRequest { content_type: (*b"text/plain").into(), ..add("10.0.0.1") }, 415),
        (SteeringRequest { body: vec![b' '; (1 << 20) + 1].into(), ..add("10.0.0.1") }, 413),
        (SteeringRequest { owner: (*b"a\nb").into(), ..add("10.0.0.1") }, 400),
        (request("PUT", &format!("{SERVERS}/0"), "{}"), 405),
        (request("POST", "http/upstreams/b/servers", "{}"), 404),
        (request("POST", "http/keyvals/b", "{}"), 404),
        (request("GET", "http/upstreams/a/servers/7", ""), 404),
        (request("DELETE", "http/upstreams/b/owner", ""), 404),
        (request("POST", "http/upstreams/a/owner", "{}"), 405),
    ] {
        let what = format!("{request:?}");
        assert_eq!(decider.answer(request).status, status, "{what}");
    }
    assert_eq!(decider.answer(origin("https://weir.test", "Weir.test")).status, 201);
}

#[test]
fn a_claimed_group_is_changed_by_its_owner_alone() {
    let mut decider = Decider::new("server 10.0.0.9;");
    let by = |owner: &str, address: &str| SteeringRequest {
        owner: owner.as_bytes().into(),
        ..add(address)
    };
    assert_eq!(decider.answer(by("", "10.0.0.1")).status, 201);
    assert_eq!(decider.answer(by("one", "10.0.0.2")).status, 201);
    assert_eq!(decider.answer(by("one", "10.0.0.3")).status, 201);
    for other in ["", "two"] {
        let refused = decider.answer(by(other, "10.0.0.4"));
        assert_eq!(refused.status, 409);
        let text = String::from_utf8(refused.json).unwrap();
        assert!(text.contains("\"code\":\"UpstreamOwned\""), "{text}");
    }
    assert_eq!(decider.answer(request("DELETE", "http/upstreams/a/owner", "")).status, 204);
    assert_eq!(decider.answer(by("two", "10.0.0.4")).status, 201);
}

/// A list of a version; the servers are the last parts of their addresses.
fn list(version: &str, owner: &str, servers: &[u8]) -> SteeringRequest {
    let entries = servers.iter().map(|last| format!("{{\"server\":\"10.0.0.{last}\"}}"));
    let body = format!("[{}]", entries.collect::<Vec<_>>().join(","));
    SteeringRequest {
        version: version.as_bytes().into(),
        owner: owner.as_bytes().into(),
        ..request("PUT", SERVERS, &body)
    }
}

impl Decider {
    /// The version that a list of the servers tells.
    fn version(&mut self) -> String {
        self.answer(request("GET", SERVERS, "")).fields.concat()
    }

    fn told(&mut self, request: SteeringRequest) -> String {
        let reply = self.answer(request);
        assert_eq!(reply.status, 200);
        String::from_utf8(reply.json).unwrap()
    }
}

#[test]
fn a_version_is_read_once_and_other_changes_end_it() {
    let mut decider = Decider::new("server 10.0.0.1;");
    let first = decider.told(list("7", "d", &[1, 2]));
    let expected = r#"{"version":"7","added":1,"changed":0,"removed":0,"unchanged":1}"#;
    assert_eq!(first, expected);
    assert_eq!(decider.version(), "Weir-Version: 7");
    let again = SteeringRequest { body: (*b"not even read").into(), ..list("7", "d", &[]) };
    let expected = r#"{"version":"7","added":0,"changed":0,"removed":0,"unchanged":2}"#;
    assert_eq!(decider.told(again), expected);
    assert_eq!(decider.answer(list("7", "", &[1, 2])).status, 409);
    assert_eq!(decider.answer(list("a\nb", "d", &[1])).status, 400);
    let by_hand = SteeringRequest { owner: (*b"d").into(), ..add("10.0.0.3") };
    assert_eq!(decider.answer(by_hand).status, 201);
    assert_eq!(decider.version(), "", "the servers are those of no list");
    assert!(decider.told(list("7", "d", &[1, 2])).contains("\"removed\":1"));
    assert_eq!(decider.lines(), "server 10.0.0.1;\nserver 10.0.0.2;\n");
    assert!(decider.told(list("", "d", &[2])).contains("\"version\":\"\""));
    assert_eq!(decider.version(), "");
}

#[test]
fn the_same_list_of_an_owner_claims_the_group_again() {
    let mut decider = Decider::new("server 10.0.0.1;");
    decider.told(list("7", "d", &[1]));
    let owned = |decider: &mut Decider| decider.answer(list("8", "other", &[1])).status == 409;
    assert!(owned(&mut decider), "although no server has changed");
    decider.answer(request("DELETE", "http/upstreams/a/owner", ""));
    decider.told(list("7", "d", &[1]));
    assert!(owned(&mut decider));
}

#[test]
fn an_empty_list_is_refused_unless_it_is_meant() {
    let mut decider = Decider::new("server 10.0.0.1;");
    let refused = decider.answer(list("1", "", &[]));
    let text = String::from_utf8(refused.json).unwrap();
    assert_eq!((refused.status, text.contains("UpstreamEmptyList")), (400, true), "{text}");
    assert_eq!(decider.lines(), "server 10.0.0.1;\n");
    let meant = SteeringRequest { args: (*b"allow_empty=1").into(), ..list("1", "", &[]) };
    assert!(decider.told(meant).contains("\"removed\":1"));
    assert_eq!(decider.lines(), "");
}

#[test]
fn a_list_that_cannot_be_kept_changes_nothing() {
    let mut decider = Decider::new("state /nowhere/a;");
    let (writes, mut replies) = decider.call(list("1", "d", &[1]));
    let stored: Vec<_> = writes.unwrap().into_iter().map(StateWrite::run).collect();
    assert!(decider.steering.stored(stored).is_empty());
    assert_eq!(replies.next().unwrap().status, 500);
    assert_eq!((decider.lines(), decider.version()), (String::new(), String::new()));
    assert_eq!(decider.answer(list("2", "other", &[1])).status, 200, "nobody has claimed it");
}

#[test]
fn a_reload_keeps_the_version_as_long_as_the_servers_stay() {
    let mut decider = Decider::new("server 10.0.0.1;");
    decider.told(list("7", "d", &[1, 2]));
    let version_in = |http: &str| {
        let next = sites(http);
        let rosters = decider.rosters.carried_over(&decider.sites, &next);
        rosters.version(next.groups().next().unwrap()).map(<[u8]>::to_vec)
    };
    assert_eq!(version_in("upstream a { server 10.0.0.1; }"), Some(b"7".to_vec()));
    assert_eq!(version_in("upstream a { server 10.0.0.1; ip_hash; }"), None);
    let kept = "upstream a { server 10.0.0.1; server 10.0.0.2; }";
    assert_eq!(version_in(kept), Some(b"7".to_vec()), "the new text has the same servers");
}

#[test]
fn what_the_next_configuration_keeps() {
    let mut decider = Decider::new("server 10.0.0.1; server 10.0.0.2;");
    decider.answer(add("10.0.0.3"));
    decider.answer(request("DELETE", &format!("{SERVERS}/0"), ""));
    let lines_in = |http: &str| {
        let next = sites(http);
        let rosters = decider.rosters.carried_over(&decider.sites, &next);
        let group = next.groups().next().unwrap();
        let roster = rosters.roster(group);
        let ids = roster.lines().iter().map(|line| line.id);
        (String::from_utf8(roster.to_text()).unwrap(), ids.collect::<Vec<_>>())
    };
    let same = "upstream a { server 10.0.0.1; server 10.0.0.2; }";
    let kept = ("server 10.0.0.2;\nserver 10.0.0.3;\n".to_owned(), vec![1, 2]);
    assert_eq!(lines_in(same), kept);
    let other = "upstream a { server 10.0.0.1; server 10.0.0.2 weight=2; }";
    let read = ("server 10.0.0.1;\nserver 10.0.0.2 weight=2;\n".to_owned(), vec![3, 1]);
    assert_eq!(lines_in(other), read, "the text has changed");
}

#[test]
fn changes_bring_another_process_up_to_date() {
    let mut decider = Decider::new("server 10.0.0.1;");
    decider.answer(add("10.0.0.2"));
    let changes = decider.rosters.changes();
    assert_eq!(changes.len(), 1);
    let other = sites("upstream a { server 10.0.0.1; }");
    super::catch_up(&changes, &other);
    let group = other.groups().next().unwrap();
    assert_eq!(String::from_utf8(group.roster().to_text()).unwrap(), decider.lines());
    let WorkerChange::Servers(change) = &changes[0] else { panic!("a change of servers") };
    assert!(group.change(&change.operation, true), "once more");
    assert_eq!(group.servers().len(), 2);
}

#[test]
fn a_table_and_a_group_share_a_write() {
    let http = "keyval_zone zone=z:32k state=/nowhere/z; upstream a { state /nowhere/a; }";
    let mut decider = Decider { sites: sites(http), ..Decider::new("server 10.0.0.1;") };
    let set =
        |value: &str| request("POST", "http/keyvals/z", &format!("{{\"{value}\":\"{value}\"}}"));
    let (writes, mut first) = decider.call(set("a"));
    assert_eq!(writes.unwrap().len(), 1);
    let later = [set("b"), add("10.0.0.1"), set("c"), set("a")].map(|one| decider.call(one).1);
    decider.make(Vec::new());
    assert_eq!(first.next().unwrap().status, 201);
    let writes = decider.steering.next(&decider.sites, &decider.rosters).unwrap();
    assert_eq!(writes.len(), 2, "one file each");
    let stored: Vec<_> = writes.into_iter().map(StateWrite::run).collect();
    assert!(decider.steering.stored(stored).is_empty(), "neither can be written");
    assert_eq!(later.map(|mut replies| replies.next().unwrap().status), [500, 500, 500, 409]);
    assert!(!decider.steering.is_storing());
}

/// A deciding process with a table that has a state file in a folder.
fn keeper(folder: &testing::Folder) -> Decider {
    let path = folder.join("z");
    let http = format!("keyval_zone zone=z:64k state={};", path.display());
    let mut files = MemoryFiles::default();
    for path in [path.clone(), folder.join("z.journal")] {
        if let Ok(text) = std::fs::read(&path) {
            files = files.with(path.to_str().unwrap(), text);
        }
    }
    Decider { sites: sites_in(&http, files), ..Decider::new("server 10.0.0.1;") }
}

impl Decider {
    /// Makes a change of the table that is kept.
    fn keep(&mut self, method: &str, body: &str) {
        let (writes, mut replies) = self.call(request(method, "http/keyvals/z", body));
        let stored = writes.unwrap().into_iter().map(StateWrite::run).collect();
        self.make(stored);
        assert!(replies.next().unwrap().status < 300, "{method} {body}");
    }

    /// The table as its state file would have it.
    fn table(&self) -> String {
        let zone = self.sites.keyval_zones().next().unwrap();
        let text = zone.table().to_state(session::keyval::KeyvalNow::read());
        String::from_utf8(text).unwrap()
    }
}

#[test]
fn changes_of_a_large_table_are_appended_until_they_are_as_long_as_it() {
    let folder = testing::Folder::new();
    let journal = || std::fs::read_to_string(folder.join("z.journal")).ok();
    let mut decider = keeper(&folder);
    decider.keep("POST", r#"{"a":"1"}"#);
    decider.keep("POST", r#"{"b":"1"}"#);
    assert_eq!((folder.read("z"), journal()), (decider.table(), None), "it is short");
    decider.keep("POST", &format!("{{\"c\":\"{}\"}}", "x".repeat(200)));
    let whole = decider.table();
    decider.keep("PATCH", r#"{"a":"2"}"#);
    decider.keep("PATCH", r#"{"b":null}"#);
    assert_eq!(folder.read("z"), whole);
    let lines = journal().unwrap();
    assert!(lines.ends_with("\n[{\"a\": \"2\"}]\n[{\"b\": null}]\n"), "{lines}");
    assert_eq!(keeper(&folder).table(), decider.table(), "whoever starts has all of it");
    for number in 0..30 {
        decider.keep("POST", &format!("{{\"n{number}\":\"1\"}}"));
        assert!(journal().unwrap_or_default().len() <= 2 * folder.read("z").len());
        assert_eq!(keeper(&folder).table(), decider.table(), "{number}");
    }
    assert!(folder.read("z").contains("n5"), "it was written whole in between");
    decider.keep("DELETE", "");
    assert_eq!((folder.read("z"), journal()), ("{\n}\n".to_owned(), None));
}

#[test]
fn nothing_is_appended_to_a_file_that_others_have_written() {
    let folder = testing::Folder::new();
    let mut decider = keeper(&folder);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(200));
    decider.keep("POST", &long);
    decider.keep("POST", r#"{"b":"1"}"#);
    folder.write("z", "{\"other\": \"1\"}");
    decider.keep("POST", r#"{"c":"1"}"#);
    assert_eq!(folder.read("z"), decider.table());
    decider.keep("POST", r#"{"d":"1"}"#);
    let journal = folder.read("z.journal");
    folder.write("z.journal", format!("{journal}x"));
    decider.keep("POST", r#"{"e":"1"}"#);
    assert_eq!(folder.read("z"), decider.table());
    assert!(!folder.join("z.journal").exists());
    // Another process begins with the whole file.
    let mut next = keeper(&folder);
    next.keep("POST", r#"{"f":"1"}"#);
    assert_eq!(folder.read("z"), next.table());
}
