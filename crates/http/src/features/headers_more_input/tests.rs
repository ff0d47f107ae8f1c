use crate::testing::{TestSite, refusal, site};

const SHOWN: &str = "return 200 '[$host|$http_host|$http_a|$http_ab|$http_x_c|$content_type]'";

/// The lines apply in the first location, and the second one shows the result.
fn shown(settings: &str) -> TestSite {
    site(&format!(
        "server {{ server_name s; location / {{ {settings} try_files /none @shown; }}
             location @shown {{ {SHOWN}; }} }}"
    ))
}

fn answer(site: &TestSite, fields: &str) -> String {
    site.send(&format!("GET / HTTP/1.1\nHost: Client:81\n{fields}\n")).body()
}

#[test]
fn fields_are_set_replaced_and_removed() {
    let site =
        shown("more_set_input_headers 'A: $http_x_c' 'Ab: 2'; more_clear_input_headers X-C;");
    assert_eq!(answer(&site, "X-C: 3\nAB: 1\nab: 1\n"), "[client|Client:81|3|2||]");
    let site = shown("more_set_input_headers 'A: new'; more_set_input_headers 'Ab: $http_a.';");
    assert_eq!(answer(&site, "A: old\n"), "[client|Client:81|new|new.||]");
}

#[test]
fn a_prefix_stands_for_all_fields_but_those_that_frame() {
    let site = shown("more_clear_input_headers 'a*';");
    assert_eq!(answer(&site, "A: 1\nab: 2\nX-C: 3\n"), "[client|Client:81|||3|]");
    let site = shown("more_clear_input_headers '*';");
    let fields = "A: 1\nContent-Length: 0\nContent-Type: text/x\n";
    assert_eq!(answer(&site, fields), "[client|Client:81||||]");
}

#[test]
fn a_host_is_set_and_the_server_stays() {
    let site = shown("more_set_input_headers 'Host: Other.example:82';");
    assert_eq!(answer(&site, ""), "[other.example|Other.example:82||||]");
    let site = shown("more_clear_input_headers Host;");
    assert_eq!(answer(&site, ""), "[s|||||]");
}

#[test]
fn lines_apply_to_the_types_and_fields_that_they_name() {
    let site = shown(
        "more_set_input_headers -t 'text/x text/y' 'A: typed';
         more_set_input_headers -r 'Ab: new';",
    );
    assert_eq!(
        answer(&site, "Content-Type: Text/X; charset=z\nAb: 1\n"),
        "[client|Client:81|typed|new||Text/X; charset=z]"
    );
    assert_eq!(answer(&site, "Content-Type: text/z\n"), "[client|Client:81||||text/z]");
}

#[test]
fn a_value_that_cannot_be_in_a_request_is_not_set() {
    let site = shown("more_set_input_headers 'A: $arg_a$request_uri\n x' 'Host: a b';");
    assert_eq!(answer(&site, "A: 1\n"), "[client|Client:81|1|||]");
}

#[test]
fn framing_is_refused() {
    for line in [
        "more_set_input_headers 'Content-Length: 1'",
        "more_set_input_headers 'transfer-encoding: chunked'",
        "more_clear_input_headers Content-Length",
    ] {
        let found = refusal(&format!("server {{ {line}; }}"));
        assert!(found.contains("would make the length of the body wrong"), "{line}: {found}");
    }
    let found = refusal("server { more_set_input_headers -s 200 'A: b'; }");
    assert!(found.contains("invalid option \"-s\""), "{found}");
}
