use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use super::{Comparison, is_listed};
use crate::testing::{TestSite, site};

const TIME: u64 = 784_111_777;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const ETAG: &str = "\"2ebc98a1-4\"";

/// A site with one file of four bytes.
fn file(settings: &str) -> TestSite {
    let site = site(&format!("server {{ {settings} }}"));
    let path = site.file("a.html", "text");
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(TIME)).unwrap();
    site
}

fn status(site: &TestSite, condition: &str) -> u16 {
    site.get_with("/a.html", &format!("{condition}\n")).status()
}

#[test]
fn an_unmodified_reply_is_304() {
    let answer = file("").get_with("/a.html", &format!("If-None-Match: {ETAG}\n"));
    assert_eq!((answer.status(), answer.body().as_str()), (304, ""));
    assert_eq!(answer.head(), [format!("Last-Modified: {DATE}"), format!("ETag: {ETAG}")]);
}

#[test]
fn if_modified_since_by_its_rule() {
    let table = [("exact", [200, 304, 200]), ("before", [200, 304, 304]), ("off", [200, 200, 200])];
    for (rule, expected) in table {
        let site = file(&format!("if_modified_since {rule};"));
        let status = |date| status(&site, &format!("If-Modified-Since: {date}"));
        assert_eq!([EARLIER, DATE, LATER].map(status), expected, "{rule}");
        assert_eq!(status("nonsense"), 200);
    }
}

#[test]
fn if_unmodified_since() {
    let site = file("");
    let status = |date| status(&site, &format!("If-Unmodified-Since: {date}"));
    assert_eq!([EARLIER, DATE, LATER, "nonsense"].map(status), [412, 200, 200, 412]);
}

#[test]
fn if_match_and_if_none_match() {
    let site = file("");
    for (list, if_match, if_none_match) in [
        ("*".to_owned(), 200, 304),
        (ETAG.to_owned(), 200, 304),
        (format!("W/{ETAG}"), 412, 304),
        (format!("\"a,b\" ,W/\"x\",\t{ETAG} , \"y\""), 200, 304),
        (format!("{ETAG}x"), 412, 200),
        ("\"other\"".to_owned(), 412, 200),
    ] {
        assert_eq!(status(&site, &format!("If-Match: {list}")), if_match, "{list}");
        assert_eq!(status(&site, &format!("If-None-Match: {list}")), if_none_match, "{list}");
    }
}

#[test]
fn both_conditions_must_hold_for_304() {
    let site = file("");
    let both =
        |date, tag| status(&site, &format!("If-Modified-Since: {date}\nIf-None-Match: {tag}"));
    assert_eq!(both(DATE, ETAG), 304);
    assert_eq!(both(EARLIER, ETAG), 200);
    assert_eq!(both(DATE, "\"other\""), 200);
}

#[test]
fn a_reply_without_time_or_tag() {
    let site = site("server { location / { return 200 text; } }");
    let status = |condition: &str| site.get_with("/", &format!("{condition}\n")).status();
    assert_eq!(status(&format!("If-Modified-Since: {DATE}")), 200);
    assert_eq!(status(&format!("If-Unmodified-Since: {DATE}")), 412);
    assert_eq!(status("If-Match: \"x\""), 412);
    assert_eq!(status("If-Match: *"), 200);
    assert_eq!(status("If-None-Match: *"), 304);
}

#[test]
fn etag_may_be_off() {
    assert_eq!(file("").get("/a.html").field("etag").unwrap(), ETAG);
    assert_eq!(file("etag off;").get("/a.html").field("etag"), None);
}

#[test]
fn a_412_has_no_fields_of_the_file() {
    let answer = file("").get_with("/a.html", "If-Match: \"x\"\n");
    assert_eq!(answer.status(), 412);
    assert!(answer.body().contains("412 Precondition Failed"));
    assert_eq!((answer.field("etag"), answer.field("last-modified")), (None, None));
}

#[test]
fn a_weak_etag_is_compared() {
    let listed = |tag: &str, list: &str| {
        let tag = Comparison::Weak.tag(tag.as_bytes());
        is_listed(tag, list.as_bytes(), Comparison::Weak)
    };
    assert!(listed("W/\"a\"", "\"a\""));
    assert!(listed("W/\"a\"", "\"b\", W/\"a\""));
    assert!(!listed("W/\"a\"", "\"ab\""));
    assert!(!is_listed(b"W/\"a\"", b"\"a\"", Comparison::Strong));
}
