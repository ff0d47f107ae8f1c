//! Purging by requests: by key, by the beginning of keys, by tag, and while a reply is fetched.

use std::io::Read as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use testing::Folder;

use crate::backend::testing::{TestBackend, text, values};
use crate::h1::tests::Server;

struct Purged {
    folder: Folder,
    _backend: TestBackend,
    server: Server,
}

impl Purged {
    /// A cache whose key is the path. `lines` are in its location, `others` beside it.
    fn answering(
        lines: &str,
        others: &str,
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        let folder = Folder::new();
        let backend = TestBackend::answering(answer);
        let (address, path) = (backend.address(), folder.display());
        std::fs::create_dir(folder.join("cache")).unwrap();
        let server = Server::start(format!(
            "error_log e.log info;
             proxy_cache_path {path}/cache keys_zone=one:1m tags=Surrogate-Key,Cache-Groups;
             proxy_temp_path {path}/temp;
             server {{
                 location / {{
                     add_header X-Cache $upstream_cache_status always;
                     proxy_pass http://{address}; proxy_cache one; proxy_cache_valid any 1m;
                     proxy_cache_key $uri; {lines}
                 }}
                 {others}
             }}"
        ));
        Self { folder, _backend: backend, server }
    }

    /// A backend whose replies have the number of the request, and `fields`.
    fn of(fields: &str, lines: &str, others: &str) -> Self {
        let (fields, asked) = (fields.to_owned(), AtomicU32::new(0));
        Self::answering(lines, others, move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            format!("HTTP/1.1 200 OK\n{fields}Content-Length: 2\n\nn{number}")
        })
    }

    fn ask(&self, method: &str, path: &str, fields: &str) -> String {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n");
        self.server.ask(&request)
    }

    /// The status of the cache and the body.
    fn get(&self, path: &str) -> String {
        self.get_with(path, "")
    }

    fn get_with(&self, path: &str, fields: &str) -> String {
        let reply = self.ask("GET", path, fields);
        let body = reply.split("\r\n\r\n").nth(1).unwrap_or_default();
        format!("{} {body}", values(&reply, "X-Cache").join(","))
    }

    fn status(&self, method: &str, path: &str, fields: &str) -> u16 {
        self.ask(method, path, fields).split(' ').nth(1).unwrap().parse().unwrap()
    }
}

#[test]
fn a_key_is_purged_as_in_plus() {
    let purged = Purged::of("", "proxy_cache_purge $http_x_purge;", "");
    assert_eq!([purged.get("/a"), purged.get("/b")], ["MISS n1", "MISS n2"]);
    assert_eq!(purged.status("GET", "/a", "X-Purge: 0\r\n"), 200);
    for method in ["PURGE", "GET"] {
        assert_eq!(purged.status(method, "/c", "X-Purge: 1\r\n"), 404);
    }
    assert_eq!(purged.status("PURGE", "/a", "X-Purge: 1\r\n"), 204);
    assert_eq!([purged.get("/a"), purged.get("/b")], ["MISS n3", "HIT n2"]);
    assert_eq!(purged.status("PURGE", "/*", "X-Purge: 1\r\n"), 204);
    assert_eq!([purged.get("/a"), purged.get("/b")], ["MISS n4", "MISS n5"]);
    assert_eq!([purged.get("/a"), purged.get("/b")], ["HIT n4", "HIT n5"]);
}

#[test]
fn a_method_purges_as_in_the_module() {
    let purged = Purged::of("", "proxy_cache_purge PURGE from all;", "");
    purged.get("/a<b>");
    let reply = purged.ask("PURGE", "/a<b>", "");
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("Key: /a&lt;b&gt;"), "{reply}");
    assert_eq!(purged.status("PURGE", "/a<b>", ""), 412);
    assert_eq!([purged.get("/a<b>"), purged.get("/c")], ["MISS n2", "MISS n3"]);
    let purged = Purged::of("", "proxy_cache_purge on from 10.0.0.1;", "");
    purged.get("/a");
    assert_eq!(purged.status("PURGE", "/a", ""), 403);
    assert_eq!(purged.get("/a"), "HIT n1");
    let purged = Purged::of("", "proxy_cache_purge DELETE purge_all from all;", "");
    purged.get("/a");
    assert_eq!(purged.status("DELETE", "/b", ""), 200);
    assert_eq!(purged.get("/a"), "MISS n2");
}

