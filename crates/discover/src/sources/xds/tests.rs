use serde_json::Value;
use wire::http2::Http2Code;
use wire::protobuf::{write_bytes, write_number};
use wire::xds::{ASSIGNMENT, CLUSTER, XdsAssignment};

use super::notes::XdsNotes;
use super::servers::servers;
use super::testing::{
    FakeControlPlane, FakeStream, assignment, changes_of, eds_cluster, lb_endpoint, localities,
    locality, message, shown_request, state_of,
};
use super::*;
use crate::grpc::GrpcPatience;
use crate::sources::testing::{lists, shown};
use crate::wanted::GroupKey;

const SOON: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::from_millis(20);

/// A machine, and what it answers.
struct Played {
    state: XdsState,
    is_delta: bool,
}

impl Played {
    fn new(is_delta: bool, groups: &[(&str, &str)]) -> Self {
        let key = |(cluster, group): &(&str, &str)| {
            ((*cluster).to_owned(), GroupKey::parse(group).unwrap())
        };
        let groups = groups.iter().map(key).collect();
        Self { state: XdsState::new(is_delta, groups, b"".to_vec()), is_delta }
    }

    fn shown(&self, requests: &[Vec<u8>]) -> Vec<String> {
        requests.iter().map(|request| shown_request(request, self.is_delta)).collect()
    }

    fn begin(&mut self) -> Vec<String> {
        let requests = self.state.begin();
        self.shown(&requests)
    }

    fn take(&mut self, response: &[u8]) -> Vec<String> {
        let mut requests = Vec::new();
        self.state.take(response, &mut requests).unwrap();
        self.shown(&requests)
    }

    fn wanted(&self) -> String {
        shown(&self.state.wanted())
    }
}

