use crate::testing::{TestAnswer, TestSite, refused, site};

const FIELDS: &str = "add_header X-Got $uid_got; add_header X-Set $uid_set;";

fn cookie(answer: &TestAnswer) -> String {
    answer.field("Set-Cookie").unwrap()
}

fn is_number(text: &str) -> bool {
    text.len() == 22
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn with_cookie(site: &TestSite, path: &str, value: &str) -> TestAnswer {
    site.get_with(path, &format!("Cookie: a=b; {value}\n"))
}

#[test]
fn a_browser_receives_a_number_and_keeps_it() {
    let site = site(&format!("{FIELDS} server {{ userid on; return 204; }}"));
    let first = site.get("/");
    let sent = cookie(&first);
    let (value, rest) = sent.strip_prefix("uid=").unwrap().split_at(22);
    assert!(is_number(value), "{value}");
    assert_eq!(rest, "==; path=/");
    assert_eq!(first.field("X-Got"), None);
    let set = first.field("X-Set").unwrap();
    let again = with_cookie(&site, "/", &format!("uid={value}=="));
    assert_eq!((again.field("Set-Cookie"), again.field("X-Set")), (None, None));
    assert_eq!(again.field("X-Got").unwrap(), set);
    assert_ne!(site.get("/").field("X-Set").unwrap(), set);
}

#[test]
fn off_and_log_set_no_cookie() {
    let site = site(&format!(
        "{FIELDS} server {{
             location /log {{ userid log; return 204; }}
             location /off {{ return 204; }}
         }}"
    ));
    let sent = "uid=fwAAAVDsyFxkEgAJAwMEAg==";
    let got = "uid=0100007F5CC8EC500900126402040303";
    let log = with_cookie(&site, "/log", sent);
    assert_eq!(log.field("X-Got").unwrap(), got);
    assert_eq!((log.field("X-Set"), log.field("Set-Cookie")), (None, None));
    let off = with_cookie(&site, "/off", sent);
    assert_eq!(
        (off.field("X-Got"), off.field("X-Set"), off.field("Set-Cookie")),
        (None, None, None)
    );
}

#[test]
fn attributes() {
    let site = site(
        "server {
             userid on; userid_name n; userid_path /p; userid_domain d.e;
             userid_p3p 'policyref=\"/w3c/p3p.xml\"'; userid_flags secure;
             location /a { userid_flags httponly samesite=none SECURE; userid_expires max; }
             location /b {
                 userid_domain none; userid_p3p none; userid_flags off; userid_expires 1d;
                 userid_mark t;
             }
         }",
    );
    let a = site.get("/a");
    assert_eq!(
        &cookie(&a)[2 + 22..],
        "==; expires=Thu, 31-Dec-37 23:55:55 GMT; domain=d.e; path=/p; secure; httponly; \
         samesite=none"
    );
    assert!(cookie(&a).starts_with("n=") && a.status() == 404);
    assert_eq!(a.field("P3P").unwrap(), "policyref=\"/w3c/p3p.xml\"");
    let b = site.get("/b");
    let rest = cookie(&b)[2 + 22..].to_owned();
    assert!(rest.starts_with("t=; expires=") && rest.ends_with(" GMT; path=/p"), "{rest}");
    assert_eq!(b.field("P3P"), None);
}

#[test]
fn numbers_contain_the_service() {
    let site = site(
        "add_header X-Set $uid_set; server {
             location / { userid on; userid_service 65534; return 204; }
             location /v1 { userid v1; userid_service 65534; return 204; }
             location /v1/0 { userid v1; return 204; }
         }",
    );
    let set = |path: &str| site.get(path).field("X-Set").unwrap();
    assert!(set("/").starts_with("uid=FEFF0000"), "{}", set("/"));
    assert!(set("/v1").starts_with("uid=0000FFFE"));
    assert!(set("/v1/0").starts_with("uid=00000000"));
    assert!(set("/").ends_with("0303") && set("/v1").ends_with("01"));
}

#[test]
fn a_cookie_without_the_mark_is_sent_again() {
    let site = site(&format!("{FIELDS} server {{ userid on; userid_mark t; return 204; }}"));
    let answer = with_cookie(&site, "/", "uid=fwAAAVDsyFxkEgAJAwMEAg==");
    assert_eq!(cookie(&answer), "uid=fwAAAVDsyFxkEgAJAwMEAgt=; path=/");
    assert_eq!(answer.field("X-Set"), answer.field("X-Got"));
    let marked = with_cookie(&site, "/", "uid=fwAAAVDsyFxkEgAJAwMEAgt=");
    assert_eq!(marked.field("Set-Cookie"), None);
    assert!(marked.field("X-Got").is_some());
}

#[test]
fn uid_reset_replaces_a_number() {
    let site = site(&format!(
        "error_log log notice; map $args $uid_reset {{ default 0; new 1; log log; }}
         {FIELDS} server {{ userid on; return 204; }}"
    ));
    let ask = |args: &str| with_cookie(&site, &format!("/?{args}"), "uid=fwAAAVDsyFxkEgAJAwMEAg==");
    assert_eq!(ask("").field("Set-Cookie"), None);
    for args in ["new", "log"] {
        let answer = ask(args);
        assert!(answer.field("X-Got").is_some());
        assert_ne!(answer.field("X-Set"), answer.field("X-Got"));
        assert!(!cookie(&answer).contains("fwAAAVDsyFxkEgAJAwMEAg"));
    }
    let reset = "[notice] userid cookie \"uid=0100007F5CC8EC500900126402040303\" was reset";
    assert_eq!(site.messages("log"), [reset]);
}

#[test]
fn invalid_cookies_are_replaced() {
    let site = site(&format!("error_log log; {FIELDS} server {{ userid on; return 204; }}"));
    for value in ["uid=short", "uid=!!AAAVDsyFxkEgAJAwMEAg==", "uid=AAAAAAAAAAAAAAAAAAAAAA=="] {
        let answer = with_cookie(&site, "/", value);
        assert!(answer.field("Set-Cookie").is_some() && answer.field("X-Got").is_none());
    }
    assert_eq!(
        site.messages("log"),
        [
            "[error] client sent too short userid cookie \"a=b; uid=short\"",
            "[error] client sent invalid userid cookie \"a=b; uid=!!AAAVDsyFxkEgAJAwMEAg==\"",
        ]
    );
}

#[test]
fn invalid_directives_are_refused() {
    refused("userid maybe;", "invalid value \"maybe\":1");
    refused("userid_flags secure lax;", "invalid value \"lax\":1");
    refused("userid_expires soon;", "\"userid_expires\" directive invalid value:1");
    refused("userid_service x;", "\"userid_service\" directive invalid number:1");
    let must = "\"userid_mark\" directive value must be \"off\" or a single letter, digit or \"=\"";
    refused("userid_mark ab;", &format!("{must}:1"));
    refused("userid_mark -;", &format!("{must}:1"));
    let site = site("userid_flags secure secure; server { }");
    assert_eq!(site.warnings, ["duplicate value \"secure\":1"]);
}
