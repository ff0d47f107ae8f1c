use super::*;
use crate::study::{BUILT_IN, BackendAddress, Study, StudyPlaces};
use crate::testing::tree;

const OLD: TunedServer = TunedServer::Nginx(1, 22, 1);
const NEW: TunedServer = TunedServer::Nginx(1, 31, 0);

fn names(text: &str, server: TunedServer) -> Vec<&'static str> {
    candidates(&tree(text), server).iter().map(TuneCandidate::name).collect()
}

/// The changes of a candidate: `OLD -> NEW`, or `BLOCK + NEW`.
#[track_caller]
fn changes(text: &str, name: &str, server: TunedServer) -> Vec<String> {
    let tree = tree(text);
    let all = candidates(&tree, server);
    let candidate = all.iter().find(|candidate| candidate.name() == name).expect(name);
    let (changed, changes) = candidate.apply(&tree);
    assert!(candidate.apply(&changed).1.is_empty(), "applied twice, it changes more");
    let shown = |change: TuneChange| {
        let line = change.place.line;
        match (change.old, change.block) {
            (Some(old), _) => format!("{line}: {old} -> {}", change.new),
            (None, block) => format!("{line}: {} + {}", block.unwrap_or_default(), change.new),
        }
    };
    changes.into_iter().map(shown).collect()
}

#[test]
fn settings_that_are_on_already_are_not_tried() {
    let text = "worker_processes auto; worker_cpu_affinity auto;
        events { worker_connections 10000; multi_accept on; }
        http { keepalive_requests 10000; access_log off; server { listen 80 reuseport deferred
        backlog=9; return 200; } }";
    assert_eq!(names(text, OLD), [""; 0]);
}

#[test]
fn a_plain_configuration_has_the_general_candidates() {
    let text = "events {} http { server { listen 80; return 200; } }";
    let all = [
        "workers",
        "pinned-workers",
        "worker-connections",
        "multi-accept",
        "reuseport",
        "backlog",
        "deferred",
        "keepalive-requests",
    ];
    assert_eq!(names(text, OLD), all);
    let of_weir: Vec<_> =
        all.into_iter().filter(|name| !["reuseport", "deferred"].contains(name)).collect();
    assert_eq!(names(text, TunedServer::Weir), of_weir);
    assert_eq!(names("events {} stream {}", OLD), [""; 0]);
}

#[test]
fn lines_are_replaced_or_added() {
    let text = "worker_processes 2;\nevents {\n}\nhttp {\n server { listen 80; root /srv;\n\
        sendfile off; location /a { open_file_cache off; } } }";
    assert_eq!(changes(text, "workers", OLD), ["1: worker_processes 2; -> worker_processes auto;"]);
    assert_eq!(
        changes(text, "pinned-workers", OLD),
        ["1: worker_processes 2; -> worker_processes auto;", "1:  + worker_cpu_affinity auto;"]
    );
    assert_eq!(changes(text, "multi-accept", OLD), ["2: events + multi_accept on;"]);
    assert_eq!(
        changes(text, "sendfile-nopush", OLD),
        ["6: sendfile off; -> sendfile on;", "4: http + sendfile on;", "4: http + tcp_nopush on;"]
    );
    assert_eq!(
        changes(text, "open-file-cache", OLD),
        [
            "6: open_file_cache off; -> open_file_cache max=10000 inactive=60s;",
            "4: http + open_file_cache max=10000 inactive=60s;",
            "4: http + open_file_cache_valid 30s;"
        ]
    );
}

/// Where `sendfile` is on, both candidates only add `tcp_nopush`.
#[test]
fn candidates_with_the_same_result_are_one() {
    let names = names("http { sendfile on; root /srv; server { listen 80; } }", OLD);
    let files: Vec<_> = names.into_iter().filter(|name| name.starts_with("sendfile")).collect();
    assert_eq!(files, ["sendfile-nopush"]);
}

#[test]
fn files_count_only_where_they_are_served() {
    let served = |text: &str| names(text, OLD).contains(&"open-file-cache");
    assert!(served("http { server { root /srv; } }"));
    assert!(served("http { server { location / { alias /srv/; } } }"));
    assert!(served("http { root /srv; server { } }"));
    assert!(!served("http { server { location / { root /srv; proxy_pass http://a; } } }"));
    assert!(!served("http { server { return 200; } }"));
    assert!(!served("http { open_file_cache max=1; open_file_cache_valid 1s; root /srv; }"));
}