#[test]
fn a_location_of_its_own_purges_a_key() {
    let location = "location ~ ^/purge(/.*) {
        cache_purge_response_type json; proxy_cache_purge one $1;
        location ~ /purge/x { return 200; }
    }";
    let purged = Purged::of("", "", location);
    purged.get("/a");
    assert_eq!(purged.status("GET", "/purge/b", ""), 412);
    let reply = purged.ask("GET", "/purge/a", "");
    assert!(reply.ends_with("{\"Key\":\"/a\",\"Status\":\"purged\"}\n"), "{reply}");
    assert!(reply.contains("\r\nContent-Type: application/json\r\n"), "{reply}");
    assert_eq!(purged.get("/a"), "MISS n2");
    assert_eq!(purged.status("GET", "/purge/x", ""), 200, "it does not go on to those inside");
    assert_eq!(purged.get("/a"), "HIT n2");
}

#[test]
fn all_variants_of_a_key_are_purged_at_once() {
    let asked = AtomicU32::new(0);
    let purged = Purged::answering("proxy_cache_purge on from all;", "", move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        format!("HTTP/1.1 200 OK\nVary: Accept-Language\nContent-Length: 2\n\nn{number}")
    });
    let get = |language| purged.get_with("/a", &format!("Accept-Language: {language}\r\n"));
    assert_eq!([get("en"), get("de"), get("de")], ["MISS n1", "MISS n2", "HIT n2"]);
    assert_eq!(purged.status("PURGE", "/a", "Accept-Language: fr\r\n"), 200);
    assert_eq!([get("de"), get("en"), get("en")], ["MISS n3", "MISS n4", "HIT n4"]);
}

#[test]
fn replies_are_purged_by_their_tags_which_clients_do_not_get() {
    let tags = |path: &str| match path {
        "/a" => "Surrogate-Key: one two\n",
        "/b" => "Cache-Groups: \"two\", \"three\"\n",
        _ => "",
    };
    let asked = AtomicU32::new(0);
    let location = "location = /tags { proxy_cache_purge_tags one $http_tags; }";
    let purged = Purged::answering("", location, move |request| {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let fields = tags(request.split(' ').nth(1).unwrap());
        format!("HTTP/1.1 200 OK\n{fields}Content-Length: 2\n\nn{number}")
    });
    let get = || ["/a", "/b", "/c"].map(|path| purged.get(path));
    assert_eq!(get(), ["MISS n1", "MISS n2", "MISS n3"]);
    assert_eq!(purged.status("POST", "/tags", "Tags: ,\r\n"), 400);
    assert_eq!(purged.status("POST", "/tags", "Tags: four three\r\n"), 204);
    assert_eq!(get(), ["HIT n1", "MISS n4", "HIT n3"]);
    assert_eq!(purged.status("POST", "/tags", "Tags: one\r\n"), 204);
    assert_eq!(get(), ["MISS n5", "HIT n4", "HIT n3"]);
    let [a, b] = ["/a", "/b"].map(|path| purged.ask("GET", path, ""));
    assert!(!a.contains("Surrogate-Key") && b.contains("Cache-Groups: \"two\""), "{a}{b}");
    let passed = Purged::of("Surrogate-Key: t\n", "proxy_pass_header surrogate-key;", "");
    assert!(passed.ask("GET", "/a", "").contains("Surrogate-Key: t\r\n"));
}

#[test]
fn a_fill_that_began_before_a_purge_is_not_kept() {
    for rule in ["/a", "/*", "#t", "/other"] {
        let both = Arc::new(Barrier::new(2));
        let of_backend = both.clone();
        let asked = AtomicU32::new(0);
        let location = "location = /tags { proxy_cache_purge_tags one t; }";
        let lines = "proxy_cache_purge on from all;";
        let purged = Purged::answering(lines, location, move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            if number == 1 {
                of_backend.wait();
                of_backend.wait();
            }
            format!("HTTP/1.1 200 OK\nSurrogate-Key: t\nContent-Length: 2\n\nn{number}")
        });
        let mut client = purged.server.connect();
        client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        both.wait();
        let status = match rule {
            "#t" => purged.status("GET", "/tags", ""),
            path => purged.status("PURGE", path, ""),
        };
        assert!([200, 204, 412].contains(&status), "{rule} {status}");
        both.wait();
        assert!(client.rest().ends_with("n1"));
        let expected = if rule == "/other" { "HIT n1" } else { "MISS n2" };
        assert_eq!(purged.get("/a"), expected, "{rule}");
    }
}

