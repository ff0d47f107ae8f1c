use conf::MemoryFiles;

use super::*;
use crate::doctor::configuration::ExaminedConfig;

/// A certificate of a.test and *.b.test, valid throughout the year 2020.
const ENDED: &str = include_str!("../testdata/ended.pem");
/// The first second of the years 2020 and 2021.
const START: i64 = 1_577_836_800;
const END: i64 = 1_609_459_200;

/// The problems with certificates at a time, each with its number of lines.
fn wrong(servers: &str, now: i64) -> Vec<(String, usize)> {
    let text = format!("events {{}} http {{ {servers} }}");
    let mut files = MemoryFiles::default().with("/a.pem", ENDED).with("/nginx.conf", &text);
    let conf = ExaminedConfig::read(Path::new("/nginx.conf"), &mut files).unwrap();
    let problems = certificate_problems(conf.root(), &conf.certificates, now);
    problems.into_iter().map(|problem| (problem.what, problem.lines.len())).collect()
}

fn server(names: &str) -> String {
    format!("server {{ listen 443 ssl; ssl_certificate a.pem; server_name {names}; }}")
}

#[test]
fn an_expiry_is_reported_two_weeks_before() {
    let said = |now| wrong(&server("a.test"), now);
    let on = "on Jan  1 00:00:00 2021 GMT";
    let told = |what: &str| vec![(format!("certificate \"/a.pem\" {what}"), 1)];
    assert_eq!(said(END - 14 * DAY_S), []);
    assert_eq!(said(END - 14 * DAY_S + 1), told(&format!("expires in 13 days, {on}")));
    assert_eq!(said(END - DAY_S), told(&format!("expires in a day, {on}")));
    assert_eq!(said(END), told(&format!("expires within a day, {on}")));
    assert_eq!(said(END + 1), told(&format!("expired today, {on}")));
    assert_eq!(said(END + 400 * DAY_S), told(&format!("expired 400 days ago, {on}")));
    assert_eq!(said(START), []);
    assert_eq!(said(START - 1), told("is not valid before Jan  1 00:00:00 2020 GMT"));
}

#[test]
fn a_server_needs_one_name_that_its_certificate_has() {
    let what = |names: &str| wrong(&server(names), START).pop().map(|(what, _)| what);
    let fitting = [
        "a.test",
        "A.test",
        "x.b.test",
        "c.test a.test",
        "*.b.test",
        ".a.test",
        ".b.test",
        "a.*",
        "c.test ~^a",
        "c.test 10.0.0.1",
        "$hostname",
        "_",
        "\"\"",
    ];
    for names in fitting {
        assert_eq!(what(names), None, "{names}");
    }
    let of = "certificate \"/a.pem\", of a.test, *.b.test, has no name of its server";
    for (names, shown) in [
        ("c.test", "c.test"),
        ("_ b.test", "b.test"),
        ("x.y.b.test x.a.test", "x.y.b.test, x.a.test"),
        ("*.a.test .c.test b.*", "*.a.test, .c.test, b.*"),
        ("c.test d.test e.test f.test g.test", "c.test, d.test, e.test and 2 more"),
    ] {
        assert_eq!(what(names), Some(format!("{of}: {shown}")), "{names}");
    }
}

#[test]
fn only_certificates_that_clients_see_count() {
    let certificate = "ssl_certificate a.pem;";
    let late = END + 1;
    for (servers, lines) in [
        (format!("server {{ listen 443 ssl; {certificate} }}"), 1),
        (format!("{certificate} server {{ listen 443 ssl; }} server {{ listen 444 quic; }}"), 1),
        (format!("server {{ {certificate} }} server {{ listen 1 ssl; {certificate} }}"), 2),
        (format!("{certificate} server {{ listen 80; }}"), 0),
        (format!("server {{ listen 443 ssl; ssl_reject_handshake on; {certificate} }}"), 0),
        ("server { listen 443 ssl; ssl_certificate none.pem; }".into(), 0),
        ("server { listen 443 ssl; ssl_certificate $ssl_server_name.pem; }".into(), 0),
        ("server { listen 443 ssl; ssl_certificate; }".into(), 0),
    ] {
        let found = wrong(&servers, late);
        assert_eq!(found.len(), usize::from(lines > 0), "{servers}: {found:?}");
        assert!(found.iter().all(|(_, count)| *count == lines), "{servers}: {found:?}");
    }
    let data = format!("server {{ listen 443 ssl; ssl_certificate 'data:{ENDED}'; }}");
    let said = wrong(&data, late).pop().map(|(what, _)| what).unwrap_or_default();
    assert!(said.starts_with("certificate \"data:...\" expired today"), "{said}");
}

#[test]
fn each_certificate_of_a_chain_is_checked_for_expiry() {
    let text = "events {} http { server { listen 443 ssl; ssl_certificate b.pem; } }";
    let chain = format!("{ENDED}{ENDED}");
    let mut files = MemoryFiles::default().with("/b.pem", &chain).with("/nginx.conf", text);
    let conf = ExaminedConfig::read(Path::new("/nginx.conf"), &mut files).unwrap();
    let problems = certificate_problems(conf.root(), &conf.certificates, END + 1);
    let starts: Vec<_> = problems.iter().filter_map(|problem| problem.what.get(..23)).collect();
    assert_eq!(
        starts,
        ["certificate \"/b.pem\" exp", "certificate 2 of \"/b.pe"].map(|s| &s[..23])
    );
}
