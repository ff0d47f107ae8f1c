//! What the program shows of itself is exact, over workers, reloads and processes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};

use net::testing::tls::{RSA_CERTIFICATE, RSA_KEY, TlsClient};
use serde_json::{Value, json};
use testing::{Folder, Peer, Server, body, eventually, kill};

const STATUS: &str = "location /status/ { api /status/; }
     location /api/ { api; }
     location = /metrics { prometheus; }";

/// What the page at that path shows.
fn shown(server: &Server, path: &str) -> Value {
    serde_json::from_str(&server.get(path)).unwrap()
}

fn zones(conf: &str) -> String {
    format!("server {{ listen ADDRESS; status_zone site; {STATUS} {conf} }}")
}

const PAGES: &str = "location / { status_zone pages; return 200 hello; }
     location = /gone { status_zone pages; return 410; }
     location = /end { status_zone ends; return 404; }
     location = /moved { status_zone moved; rewrite ^ /end last; }
     location = /closed { status_zone closed; return 444; }";

#[test]
fn a_request_counts_for_its_server_and_its_last_location() {
    let server = Server::start("worker_processes 2;", &zones(PAGES));
    for path in ["/", "/a", "/gone", "/moved", "/closed", "/end"] {
        server.get(path);
    }
    let zones = shown(&server, "/status/http/location_zones");
    let requests = |name: &str| (&zones[name]["requests"], &zones[name]["responses"]);
    let all = |total: u32, discarded: u32| json!({"total": total, "discarded": discarded});
    assert_eq!(requests("pages"), (&all(3, 0), &json!({"200": 2, "410": 1})));
    assert_eq!(requests("ends"), (&all(2, 0), &json!({"404": 2})));
    assert_eq!(requests("moved"), (&all(0, 0), &json!({})));
    assert_eq!(requests("closed"), (&all(1, 1), &json!({})));
    let site = shown(&server, "/status/http/server_zones/site");
    assert_eq!(site["requests"], json!({"total": 8, "processing": 1, "discarded": 1}));
    // The page that shows the locations.
    assert_eq!(site["responses"], json!({"200": 3, "410": 1, "404": 2}));
    assert!(site["data"]["sent"].as_u64() > site["data"]["received"].as_u64());
}

#[test]
fn counts_outlive_reloads_workers_and_processes() {
    let server = Server::start("worker_processes 2;", &zones(PAGES));
    let total = || {
        let zones = shown(&server, "/status/http/location_zones");
        zones["pages"]["requests"]["total"].as_u64().unwrap()
    };
    let ask = |count: usize| (0..count).for_each(|_| assert_eq!(server.get("/"), "hello"));
    ask(10);
    server.configure("worker_processes 2;", &zones(PAGES));
    server.reload();
    ask(10);
    assert_eq!(total(), 20);
    // Another number of workers needs another process.
    let before = server.worker_process();
    server.configure("worker_processes 3;", &zones(PAGES));
    server.reload();
    ask(10);
    assert_eq!(total(), 30);
    assert_ne!(server.worker_process(), before);
    kill(server.worker_process(), "KILL");
    server.await_log("start worker process ", 3);
    ask(10);
    assert_eq!(total(), 40);
    let site = shown(&server, "/status/http/server_zones/site");
    assert_eq!(site["requests"]["processing"], 1, "those of the killed process are over");
    // A zone that no configuration names is not shown.
    server.configure("worker_processes 3;", &zones("location / { return 200 hello; }"));
    server.reload();
    assert_eq!(shown(&server, "/status/http/location_zones"), json!({}));
}

