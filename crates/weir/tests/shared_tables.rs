//! Tables that several servers share through a store, which is a fake one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use testing::{FakeStore, Peer, Server, eventually};

/// A server with a shared table.
struct Sharing(Server);

impl Sharing {
    fn start(peer: &Peer, content: Option<&str>) -> Self {
        Self(Server::start_with(|folder, address| {
            if let Some(content) = content {
                folder.write("z.json", content);
            }
            folder.configure(address, "events {}", &Self::site(peer, ""));
        }))
    }

    fn site(peer: &Peer, parameters: &str) -> String {
        format!(
            "keyval_zone zone=z:64k timeout=1h state=z.json
                         sync=valkey://{}?interval=20ms&timeout=500ms{parameters};
             keyval $arg_k $found zone=z;
             server {{
                 listen ADDRESS;
                 location / {{ return 200 [$found]; }}
                 location /api {{ api write=on; }}
                 location /status {{ prometheus; }}
             }}",
            peer.address
        )
    }

    fn found(&self, key: &str) -> String {
        self.0.get(&format!("/?k={key}"))
    }

    #[track_caller]
    fn change(&self, method: &str, path: &str, json: &str) {
        let mut stream = self.0.connect();
        let length = json.len();
        write!(
            stream,
            "{method} /api/9/http/keyvals/z{path} HTTP/1.1\r\nHost: weir.test\r\nConnection: close\
             \r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 20"), "{method} {json}: {reply}");
    }
}

fn await_found(servers: &[&Sharing], key: &str, value: &str) {
    for server in servers {
        let what = format!("{key}={value} at {}", server.0.folder.to_string_lossy());
        eventually(&what, || (server.found(key) == format!("[{value}]")).then_some(()));
    }
}

fn stored(store: &Arc<Mutex<FakeStore>>) -> usize {
    let store = store.lock().unwrap();
    store.hashes.get(&b"weir:keyval:z"[..]).map_or(0, |hash| hash.len() - 1)
}

#[test]
fn a_change_reaches_every_server_and_its_file() {
    let (store, peer) = FakeStore::start();
    let servers = [0, 1, 2].map(|_| Sharing::start(&peer, None));
    let [one, two, three] = &servers;
    one.change("POST", "", r#"{"a":"1","b":"2"}"#);
    assert_eq!(one.found("a"), "[1]", "no change waits for the store");
    await_found(&[one, two, three], "a", "1");
    await_found(&[one, two, three], "b", "2");
    two.change("PATCH", "", r#"{"a":"one"}"#);
    await_found(&[one, two, three], "a", "one");
    three.change("DELETE", "/b", "");
    await_found(&[one, two, three], "b", "");
    let state = three.0.folder.read("z.json");
    assert!(state.contains("\"a\": {\"value\": \"one\", \"expires_at\": "), "{state}");
    three.0.await_log(&format!("1 keys were set and 0 removed, by store {}/0", peer.address), 1);
    one.change("DELETE", "", "");
    await_found(&[one, two, three], "a", "");
    assert_eq!(stored(&store), 2, "removed keys stay for a while");
}

#[test]
fn a_server_that_was_away_learns_what_it_has_missed() {
    let (store, peer) = FakeStore::start();
    let one = Sharing::start(&peer, Some("{\n\"a\": \"1\",\n\"old\": \"1\"\n}\n"));
    one.0.await_log("is used", 1);
    eventually("both keys", || (stored(&store) == 2).then_some(()));
    one.change("PATCH", "", r#"{"a":"2"}"#);
    one.change("DELETE", "/old", "");
    // Its file is that of before, and has a key of its own.
    let content = "{\n\"a\": \"1\",\n\"old\": \"1\",\n\"own\": \"1\"\n}\n";
    let two = Sharing::start(&peer, Some(content));
    assert_eq!(two.found("a"), "[1]", "no start waits for the store");
    await_found(&[&one, &two], "a", "2");
    await_found(&[&one, &two], "old", "");
    await_found(&[&one, &two], "own", "1");
}

#[test]
fn servers_go_on_without_the_store_and_meet_again() {
    let (store, peer) = FakeStore::start();
    let servers = [0, 1].map(|_| Sharing::start(&peer, None));
    let [one, two] = &servers;
    one.change("POST", "", r#"{"a":"1"}"#);
    await_found(&[two], "a", "1");
    let silent = store.lock().unwrap();
    for server in &servers {
        let words = "no answer within 500 ms; changes of tables stay at this machine";
        server.0.await_log(words, 1);
    }
    one.change("POST", "", r#"{"of_one":"1"}"#);
    two.change("POST", "", r#"{"of_two":"1"}"#);
    assert_eq!([one.found("of_one"), one.found("of_two")], ["[1]", "[]"]);
    drop(silent);
    await_found(&[one, two], "of_one", "1");
    await_found(&[one, two], "of_two", "1");
    // A store that has lost everything gets it again.
    store.lock().unwrap().clear();
    eventually("all keys", || (stored(&store) == 3).then_some(()));
    await_found(&[one, two], "a", "1");
}

#[test]
fn another_address_and_no_address_are_a_reload_away() {
    let (store, peer) = FakeStore::start();
    let (other_store, other_peer) = FakeStore::start();
    let server = Sharing::start(&peer, None);
    server.change("POST", "", r#"{"a":"1"}"#);
    eventually("the key", || (stored(&store) == 1).then_some(()));
    server.0.configure("", &Sharing::site(&other_peer, ""));
    server.0.reload();
    eventually("the key in the other store", || (stored(&other_store) == 1).then_some(()));
    let alone = Sharing::site(&peer, "").replace("sync=", "# ");
    server.0.configure("", &alone.replacen("state=z.json", "state=z.json;", 1));
    server.0.reload();
    server.change("POST", "", r#"{"b":"1"}"#);
    server.0.configure("", &Sharing::site(&peer, ""));
    server.0.reload();
    eventually("both keys", || (stored(&store) == 2).then_some(()));
    // So does another process.
    server.0.configure("worker_processes 2;", &Sharing::site(&peer, ""));
    server.0.reload();
    server.change("POST", "", r#"{"c":"1"}"#);
    eventually("three keys", || (stored(&store) == 3).then_some(()));
}

#[test]
fn what_a_store_has_besides_is_left_out_and_counted() {
    let (store, peer) = FakeStore::start();
    let server = Sharing::start(&peer, None);
    server.0.await_log("is used", 1);
    {
        let mut store = store.lock().unwrap();
        let hash = store.hashes.entry(b"weir:keyval:z".to_vec()).or_default();
        hash.insert(b"garbage".to_vec(), b"\xff\0".to_vec());
        for number in 0..400 {
            let record = "1795722245000-0000000000c0ffee set - 0\nvalue";
            hash.insert(format!("key{number}").into_bytes(), record.into());
        }
    }
    // It compares everything after a reload.
    server.0.reload();
    server.0.await_log("keyval zone \"z\" lacks keys of store ", 1);
    for counted in ["keys_refused", "keys_invalid"] {
        eventually(counted, || {
            let page = server.0.get("/status");
            let name = format!("weir_store_{counted}_total{{");
            let line = page.lines().find(|line| line.starts_with(&name))?;
            (!line.ends_with(" 0")).then_some(())
        });
    }
    server.change("DELETE", "", "");
    server.change("POST", "", r#"{"a":"1"}"#);
    assert_eq!(server.found("a"), "[1]");
}