#[test]
fn the_state_of_the_world_replaces_clusters_and_keeps_endpoints_it_does_not_name() {
    let mut played = Played::new(false, &[]);
    assert_eq!(played.begin(), ["CDS node"]);
    let both = state_of(CLUSTER, "1", &[eds_cluster("app"), eds_cluster("db")]);
    assert_eq!(played.take(&both), ["CDS v=1 n=1", "EDS +of-app +of-db"]);
    assert!(played.state.wanted().values().all(|list| !list.is_known), "endpoints come later");
    let app = state_of(ASSIGNMENT, "a", &[assignment("of-app", &["10.0.0.1:80"])]);
    assert_eq!(played.take(&app), ["EDS v=a +of-app +of-db n=a"]);
    assert_eq!(played.state.missing().collect::<Vec<_>>(), ["of-db"]);
    let others = [assignment("of-db", &["::1:5"]), assignment("of-x", &["10.0.0.9:1"])];
    played.take(&state_of(ASSIGNMENT, "b", &others));
    let app = r#"app=[{"server":"10.0.0.1:80"}]"#;
    assert_eq!(played.wanted(), format!(r#"{app} db=[{{"server":"[::1]:5"}}]"#));
    let one = state_of(CLUSTER, "2", &[eds_cluster("app")]);
    assert_eq!(played.take(&one), ["CDS v=2 n=2", "EDS v=b +of-app n=b"]);
    assert_eq!(played.wanted(), app, "db is gone");
    assert_eq!(played.take(&state_of(CLUSTER, "3", &[])), ["CDS v=3 n=3"]);
    assert_eq!(played.wanted(), "");
    assert_eq!(played.begin(), ["CDS node"], "everything is to be told again");
}

#[test]
fn a_wrong_response_is_refused_as_a_whole_with_the_reason() {
    for is_delta in [false, true] {
        let mut played = Played::new(is_delta, &[]);
        let (app, version) = (eds_cluster("app"), if is_delta { "" } else { " v=1" });
        let of = |kind: &str, nonce: &str, resources: &[(&str, Vec<u8>)]| match is_delta {
            true => changes_of(kind, nonce, resources, &[]),
            false => {
                let plain: Vec<_> = resources.iter().map(|(_, one)| one.clone()).collect();
                state_of(kind, nonce, &plain)
            }
        };
        played.begin();
        played.take(&of(CLUSTER, "1", &[("app", app.clone())]));
        let good = ("of-app", assignment("of-app", &["10.0.0.1:80"]));
        played.take(&of(ASSIGNMENT, "1", std::slice::from_ref(&good)));
        let before = played.wanted();
        let names = if is_delta { "" } else { " +of-app" };
        for (resources, why) in [
            (
                vec![good.clone(), ("x", assignment("x", &["a.test:80"]))],
                "endpoints of x: \"a.test\" is not an address",
            ),
            (vec![good.clone(), good.clone()], "endpoints of of-app are there twice"),
            (
                vec![("x", b"\x12".to_vec())],
                if is_delta {
                    "endpoints x: the message is broken"
                } else {
                    "endpoints : the message is broken"
                },
            ),
        ] {
            let answer = played.take(&of(ASSIGNMENT, "2", &resources));
            assert_eq!(answer, [format!("EDS{version}{names} n=2 error={why}")]);
            assert!(played.state.is_rejecting());
        }
        let twice = [("app", app.clone()), ("app", app.clone())];
        let answer = played.take(&of(CLUSTER, "2", &twice));
        assert_eq!(answer, [format!("CDS{version} n=2 error=cluster app is there twice")]);
        assert_eq!(played.wanted(), before, "{is_delta}");
        assert!(played.state.take(b"\x0a", &mut Vec::new()).is_err(), "no response at all");
        assert!(played.state.take(&of("x", "3", &[]), &mut Vec::new()).is_err());
    }
}

#[test]
fn changes_are_added_and_a_new_stream_goes_on_from_their_versions() {
    let mut played = Played::new(true, &[]);
    assert_eq!(played.begin(), ["CDS node"]);
    let both = [("app", eds_cluster("app")), ("db", eds_cluster("db"))];
    let answer = played.take(&changes_of(CLUSTER, "1", &both, &[]));
    assert_eq!(answer, ["CDS n=1", "EDS +of-app +of-db"]);
    let app = [("of-app", assignment("of-app", &["10.0.0.1:80"]))];
    assert_eq!(played.take(&changes_of(ASSIGNMENT, "2", &app, &["of-db"])), ["EDS n=2"]);
    let one = r#"app=[{"server":"10.0.0.1:80"}]"#;
    assert_eq!(played.wanted(), format!("{one} db=[]"), "they are gone");
    let resumed = ["CDS node app@1 db@1", "EDS +of-app +of-db of-app@2"];
    assert_eq!(played.begin(), resumed);
    let answer = played.take(&changes_of(CLUSTER, "3", &[], &["db"]));
    assert_eq!(answer, ["CDS n=3", "EDS -of-db"]);
    assert_eq!(played.wanted(), one);
}

#[test]
fn named_clusters_become_groups_and_others_do_not() {
    let app = eds_cluster("app");
    let mut state = Played::new(false, &[("app", "stream/x")]);
    state.begin();
    let both = state_of(CLUSTER, "1", &[app.clone(), eds_cluster("db")]);
    // Some control planes do not answer who wants only a part.
    assert_eq!(state.take(&both), ["CDS v=1 n=1", "EDS +of-app +of-db"]);
    assert_eq!(state.wanted(), "stream/x=[]");
    let mut delta = Played::new(true, &[("app", "stream/x")]);
    assert_eq!(delta.begin(), ["CDS node +app"]);
    let both = [("app", app), ("db", eds_cluster("db"))];
    assert_eq!(delta.take(&changes_of(CLUSTER, "1", &both, &[])), ["CDS n=1", "EDS +of-app"]);
}

#[test]
fn clusters_with_their_own_endpoints_and_those_without_any() {
    let cluster = |name: &str, kind: u64, addresses: &[&str]| {
        message(|out| {
            write_bytes(1, name.as_bytes(), out);
            write_number(2, kind, out);
            write_bytes(24, b"", out);
            if !addresses.is_empty() {
                write_bytes(33, &assignment(name, addresses), out);
            }
        })
    };
    let mut played = Played::new(false, &[]);
    played.begin();
    let all = [
        cluster("fixed", 0, &["10.0.0.1:80", "/run/a.sock"]),
        cluster("names", 1, &["a.test:80"]),
        cluster("empty", 0, &[]),
        cluster("passed", 4, &[]),
    ];
    assert_eq!(played.take(&state_of(CLUSTER, "1", &all)), ["CDS v=1 n=1"]);
    let fixed = r#"fixed=[{"server":"10.0.0.1:80"},{"server":"unix:/run/a.sock"}]"#;
    assert_eq!(played.wanted(), format!(r#"empty=[] {fixed} names=[{{"server":"a.test:80"}}]"#));
    let notes = played.state.notes.lines().join("; ");
    assert!(notes.starts_with("transport_socket is not used (cluster fixed"), "{notes}");
    assert!(notes.contains("the destination that a connection had"), "{notes}");
    let wrong = state_of(CLUSTER, "2", &[cluster("fixed", 0, &["a.test:80"])]);
    let error = r#"CDS v=1 n=2 error=cluster fixed: "a.test" is not an address"#;
    assert_eq!(played.take(&wrong), [error]);
}

#[test]
fn health_weights_and_priorities_become_parameters() {
    let list = |places: &[Vec<u8>]| {
        let bytes = localities("app", places);
        let read = XdsAssignment::read(&bytes).unwrap();
        let list = servers(&read, false, &mut XdsNotes::default()).unwrap().json;
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        let server = |one: &Value| {
            let address = one["server"].as_str().unwrap();
            let last = address.trim_start_matches("10.0.0.").trim_end_matches(":80").to_owned();
            let weight =
                one["weight"].as_u64().map_or(String::new(), |weight| format!("*{weight}"));
            let flags = ["backup", "drain"].into_iter().filter(|flag| one[flag] == true);
            flags.fold(last + &weight, |text, flag| format!("{text} {flag}"))
        };
        list.iter().map(server).collect::<Vec<_>>().join(", ")
    };
    let (one, two) = (lb_endpoint("10.0.0.1:80", 1, 3), lb_endpoint("10.0.0.2:80", 3, 0));
    let sick = [2, 4].map(|health| lb_endpoint("10.0.0.3:80", health, 0));
    let all = [one.clone(), two.clone(), sick[0].clone(), sick[1].clone()];
    assert_eq!(list(&[locality(&all, 0, 0)]), "1*3, 2 drain");
    let plain = |last: u64| lb_endpoint(&format!("10.0.0.{last}:80"), 0, 0);
    let later = [locality(&[plain(1)], 0, 1), locality(&[plain(2)], 0, 2)];
    assert_eq!(list(&later), "1, 2 backup", "the first priority that there is");
    let degraded = locality(&[plain(1), lb_endpoint("10.0.0.2:80", 5, 0)], 0, 0);
    assert_eq!(list(&[degraded]), "1, 2 backup");
    // Localities share their weights among their endpoints.
    let shared = [locality(&[plain(1), plain(2)], 2, 0), locality(&[plain(3)], 3, 0)];
    assert_eq!(list(&shared), "1, 2, 3*3");
    let thirds = [locality(&[plain(1), plain(2), plain(4)], 1, 0), locality(&[plain(3)], 1, 0)];
    assert_eq!(list(&thirds), "1*333, 2*333, 3*1000, 4*333");
    let partly = [locality(&[plain(1)], 0, 0), locality(&[plain(3)], 9, 0)];
    assert_eq!(list(&partly), "1, 3", "one has none");
    let large = locality(&[plain(1), lb_endpoint("10.0.0.2:80", 0, 1 << 31)], 0, 0);
    assert_eq!(list(&[large]), "1, 2*1000");
    let twice = locality(&[lb_endpoint("10.0.0.1:80", 3, 0), plain(1), plain(1)], 0, 0);
    assert_eq!(list(&[twice]), "1");
}

fn source(plane: &FakeControlPlane, is_delta: bool) -> XdsSource {
    XdsSource::new(plane.place(), ClusterGroups::new(), is_delta, b"".to_vec(), None)
}

const ONE: &str = r#"app=[{"server":"10.0.0.1:80"}]"#;
const TWO: &str = r#"app=[{"server":"10.0.0.2:80"}]"#;

/// Answers the first requests with a cluster and a server.
fn introduce(stream: &mut FakeStream, address: &str) -> Option<()> {
    let is_delta = stream.path.contains("Delta");
    let (app, of_app) = (eds_cluster("app"), assignment("of-app", &[address]));
    stream.request()?;
    stream.head()?;
    match is_delta {
        true => stream.send(&changes_of(CLUSTER, "1", &[("app", app)], &[]))?,
        false => stream.send(&state_of(CLUSTER, "1", &[app]))?,
    }
    stream.request()?;
    stream.request()?;
    match is_delta {
        true => stream.send(&changes_of(ASSIGNMENT, "1", &[("of-app", of_app)], &[])),
        false => stream.send(&state_of(ASSIGNMENT, "1", &[of_app])),
    }
}

#[test]
fn lists_come_over_both_kinds_of_streams_and_again_after_a_cut() {
    for is_delta in [false, true] {
        let plane = FakeControlPlane::playing(|mut stream| {
            if stream.number == 0 {
                return introduce(&mut stream, "10.0.0.1:80");
            }
            introduce(&mut stream, "10.0.0.2:80")?;
            stream.idle()
        });
        let mut source = source(&plane, is_delta);
        let (told, why) = lists(&mut source, 9);
        assert_eq!((told, &*why), (vec![ONE.to_owned()], "the other side closed the connection"));
        // Endpoints of before stay until there are new ones.
        let (told, _) = lists(&mut source, 2);
        assert_eq!(told, [ONE, TWO], "{is_delta}");
    }
}

#[test]
fn a_refused_response_keeps_the_stream_and_the_next_one_counts() {
    let plane = FakeControlPlane::playing(|mut stream| {
        introduce(&mut stream, "10.0.0.1:80")?;
        stream.request()?;
        stream.send(&state_of(ASSIGNMENT, "2", &[assignment("of-app", &["nowhere:80"])]))?;
        stream.request()?;
        stream.send(&state_of(ASSIGNMENT, "3", &[assignment("of-app", &["10.0.0.2:80"])]))?;
        stream.idle()
    });
    let mut source = source(&plane, false);
    let (told, why) = lists(&mut source, 9);
    assert_eq!(told, [ONE]);
    assert!(why.contains("\"nowhere\" is not an address"), "{why}");
    assert_eq!(lists(&mut source, 1).0, [TWO]);
    let asked: Vec<_> = (0..5).map(|_| plane.asked()).collect();
    assert_eq!(
        asked[4],
        "EDS v=1 +of-app n=2 error=endpoints of of-app: \"nowhere\" is not an address"
    );
}

#[test]
fn ends_of_all_kinds_are_told() {
    let ended = |script: fn(FakeStream) -> Option<()>| {
        let plane = FakeControlPlane::playing(script);
        lists(&mut source(&plane, false), 9).1
    };
    let refused = ended(|mut stream| stream.end("16", "no token"));
    assert_eq!(refused, "the call ended: UNAUTHENTICATED no token");
    assert_eq!(ended(|mut stream| stream.end("0", "")), "the control plane ended the stream");
    let gone = ended(|mut stream| stream.go_away(Http2Code::NO_ERROR));
    assert_eq!(gone, "the control plane ended the stream");
    let angry = ended(|mut stream| stream.go_away(Http2Code(11)));
    assert_eq!(angry, "the other side ended the connection (HTTP/2 error 11)");
    let garbage = ended(|mut stream| {
        stream.head()?;
        stream.send(b"\xff\xff")?;
        stream.hold()
    });
    assert_eq!(garbage, "the message is broken");
    let noise = ended(|mut stream| {
        use std::io::Write;
        stream.socket.write_all(&[b'x'; 100]).ok()?;
        stream.hold()
    });
    assert_eq!(noise, "the other side sent too long frame");
}

#[test]
fn a_token_is_shown() {
    let folder = ::testing::Folder::new();
    let file = folder.write("token", "secret\n");
    let plane = FakeControlPlane::playing(|mut stream| {
        let shown = stream.authorization.clone().unwrap_or_default();
        stream.end("7", &shown)
    });
    let groups = ClusterGroups::new();
    let mut source = XdsSource::new(plane.place(), groups, false, b"".to_vec(), Some(file));
    assert_eq!(lists(&mut source, 1).1, "the call ended: PERMISSION_DENIED Bearer secret");
}

#[test]
fn silence_at_the_beginning_is_a_failure_but_missing_endpoints_are_not() {
    let plane = FakeControlPlane::playing(|mut stream| stream.idle());
    let mut silent = source(&plane, false);
    silent.patience.clusters = NOW;
    let (told, why) = lists(&mut silent, 1);
    assert!(told.is_empty() && why.contains("named no clusters"), "{why}");
    let plane = FakeControlPlane::playing(|mut stream| {
        stream.request()?;
        stream.head()?;
        stream.send(&state_of(CLUSTER, "1", &[eds_cluster("app")]))?;
        stream.idle()
    });
    let mut partly = source(&plane, false);
    partly.patience.endpoints = NOW;
    let ended = partly.watch(&mut |wanted| {
        assert!(wanted.values().all(|list| !list.is_known));
        Err("enough".to_owned())
    });
    assert_eq!(ended, Err("enough".to_owned()));
}

#[test]
fn a_resumed_stream_of_changes_that_says_nothing_confirms_the_lists() {
    let plane = FakeControlPlane::playing(|mut stream| match stream.number {
        0 => introduce(&mut stream, "10.0.0.1:80"),
        _ => stream.idle(),
    });
    let mut source = source(&plane, true);
    source.patience.resumed = NOW;
    lists(&mut source, 9);
    assert_eq!(lists(&mut source, 1).0, [ONE]);
}

#[test]
fn messages_larger_than_windows_pass_in_both_directions() {
    let plane = FakeControlPlane::playing(|mut stream| {
        stream.head()?;
        let request = stream.request()?;
        assert!(request.len() > 300_000);
        stream.send(&vec![b'x'; 3 << 20])?;
        stream.idle()
    });
    let mut call = GrpcStreamCall::open(&plane.place(), STREAM_PATH, &[]).unwrap();
    let name = "n".repeat(300_000);
    call.send(&message(|out| write_bytes(3, name.as_bytes(), out))).unwrap();
    let event = call.receive(Instant::now() + SOON).unwrap();
    assert_eq!(event, GrpcEvent::Message(vec![b'x'; 3 << 20]));
    assert_eq!(call.receive(Instant::now() + NOW), Ok(GrpcEvent::Silence));
}

#[test]
fn the_other_side_is_asked_whether_it_is_there() {
    let patience = GrpcPatience { ping_after: [NOW; 3], pong_max: NOW, stall_max: SOON };
    let plane = FakeControlPlane::playing(|mut stream| match stream.number {
        0 => stream.idle(),
        _ => stream.hold(),
    });
    let mut call = GrpcStreamCall::open(&plane.place(), STREAM_PATH, &[]).unwrap();
    call.patience = GrpcPatience { pong_max: SOON, ..patience };
    assert_eq!(call.receive(Instant::now() + SOON), Ok(GrpcEvent::Alive));
    let mut call = GrpcStreamCall::open(&plane.place(), STREAM_PATH, &[]).unwrap();
    call.patience = patience;
    let silent = Err("the other side does not answer".to_owned());
    assert_eq!(call.receive(Instant::now() + SOON), silent);
}

#[test]
fn a_control_plane_that_takes_no_data_is_given_up() {
    let plane = FakeControlPlane::playing(|mut stream| stream.hold());
    let mut call = GrpcStreamCall::open(&plane.place(), STREAM_PATH, &[]).unwrap();
    call.patience.stall_max = NOW;
    call.send(&[0; 200_000]).unwrap();
    let silent = Err("the other side does not answer".to_owned());
    assert_eq!(call.receive(Instant::now() + SOON), silent);
}
