use crate::backend::testing::TestBackend;
use crate::h1::tests::Server;
use crate::testing::{refused, site};

#[test]
fn every_request_is_copied() {
    let site = site(
        "log_format it '$request_method $uri$is_args$args of $request_uri'; log_subrequest on;
         server {
            location / {
                mirror /mirror/1;
                mirror /mirror/2;
                location /off { mirror off; }
                location /gone/ { return 204; }
                location /refused { deny all; }
            }
            location /mirror { access_log copies it; internal; mirror /mirror/3; empty_gif; }
        }",
    );
    site.file("a", "");
    site.file("d/index.html", "");
    site.file("off", "");
    let copies = |target: &str| {
        let before = site.log("copies").len();
        let status = site.send(&format!("POST {target} HTTP/1.1\nHost: a\n\n")).status();
        (
            status,
            site.log("copies").split_off(before).lines().map(str::to_owned).collect::<Vec<_>>(),
        )
    };
    let both = |target: &str, args: &str| {
        [1, 2].map(|n| format!("POST /mirror/{n}{args} of {target}")).to_vec()
    };
    assert_eq!(copies("/a?b"), (405, both("/a?b", "?b")));
    assert_eq!(copies("/d/"), (405, [both("/d/", "-"), both("/d/", "-")].concat()));
    assert_eq!(copies("/off"), (405, vec![]));
    assert_eq!(copies("/gone/"), (204, vec![]));
    assert_eq!(copies("/refused"), (403, vec![]));
}

#[test]
fn duplicate_lines_are_refused() {
    refused("mirror off; mirror /a;", "\"mirror\" directive is duplicate:1");
    refused("mirror /a; mirror /b; mirror off;", "\"mirror\" directive is duplicate:1");
}

#[test]
fn copies_have_the_body_from_memory_or_file() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello");
    let address = backend.address();
    let server = Server::start(format!(
        "client_body_temp_path html; server {{
            location / {{ mirror /copy; mirror /copy; proxy_pass http://{address}; }}
            location /file {{ mirror /copy; client_body_in_file_only clean;
                proxy_pass http://{address}; }}
            location /without {{ mirror /bare; mirror_request_body off;
                proxy_pass http://{address}; }}
            location /copy {{ proxy_pass http://{address}; }}
            location /bare {{ proxy_set_header Content-Length ''; proxy_pass http://{address}; }}
        }}"
    ));
    for (target, bodies) in
        [("/", &["abc", "abc", "abc"][..]), ("/file", &["abc", "abc"]), ("/without", &["", "abc"])]
    {
        let close = "Host: h\r\nConnection: close";
        let reply = server
            .ask(&format!("PUT {target} HTTP/1.1\r\n{close}\r\nContent-Length: 3\r\n\r\nabc"));
        assert!(reply.ends_with("\r\n\r\nhello"), "{reply}");
        let mut asked: Vec<_> = bodies.iter().map(|_| backend.asked()).collect();
        assert!(asked.iter().all(|asked| asked.starts_with("PUT /")), "{asked:?}");
        asked
            .iter_mut()
            .for_each(|asked| *asked = asked.split_off(asked.find("\n\n").unwrap() + 2));
        asked.sort();
        assert_eq!(asked, bodies, "{target}");
    }
    backend.expect_unasked();
}
