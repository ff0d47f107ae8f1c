use crate::testing::{TestSite, refusal, site};

fn logged(http: &str, targets: &[&str]) -> TestSite {
    let site = site(http);
    for target in targets {
        site.get(target);
    }
    site
}

#[test]
fn combined_is_the_format_of_nginx() {
    let site = logged("server { access_log a.log; location / { return 200 OK; } }", &[]);
    site.send(
        "GET /x?y HTTP/1.1\nHost: h\nUser-Agent: a\"b\nReferer: http://r/\n\
         Authorization: Basic bWU6cGFzcw==\n\n",
    );
    site.get("/");
    let log = site.log("a.log");
    let lines: Vec<&str> = log.lines().collect();
    let (start, rest) = lines[0].split_once('[').unwrap();
    assert_eq!(start, "127.0.0.1 - me ");
    let (time, rest) = rest.split_once(']').unwrap();
    assert_eq!(time.len(), "28/Sep/1970:12:00:00 +0600".len());
    assert_eq!(rest, r#" "GET /x?y HTTP/1.1" 200 0 "http://r/" "a\x22b""#);
    assert!(lines[1].starts_with("127.0.0.1 - - ["));
    assert!(lines[1].ends_with(r#"] "GET / HTTP/1.1" 200 0 "-" "-""#));
}

#[test]
fn an_own_log_discards_those_of_outer_levels() {
    let http = "log_format f '$uri'; access_log http.log f; \
        server { location /a { return 200; } \
        location /b { access_log b.log f; return 200; } \
        location /c { access_log off; return 200; } \
        location /d { access_log d1.log f; access_log d2.log f; return 200; } }";
    // The test site sets `access_log off`, which only another level can override.
    let http = http.replace("access_log http.log f; server {", "server { access_log http.log f; ");
    let site = logged(&http, &["/a", "/b", "/c", "/d"]);
    let log = |name| site.log(name);
    assert_eq!([log("http.log"), log("b.log")], ["/a\n", "/b\n"]);
    assert_eq!([log("d1.log"), log("d2.log")], ["/d\n", "/d\n"]);
}

#[test]
fn values_are_escaped_by_the_format() {
    let http = "log_format d '$arg_a' $arg_b; log_format j escape=json '$arg_a' '$arg_b'; \
        log_format n escape=none $arg_a$arg_b; server { location / { access_log d.log d; \
        access_log j.log j; access_log n.log n; return 200; } }";
    let site = logged(http, &[r#"/?a="\x"#]);
    assert_eq!(site.log("d.log"), "\\x22\\x5Cx-\n");
    assert_eq!(site.log("j.log"), "\\\"\\\\x\n");
    assert_eq!(site.log("n.log"), "\"\\x\n");
}

#[test]
fn if_evaluates_the_whole_value() {
    let http = "log_format u $request_uri; server { location / { \
        access_log a.log u if=$arg_a$arg_b; return 200; } }";
    let targets = ["/", "/?a=", "/?a=0", "/?a=0&b=0", "/?b=yes"];
    assert_eq!(logged(http, &targets).log("a.log"), "/?a=0&b=0\n/?b=yes\n");
}

#[test]
fn a_file_may_be_named_by_variables() {
    let http = "log_format u $uri; open_log_file_cache max=2; server { location / { \
        access_log ${arg_to}.log u; return 200; } }";
    let site = logged(http, &["/1?to=a", "/2?to=b", "/3?to=a"]);
    assert_eq!((site.log("a.log"), site.log("b.log")), ("/1\n/3\n".into(), "/2\n".into()));
}

#[test]
fn a_log_with_variables_needs_an_existing_root() {
    let http = "server { root nowhere; access_log $arg_to.log; error_log e.log; \
        location / { return 200; } }";
    let site = logged(http, &["/?to=a"]);
    assert_eq!(site.log("a.log"), "");
    let log = site.log("e.log");
    assert!(log.contains("[error]") && log.contains("nowhere\" existence failed (2: "), "{log}");
    assert!(log.contains(" while logging request, client: 127.0.0.1, server: , "), "{log}");
}

#[test]
fn own_variables_and_braces_are_known() {
    let http = "log_format f '${status}x$pipe $request_time $msec $request_length'; \
        server { access_log a.log f; location / { return 204; } }";
    let log = logged(http, &["/"]).log("a.log");
    let words: Vec<&str> = log.split_whitespace().collect();
    assert_eq!(words[0], "204x.");
    assert!(words[1..3].iter().all(|time| time.rsplit_once('.').unwrap().1.len() == 3), "{log}");
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let cases = [
        ("access_log a.log nope;", "unknown log format \"nope\""),
        ("access_log off a;", "invalid parameter \"a\""),
        ("access_log a.log combined x=1;", "invalid parameter \"x=1\""),
        ("access_log a.log combined buffer=0;", "invalid buffer size \"0\""),
        ("access_log a.log combined flush=x;", "invalid flush time \"x\""),
        ("access_log a.log combined gzip=10;", "invalid compression level \"10\""),
        ("access_log a.log combined flush=1s;", "no buffer is defined for access_log \"a.log\""),
        ("access_log $host.log combined gzip;", "buffered logs cannot have variables in name"),
        (
            "access_log syslog:server=127.0.0.1 combined buffer=1k;",
            "logs to syslog cannot be buffered",
        ),
        (
            "access_log a.log combined buffer=1k; access_log a.log combined buffer=2k;",
            "access_log \"a.log\" already defined with conflicting parameters",
        ),
        ("open_log_file_cache max=x;", "invalid \"open_log_file_cache\" parameter \"max=x\""),
        ("open_log_file_cache valid=1m;", "\"open_log_file_cache\" must have \"max\" parameter"),
    ];
    for (text, message) in cases {
        let text = format!("server {{ {text} }}");
        assert_eq!(refusal(&text), format!("{message}:1"), "{text}");
    }
    let formats = [
        ("log_format combined x;", "duplicate \"log_format\" name \"combined\""),
        ("log_format a x; log_format a y;", "duplicate \"log_format\" name \"a\""),
        ("log_format a escape=x y;", "unknown log format escaping \"x\""),
        ("log_format a x$;", "invalid parameter \"$\""),
        ("log_format a 'x$-y';", "invalid parameter \"$-y\""),
        ("log_format a '${x';", "the closing bracket in \"x\" variable is missing"),
    ];
    for (text, message) in formats {
        assert_eq!(refusal(text), format!("{message}:1"), "{text}");
    }
}

fn objects(log: &str) -> Vec<serde_json::Value> {
    log.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn json_is_built_in() {
    let http = "server { server_name s; access_log a.log json; location / { return 204; } }";
    let site = logged(http, &[]);
    site.send("GET /x?y=%22 HTTP/1.1\nHost: h\nUser-Agent: a\"\x01\x1b[2J\nReferer: caf\u{e9}\n\n");
    let log = site.log("a.log");
    let line = &objects(&log)[0];
    for (name, text) in [
        ("client", "127.0.0.1"),
        ("method", "GET"),
        ("uri", "/x?y=%22"),
        ("protocol", "HTTP/1.1"),
        ("host", "h"),
        ("user_agent", "a\"\u{1}\u{1b}[2J"),
        ("referer", "caf\u{e9}"),
    ] {
        assert_eq!(line[name], text, "{log}");
    }
    assert_eq!((&line["status"], line["request_time"].is_f64()), (&204.into(), true));
    assert_eq!(line["request_id"].as_str().unwrap().len(), 32);
    assert_eq!(line["time"].as_str().unwrap().len(), "2026-05-04T10:30:15.042+00:00".len());
    for absent in ["user", "upstream_addr", "upstream_status", "tls_protocol"] {
        assert!(line.get(absent).is_none(), "{log}");
    }
}

#[test]
fn a_format_json_of_the_configuration_wins_wherever_it_stands() {
    let own = "log_format json own;";
    let server = "server { access_log b.log JSON; location / { return 200; } }";
    for http in [
        format!("{own} access_log a.log json; {server}"),
        format!("access_log a.log json; {server} {own}"),
    ] {
        let site = logged(&http, &["/"]);
        assert_eq!(site.log("b.log"), "own\n");
    }
}
