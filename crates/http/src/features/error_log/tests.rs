use observe::Level;
use serde_json::Value;

use crate::testing::{TestSite, refusal, site};

fn lines(site: &TestSite, file: &str) -> Vec<Value> {
    let log = site.log(file);
    log.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn a_log_in_json_has_the_context_as_fields() {
    let site = site("error_log e.log error json; server { server_name s; location / { } }");
    let answer = site.get_with("/a?\"b", "Referer: r\x1b\n");
    answer.x.log(Level::Error, format_args!("grave"));
    let lines = lines(&site, "e.log");
    let line = lines.last().unwrap();
    for (name, text) in [
        ("level", "error"),
        ("msg", "grave"),
        ("action", "logging request"),
        ("client", "127.0.0.1"),
        ("server", "s"),
        ("request", "GET /a?\"b HTTP/1.1"),
        ("host", "localhost"),
        ("referrer", "r\x1b"),
    ] {
        assert_eq!(line[name], text, "{line}");
    }
    assert_eq!((&line["cnum"], line.get("upstream")), (&1.into(), None));
    let missing = &lines[0];
    assert_eq!(missing["errno"], 2);
    assert_eq!(missing["errtext"], "No such file or directory");
    assert!(missing["msg"].as_str().unwrap().ends_with("failed"), "{missing}");
}

#[test]
fn a_block_with_tags_does_not_inherit_others() {
    let site = site(
        "error_log e.log error json; error_log_tag a http; server { error_log_tag b server; \
         location /own { error_log_tag c $arg_c; error_log_tag d '$uri!'; } location / { } }",
    );
    site.get("/own?c=\"1\"");
    site.get("/");
    let lines = lines(&site, "e.log");
    let tags = |line: &Value| ["a", "b", "c", "d"].map(|tag| line[tag].as_str().map(str::to_owned));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(tags(&lines[0]), [None, None, text("\"1\""), text("/own!")]);
    assert_eq!(tags(lines.last().unwrap()), [None, text("server"), None, None]);
}

#[test]
fn tags_of_a_request_end_with_it() {
    let site = site(
        "error_log e.log error json; server { location /a { error_log_tag c $arg_c; \
         error_page 404 = /b; } location /b { } }",
    );
    site.get("/a?c=1");
    let lines = lines(&site, "e.log");
    let tags: Vec<Option<&str>> = lines.iter().map(|line| line["c"].as_str()).collect();
    assert_eq!(tags, [Some("1"), None], "the second file is missing, too");
}

#[test]
fn without_a_log_in_json_tags_cost_nothing() {
    let handlers = |http: &str| {
        let site = site(http);
        let generation = &site.generation;
        generation.locations.iter().map(|location| location.preaccess.len()).sum::<usize>()
    };
    let server = "server { location / { return 200; error_log_tag a $uri; } }";
    assert_eq!(handlers(&format!("error_log e.log error; {server}")), 0);
    assert_eq!(handlers(&format!("error_log e.log error json; {server}")), 1);
    assert_eq!(handlers("error_log e.log error json; error_log_tag a b; server { }"), 0);
}

#[test]
fn an_unknown_variable_in_a_tag_is_refused() {
    assert!(refusal("error_log_tag a $nonsense; server { }").contains("nonsense"));
}