#[test]
fn a_key_has_as_many_zones_as_it_may() {
    let conf = "server { listen ADDRESS; status_zone $arg_k zone=keys:2; return 200 hello; }";
    let server = Server::start(
        "worker_processes 2;",
        &format!("{conf} server {{ listen ADDRESS; server_name status; {STATUS} }}"),
    );
    for path in ["/?k=a", "/?k=b", "/?k=c", "/?k=a", "/", "/?k=c"] {
        server.get(path);
    }
    let zones = || {
        let mut stream = server.connect();
        let request = b"GET /status/http/server_zones HTTP/1.0\r\nHost: status\r\n\r\n";
        stream.write_all(request).unwrap();
        let reply = std::io::read_to_string(stream).unwrap();
        serde_json::from_str::<Value>(body(&reply)).unwrap()
    };
    let total = |name: &str| zones()[name]["requests"]["total"].as_u64();
    assert_eq!(
        [total("a"), total("b"), total("c"), total("keys")],
        [Some(2), Some(1), None, Some(2)]
    );
    // A new process knows which values it has.
    kill(server.worker_process(), "KILL");
    server.await_log("start worker process ", 2);
    server.get("/?k=c");
    server.get("/?k=b");
    assert_eq!([total("b"), total("c"), total("keys")], [Some(2), None, Some(3)]);
}