/// nginx accepts the options of a socket in one line per address only.
#[test]
fn one_line_of_each_address_gets_an_option() {
    let text = "http { server { listen 80; listen 443 ssl; listen unix:/a; listen 443 quic; }
        server { listen *:80 so_keepalive=on; }
        server { listen 81; } server { listen 81 backlog=9; } server { listen 80-82; } }
        stream { server { listen 90; } }";
    assert_eq!(
        changes(text, "reuseport", OLD),
        [
            "1: listen 443 ssl; -> listen 443 ssl reuseport;",
            "2: listen *:80 so_keepalive=on; -> listen *:80 so_keepalive=on reuseport;",
            "3: listen 81 backlog=9; -> listen 81 backlog=9 reuseport;"
        ]
    );
    assert_eq!(
        changes(text, "backlog", OLD),
        [
            "1: listen 443 ssl; -> listen 443 ssl backlog=4096;",
            "2: listen *:80 so_keepalive=on; -> listen *:80 so_keepalive=on backlog=4096;"
        ]
    );
}

/// Only Weir has limits with a queue. Existing limits are left alone.
#[test]
fn backends_get_a_limit() {
    assert_eq!(
        changes(PROXIED, "upstream-limit-16", TunedServer::Weir),
        [
            "1: http + limit_upstream_zone tuned 1m;",
            "1: upstream a + limit_upstream_conn zone=tuned limit=16 backlog=10000;",
            "2: upstream b + limit_upstream_conn zone=tuned limit=16 backlog=10000;"
        ]
    );
    let limited = PROXIED.replace("127.0.0.1:2;", "127.0.0.1:2 max_conns=9;");
    for (text, server) in [(PROXIED, OLD), (&*limited, TunedServer::Weir)] {
        assert!(!names(text, server).contains(&"upstream-limit-16"));
    }
}

const PROXIED: &str = "http { upstream a { server 127.0.0.1:1; }
    upstream b { server 127.0.0.1:2; keepalive 4; }
    server { listen 80; location / { proxy_pass http://a; }
    location /b { proxy_set_header Host x; proxy_pass http://b; }
    location /w { proxy_set_header connection upgrade; proxy_http_version 1.1; }
    location /o { proxy_http_version 1.0; } } }";

#[test]
fn connections_to_backends_are_kept() {
    assert_eq!(
        changes(PROXIED, "upstream-keepalive-128", NEW),
        ["1: upstream a + keepalive 128;", "6: proxy_http_version 1.0; -> proxy_http_version 1.1;"]
    );
    assert_eq!(
        changes(PROXIED, "upstream-keepalive-32", OLD),
        [
            "1: upstream a + keepalive 32;",
            "6: proxy_http_version 1.0; -> proxy_http_version 1.1;",
            "1: http + proxy_http_version 1.1;",
            "1: http + proxy_set_header Connection \"\";",
            "4: location /b + proxy_set_header Connection \"\";"
        ]
    );
    let (changed, _) = candidates(&tree(PROXIED), NEW)
        .iter()
        .find(|candidate| candidate.subject() == "upstream-keepalive")
        .unwrap()
        .apply(&tree(PROXIED));
    let group = changed.block(&["http", "upstream"]).unwrap();
    assert_eq!(group.inner().last().unwrap().shown(), "keepalive 32;", "after the balancer");
    let no_groups = "http { server { listen 80; proxy_pass http://127.0.0.1; } }";
    assert!(!names(no_groups, OLD).contains(&"upstream-keepalive-32"));
}

/// A request to the backend that asks it to close is as bad as no `keepalive`.
#[test]
fn lines_that_close_connections_to_backends_are_replaced() {
    let text = "http { upstream a { server b; keepalive 9; } server {
        location / { proxy_pass http://a; proxy_set_header connection Close;
        proxy_set_header Host $host; proxy_http_version 1.0; } } }";
    let closing = "2: proxy_set_header connection Close; -> proxy_set_header Connection \"\";";
    let version = "3: proxy_http_version 1.0; -> proxy_http_version 1.1;";
    assert_eq!(changes(text, "upstream-keepalive-32", NEW), [version, closing]);
    let old = changes(text, "upstream-keepalive-32", OLD);
    assert!(old.contains(&version.to_owned()) && old.contains(&closing.to_owned()), "{old:?}");
}