#[test]
fn a_purge_leaves_those_who_follow_a_fill_alone_and_nobody_follows_it_afterwards() {
    let both = Arc::new(Barrier::new(2));
    let (of_backend, asked) = (both.clone(), AtomicU32::new(0));
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        if asked.fetch_add(1, Ordering::Relaxed) > 0 {
            return peer.send("HTTP/1.1 200 OK\nContent-Length: 3\n\nnew");
        }
        peer.send("HTTP/1.1 200 OK\nContent-Length: 200003\n\n");
        peer.send_raw(text(200_000));
        of_backend.wait();
        of_backend.wait();
        peer.send_raw("old");
    });
    let (folder, address) = (Folder::new(), backend.address());
    let path = folder.display();
    std::fs::create_dir(folder.join("cache")).unwrap();
    let server = Server::start(format!(
        "error_log e.log info; proxy_cache_path {path}/cache keys_zone=one:1m;
         proxy_temp_path {path}/temp; add_header X-Cache $upstream_cache_status always;
         server {{ location / {{
             proxy_pass http://{address}; proxy_cache one; proxy_cache_valid any 1m;
             proxy_cache_key $uri; proxy_cache_lock on; proxy_cache_read_while_writing on;
             proxy_cache_purge on from all;
         }} }}"
    ));
    let get = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let begin = || {
        let mut client = server.connect();
        client.send(get);
        client
    };
    let mut before = [begin(), begin()];
    before.iter_mut().for_each(|client| client.0.read_exact(&mut [0; 100_000]).unwrap());
    both.wait();
    let purged = server.ask(&get.replace("GET /a", "PURGE /*"));
    assert!(purged.starts_with("HTTP/1.1 200 "), "{purged}");
    let mut after = begin();
    server.advance(1);
    both.wait();
    assert!(before.iter_mut().all(|client| client.rest().ends_with("old")));
    let after = after.rest();
    assert_eq!(
        (values(&after, "X-Cache"), after.ends_with("new")),
        (vec!["MISS"], true),
        "{after}"
    );
    assert!(server.ask(get).ends_with("new"));
}

#[test]
fn a_head_that_is_rewritten_does_not_outlive_a_purge() {
    for (rule, length) in [("/a", 1), ("/*", 1), ("#t", 1), ("/*", 600_000), ("#t", 600_000)] {
        let both = Arc::new(Barrier::new(2));
        let (of_backend, body) = (both.clone(), "x".repeat(length));
        let asked = AtomicU32::new(0);
        let location = "location = /tags { proxy_cache_purge_tags one t; }";
        let lines = "proxy_cache_purge on from all; proxy_cache_rules rfc9111;";
        let purged = Purged::answering(lines, location, move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            let fields = format!("ETag: \"a\"\nX-A: {number}\nSurrogate-Key: t\n");
            if number == 2 {
                of_backend.wait();
                of_backend.wait();
                return format!("HTTP/1.1 304 Not Modified\n{fields}\n");
            }
            format!("HTTP/1.1 200 OK\n{fields}Content-Length: {length}\n\n{body}")
        });
        purged.get("/a");
        let mut client = purged.server.connect();
        client.send(
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nCache-Control: no-cache\r\n\r\n",
        );
        both.wait();
        let status = match rule {
            "#t" => purged.status("GET", "/tags", ""),
            path => purged.status("PURGE", path, ""),
        };
        assert!([200, 204].contains(&status), "{rule} {status}");
        both.wait();
        let reply = client.rest();
        assert_eq!(values(&reply, "X-Cache"), ["REVALIDATED"], "{rule} {length}");
        let next = purged.ask("GET", "/a", "");
        let got = (values(&next, "X-Cache"), values(&next, "X-A"));
        assert_eq!(got, (vec!["MISS"], vec!["3"]), "{rule} {length}");
    }
}

#[test]
fn a_purge_that_cannot_be_kept_is_an_error_and_holds_nevertheless() {
    for (lines, request) in [
        ("proxy_cache_purge $http_x_purge;", ("GET", "/a", "X-Purge: 1\r\n")),
        ("proxy_cache_purge on from all;", ("PURGE", "/a", "")),
        ("proxy_cache_purge on purge_all from all;", ("PURGE", "/b", "")),
        ("", ("GET", "/one/a", "")),
        ("", ("GET", "/tags", "")),
    ] {
        let others = "location = /tags { proxy_cache_purge_tags one t; }
                      location ~ ^/one(/.*) { proxy_cache_purge one $1; }";
        let purged = Purged::of("Surrogate-Key: t\n", lines, others);
        assert_eq!(purged.get("/a"), "MISS n1");
        // A directory is in the way of the journal.
        std::fs::create_dir(purged.folder.join("cache/weir-purges")).unwrap();
        let (method, path, fields) = request;
        assert_eq!(purged.status(method, path, fields), 500, "{lines} {method} {path}");
        assert_eq!(purged.get("/a"), "MISS n2");
    }
}