#[test]
fn servers_of_a_group_show_what_they_did() {
    let good = Peer::answering(|_| "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello".into());
    let refused = testing::free_address();
    let conf = format!(
        "upstream app {{ server {refused} max_fails=1 fail_timeout=60s; server {} backup; }}
         server {{ listen ADDRESS; {STATUS} location / {{ proxy_pass http://app; }} }}",
        good.address
    );
    let server = Server::start("", &conf);
    for _ in 0..3 {
        assert_eq!(server.get("/"), "hello");
    }
    let app = shown(&server, "/status/http/upstreams/app?extended");
    let (bad, backup) =
        (&app["peers"][refused.to_string()], &app["peers"][good.address.to_string()]);
    assert_eq!((&bad["state"], &backup["state"]), (&json!("unavailable"), &json!("up")));
    assert_eq!((&bad["backup"], &backup["backup"]), (&json!(false), &json!(true)));
    assert_eq!((&bad["selected"]["total"], &backup["selected"]["total"]), (&json!(1), &json!(3)));
    assert_eq!((&bad["health"]["fails"], &bad["health"]["unavailable"]), (&json!(1), &json!(1)));
    assert_eq!(bad["why"], "1 failed request in a row");
    assert_eq!((&bad["responses"], &backup["responses"]), (&json!({}), &json!({"201": 3})));
    let sum = |times: &Value| -> u64 {
        times["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!((sum(&backup["header_time"]), sum(&bad["header_time"])), (3, 0));
    let plus = shown(&server, "/api/9/http/upstreams/app/peers/0");
    assert_eq!((&plus["state"], &plus["fails"]), (&json!("unavail"), &json!(1)));
}

#[test]
fn the_api_of_plus_has_lists_objects_and_errors() {
    let server = Server::start("", &zones("location / { status_zone all; return 200 hello; }"));
    server.get("/");
    assert_eq!(shown(&server, "/api/"), json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert!(shown(&server, "/api/9/").as_array().unwrap().contains(&json!("connections")));
    assert!(shown(&server, "/api/9/http").as_array().unwrap().contains(&json!("upstreams")));
    assert_eq!(shown(&server, "/api/9/http/server_zones?fields="), json!(["site"]));
    let zone = shown(&server, "/api/9/http/location_zones/all?fields=requests,discarded");
    assert_eq!(zone, json!({"requests": 1, "discarded": 0}));
    let zones = shown(&server, "/api/9/http/location_zones?fields=requests");
    assert_eq!(zones, json!({"all": {"requests": 1}}));
    for (path, code) in [
        ("/api/10/nginx", "UnknownVersion"),
        ("/api/9/http/server_zones/none", "ServerZoneNotFound"),
        ("/api/9/http/upstreams/none", "UpstreamNotFound"),
        ("/api/9/none", "PathNotFound"),
    ] {
        let error = shown(&server, path)["error"].clone();
        assert_eq!((&error["status"], &error["code"]), (&json!(404), &json!(code)), "{path}");
    }
    let error = shown(&server, "/status/none/");
    let text = "Requested API entity \"/status/none/\" doesn't exist.";
    assert_eq!(error, json!({"error": "PathNotFound", "description": text}));
}

#[test]
fn prometheus_gets_each_family_in_one_place() {
    let server = Server::start("worker_processes 2;", &zones(PAGES));
    for path in ["/", "/gone", "/\"x"] {
        server.get(path);
    }
    let page = server.get("/metrics");
    for line in [
        "nginx_up 1",
        "weir_http_zone_responses_total{zone=\"site\",code=\"410\"} 1",
        "weir_http_location_requests_total{zone=\"pages\"} 3",
        "weir_http_location_request_duration_seconds_count{zone=\"pages\"} 3",
        "weir_http_location_request_duration_seconds_bucket{zone=\"pages\",le=\"+Inf\"} 3",
        "weir_generation 1",
        "# TYPE weir_worker_turn_seconds histogram",
    ] {
        assert!(page.lines().any(|known| known == line), "{line} is not in\n{page}");
    }
    let mut families: Vec<&str> = Vec::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let ends = ["_bucket", "_sum", "_count"];
        let name = ends.iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
        if families.last() != Some(&name) {
            assert!(!families.contains(&name), "{name} twice");
            families.push(name);
        }
    }
}

#[test]
fn a_template_shows_the_values_of_its_paths() {
    let template = r#"prometheus_template all {
            'requests{zone="$1"}' $p8s_value
                path=~^/http/location_zones/([^/]+)/requests/total$ type=counter
                'help=All of them.';
            'state{server="$1"}' $state path=~^/http/upstreams/app/peers/([^/]+)/state$;
            'accepted' $p8s_value path=/connections/accepted;
            'constant{host="$host"}' 7;
        }
        map $p8s_value $state { up 1; down 2; default 0; }
        upstream app { server 127.0.0.1:1; server 127.0.0.1:2 down; }"#;
    let conf = zones(&format!("{PAGES} location = /template {{ prometheus all; }}"));
    let server = Server::start("", &format!("{template} {conf}"));
    server.get("/");
    let page = server.get("/template");
    let expected =
        "# HELP requests All of them.\n# TYPE requests counter\nrequests{zone=\"closed\"} 0\n";
    assert!(page.contains(expected) || page.contains("requests{zone=\"pages\"} 1\n"), "{page}");
    assert!(
        page.contains("state{server=\"127.0.0.1:1\"} 1\nstate{server=\"127.0.0.1:2\"} 2\n"),
        "{page}"
    );
    assert!(page.contains("\naccepted 2\n"), "{page}");
    assert!(page.contains("\nconstant{host=\""), "{page}");
}

#[test]
fn a_long_page_is_complete() {
    let groups: String = (0..40)
        .map(|group| {
            let servers: String =
                (1..100).map(|port| format!("server 127.0.0.1:{port};")).collect();
            format!("upstream group_{group} {{ {servers} }}")
        })
        .collect();
    let server = Server::start("", &format!("{groups} {}", zones("")));
    let all = shown(&server, "/status/http/upstreams?extended");
    let peers =
        all.as_object().unwrap().values().map(|group| group["peers"].as_object().unwrap().len());
    assert_eq!(peers.sum::<usize>(), 40 * 99);
    let page = server.get("/metrics");
    let states = page.lines().filter(|line| line.contains("state=\"up\"")).count();
    assert_eq!(states, 40 * 99);
}

#[test]
fn a_refused_reload_is_counted() {
    let server = Server::start("", &zones(""));
    assert_eq!(shown(&server, "/status/weir?extended")["generation"], 1);
    server.configure("", "nonsense;");
    server.signal("HUP");
    eventually("the count", || {
        let reloads = shown(&server, "/status/weir?extended")["reloads"].clone();
        (reloads["failed"] == 1 && reloads["done"] == 0 && reloads["last"]["ok"] == false)
            .then_some(())
    });
    let message = || shown(&server, "/status/weir/reloads/last?extended")["message"].clone();
    let why = message().to_string();
    assert!(why.contains("[emerg] unknown directive \\\"nonsense\\\" in "), "{why}");
    server.configure("", &zones(""));
    server.reload();
    assert_eq!(message(), Value::Null);
}

#[test]
fn caches_of_files_show_their_lookups_and_what_they_hold() {
    let files = "location /kept/ { open_file_cache max=10; open_file_cache_min_uses 1; }";
    let server = Server::start("worker_processes 1;", &zones(files));
    std::fs::create_dir_all(server.folder.name("html/kept")).unwrap();
    // Too large to be kept in memory.
    for page in ["html/page", "html/kept/page"] {
        server.folder.write(page, vec![b'x'; 300_000]);
    }
    let ask = || {
        for path in ["/kept/page", "/kept/page", "/kept/page", "/page", "/page", "/kept/none"] {
            server.get(path);
        }
    };
    ask();
    let caches = || shown(&server, "/status/file_caches?extended");
    let kept = &caches()["open_file_cache"];
    assert_eq!((&kept["entries"], &kept["bytes"]), (&json!(1), &json!(0)));
    assert_eq!((&kept["hits"], &kept["misses"]), (&json!(2), &json!(2)));
    let contents = &caches()["contents"];
    assert_eq!((&contents["hits"], &contents["misses"]), (&json!(0), &json!(2)));
    // Caches of `open_file_cache` end with their configuration.
    server.configure("worker_processes 1;", &zones(""));
    server.reload();
    eventually("the cache is gone", || (caches()["open_file_cache"]["entries"] == 0).then_some(()));
    assert_eq!(caches()["open_file_cache"]["hits"], 2);
    let page = server.get("/metrics");
    assert!(page.contains("weir_file_cache_hits_total{cache=\"open_file_cache\"} 2\n"), "{page}");
}

#[test]
fn failed_handshakes_are_counted_by_reason() {
    let server = Server::start_with(|folder: &Folder, address: &str| {
        folder.write("own.crt", RSA_CERTIFICATE);
        folder.write("own.key", RSA_KEY);
        let http = format!(
            "server {{ listen {address} ssl; status_zone site; ssl_protocols TLSv1.3;
                 ssl_certificate own.crt; ssl_certificate_key own.key; {STATUS} }}
             server {{ listen {address} ssl; server_name refused; status_zone refused;
                 ssl_reject_handshake on; }}"
        );
        folder.configure(address, "events {}\n", &http);
    });
    server.await_log("start worker process ", 1);
    let ask = |client: &TlsClient, name: &str, path: &str| {
        let mut stream = client.connect(name, server.connect());
        let mut reply = String::new();
        let _ = write!(stream, "GET {path} HTTP/1.0\r\n\r\n");
        // It fails where the handshake does.
        let _ = stream.read_to_string(&mut reply);
        reply
    };
    let client = TlsClient::new();
    ask(&TlsClient::tls12(), "a", "/");
    ask(&client, "refused", "/");
    let zone = |name: &str| {
        let path = format!("/status/http/server_zones/{name}/ssl?extended");
        let shown: Value = serde_json::from_str(body(&ask(&client, "a", &path))).unwrap();
        (shown["failed"].clone(), shown["reasons"].clone())
    };
    assert_eq!(zone("site"), (json!(1), json!({"no_common_version": 1})));
    assert_eq!(zone("refused"), (json!(1), json!({"rejected": 1})));
    let all = ask(&client, "a", "/status/tls/failed?extended");
    let all: Value = serde_json::from_str(body(&all)).unwrap();
    assert_eq!((&all["rejected"], &all["timeout"]), (&json!(1), &json!(0)));
    let page = ask(&client, "a", "/metrics");
    let line =
        "weir_http_zone_tls_handshake_failures_total{zone=\"refused\",reason=\"rejected\"} 1\n";
    assert!(page.contains(line), "{page}");
}