#[test]
fn an_address_becomes_a_group_where_the_host_is_set() {
    let text = "http { proxy_set_header Host $host; upstream backend_b_80 { server c; }
        server { location / { proxy_pass http://b:80/x?y; }
        location /again { proxy_pass http://b:80; }
        location /own { proxy_set_header X-A b; proxy_pass http://e; }
        location /same { proxy_set_header HOST $proxy_host; proxy_pass http://e; }
        location /tls { proxy_pass https://e; } location /var { proxy_pass http://e$uri; }
        location /unix { proxy_pass http://unix:/e:/; } location /g { proxy_pass http://g; } }
        upstream g { server g; keepalive 1; } }";
    assert_eq!(
        changes(text, "upstream-keepalive-32", NEW),
        [
            "1: http + upstream backend_b_80_ {\n    server b:80;\n    keepalive 32;\n}",
            "2: proxy_pass http://b:80/x?y; -> proxy_pass http://backend_b_80_/x?y;",
            "3: proxy_pass http://b:80; -> proxy_pass http://backend_b_80_;",
            "1: upstream backend_b_80 + keepalive 32;",
        ]
    );
}

#[test]
fn explicit_sizes_stay() {
    let tried = |line: &str| {
        names(&format!("http {{ server {{ proxy_pass http://a; {line} }} }}"), OLD)
            .contains(&"proxy-buffers")
    };
    assert!(tried(""));
    assert!(!tried("proxy_buffers 4 8k;"));
    assert!(!tried("proxy_busy_buffers_size 8k;"));
    assert!(!names("http { server { } }", OLD).contains(&"proxy-buffers"));
}

/// Server-sent events need a location without buffering.
#[test]
fn buffering_stays_off_in_locations() {
    let text = "http { proxy_buffering off; server { location / { proxy_buffering off; } } }";
    assert_eq!(
        changes(text, "proxy-buffering", OLD),
        ["1: proxy_buffering off; -> proxy_buffering on;"]
    );
}

#[test]
fn access_logs_get_buffers_where_possible() {
    let text = "http { access_log /a;\naccess_log /b main if=$x;\naccess_log /c main buffer=1k;
        server { access_log off; access_log syslog:server=a; access_log /$host; access_log /c main;
        access_log /dev/null; } }
        stream { access_log /d basic; }";
    assert_eq!(
        changes(text, "access-log-buffer", OLD),
        [
            "1: access_log /a; -> access_log /a combined buffer=64k flush=5s;",
            "2: access_log /b main if=$x; -> access_log /b main if=$x buffer=64k flush=5s;"
        ]
    );
}

#[test]
fn keepalive_requests_of_an_upstream_is_another_setting() {
    let text = "http { keepalive_requests 50; upstream a { keepalive_requests 60; } }";
    assert_eq!(
        changes(text, "keepalive-requests", OLD),
        ["1: keepalive_requests 50; -> keepalive_requests 100000;"]
    );
    let none = "http { keepalive_timeout 0; }";
    assert!(!names(none, OLD).contains(&"keepalive-requests"));
}

#[test]
fn changes_are_displayed_with_place_and_block() {
    let tree = tree("events {\n}\nhttp {\n server {\n listen 80;\n}\n}");
    let shown = |candidate: &TuneCandidate| {
        let (_, changes) = candidate.apply(&tree);
        changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let all: Vec<String> = candidates(&tree, OLD).iter().map(shown).collect();
    let added = "@ /etc/nginx/nginx.conf:1 in events\n+ multi_accept on;";
    assert!(all.iter().any(|shown| shown == added), "{all:?}");
    let changed = "@ /etc/nginx/nginx.conf:5 in server\n- listen 80;\n+ listen 80 reuseport;";
    assert!(all.iter().any(|shown| shown == changed), "{all:?}");
}

#[test]
fn several_candidates_are_applied_together() {
    let tree = tree("events {} http { server { listen 80; root /srv; } }");
    let all = candidates(&tree, OLD);
    let changed = TuneCandidate::apply_all(&all, &tree);
    let listen = changed.block(&["http", "server"]).and_then(|server| server.own("listen"));
    assert_eq!(listen.unwrap().shown(), "listen 80 reuseport backlog=4096 deferred;");
    assert!(candidates(&changed, OLD).is_empty());
}

#[test]
fn the_configurations_of_studies_survive_reading_and_writing() {
    let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 80);
    for (name, text) in BUILT_IN {
        let study = Study::parse(name, text).unwrap();
        for row in study.rows.iter().filter(|row| !row.direct) {
            let backends = &vec![BackendAddress::of_http(address); study.backend.count];
            let places = StudyPlaces {
                listen: address,
                listen_tls: address,
                dir: "/srv",
                backends,
                processors: 1,
            };
            let first = tree(&study.configuration(row, places));
            let again = tree(std::str::from_utf8(&first.write()).unwrap());
            assert_eq!(again, first, "{name}, {}", row.name);
        }
    }
}
