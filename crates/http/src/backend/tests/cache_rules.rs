//! What a cache does by the rules of RFC 9111, `Cache-Status`, and its bounds.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cache::{Cached, GET, outcome};
use crate::backend::testing::values;
use crate::h1::tests::Server;

const RULES: &str = "proxy_cache_rules rfc9111;";
const REPLY: &str = "HTTP/1.1 200 OK\nCache-Control: max-age=3600\nContent-Length: 2\n\nn%N";

/// A reply with more fields.
fn with(fields: &str) -> String {
    REPLY.replacen("Content", &format!("{fields}\nContent"), 1)
}

fn status(reply: &str) -> &str {
    reply.get(9..12).unwrap_or_default()
}

#[test]
fn a_stored_reply_has_its_own_date_and_its_age() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let fields = format!("Date: {date}\nAge: 7");
    // The test's client hides the field itself.
    let lines = format!(
        "{RULES} add_header X-Date $sent_http_date;
         add_header X-Cache $upstream_cache_status;"
    );
    let cached = Cached::of(&with(&fields).replace("3600", "4294967295"), &lines);
    let replies = [cached.server.ask(GET), cached.server.ask(GET)];
    for reply in &replies {
        assert_eq!((values(reply, "Date").len(), values(reply, "X-Date")), (1, vec![date]));
    }
    assert_eq!(outcome(&replies[1]), "HIT n1");
    let age: u64 = values(&replies[1], "Age").join("").parse().unwrap();
    assert!(age > 900_000_000, "{age}");
    // Without `Date`, the reply is as old as it says.
    let cached = Cached::of(
        &with("Age: 30"),
        "proxy_cache_rules rfc9111;
        add_header X-Age $upstream_cache_age;",
    );
    assert!(values(&cached.server.ask(GET), "X-Age").is_empty());
    let reply = cached.server.ask(GET);
    let age: u64 = values(&reply, "Age").join("").parse().unwrap();
    assert!((30..90).contains(&age), "{age}");
    assert_eq!(values(&reply, "X-Age"), values(&reply, "Age"));
}

#[test]
fn a_reply_may_be_too_old_already() {
    let cached = Cached::of(&with("Age: 3600"), RULES);
    assert_eq!([cached.get(), cached.get()], ["MISS n1", "MISS n2"]);
}

#[test]
fn a_304_changes_the_fields_of_a_stored_reply() {
    for length in [1, 600_000] {
        let body = "x".repeat(length);
        let cached = Cached::answering(RULES, move |request| {
            let (status, number) = match request.contains("If-None-Match: \"a\"") {
                true => ("304 Not Modified", 2),
                false => ("200 OK", 1),
            };
            let body = if number == 1 { &body[..] } else { "" };
            let length = body.len();
            format!(
                "HTTP/1.1 {status}\nETag: \"a\"\nX-A: {number}\nCache-Control: max-age=3600\n\
                 Content-Length: {length}\n\n{body}"
            )
        });
        assert_eq!(values(&cached.server.ask(GET), "X-A"), ["1"]);
        cached.expire();
        let reply = cached.server.ask(GET);
        assert_eq!(
            (values(&reply, "X-A"), values(&reply, "X-Cache")),
            (vec!["2"], vec!["REVALIDATED"])
        );
        assert_eq!(outcome(&reply).len(), "REVALIDATED ".len() + length);
        let hit = testing::eventually("the new file", || {
            let reply = cached.server.ask(GET);
            Some(reply).filter(|reply| values(reply, "X-Cache") == ["HIT"])
        });
        assert_eq!(values(&hit, "X-A"), ["2"]);
        assert_eq!(outcome(&hit).len(), "HIT ".len() + length);
        testing::eventually("no temporary file", || (cached.files().len() == 1).then_some(()));
    }
}

#[test]
fn a_304_of_another_representation_is_not_kept() {
    let cached = Cached::answering(RULES, |request| match request.contains("If-None-Match") {
        true => "HTTP/1.1 304 Not Modified\nETag: \"b\"\nCache-Control: max-age=9\n\n".into(),
        false => with("ETag: \"a\""),
    });
    cached.get();
    cached.expire();
    assert_eq!(cached.get(), "REVALIDATED n%");
    assert!(cached.files().is_empty());
}

#[test]
fn an_unsafe_method_removes_what_is_stored() {
    for (method, answer, expected) in [
        ("POST", "200 OK", "MISS n3"),
        ("DELETE", "204 No Content", "MISS n3"),
        ("X-OWN", "302 Found", "MISS n3"),
        ("POST", "500 Error", "HIT n1"),
        ("OPTIONS", "200 OK", "HIT n1"),
    ] {
        let asked = AtomicU32::new(0);
        let cached = Cached::answering(RULES, move |request| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            let reply = REPLY.replace("%N", &number.to_string());
            match request.starts_with("GET") {
                true => reply,
                false => format!("HTTP/1.1 {answer}\nContent-Length: 0\n\n"),
            }
        });
        cached.get();
        let request = GET.replacen("GET", method, 1);
        cached.server.ask(&request.replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(cached.get(), expected, "{method} {answer}");
    }
}

#[test]
fn an_unsafe_method_removes_what_its_reply_names() {
    let cached = Cached::answering(RULES, |request| match request.starts_with("GET") {
        true => with("Vary: X-V"),
        false => "HTTP/1.1 201 Created\nLocation: http://h/a\nContent-Length: 0\n\n".into(),
    });
    cached.get_with("X-V: 1");
    cached.get_with("X-V: 2");
    cached.server.ask(&GET.replacen("GET /a", "PUT /b", 1));
    assert!(cached.files().is_empty());
}

/// Another process with the same cache and backend.
fn next_process(cached: &Cached, parameters: &str, lines: &str) -> Server {
    let (address, path) = (cached.backend.address(), cached.folder.display());
    Server::start(format!(
        "error_log e.log info;
         proxy_cache_path {path}/cache keys_zone=one:1m levels=1:2 {parameters};
         proxy_temp_path {path}/temp;
         add_header X-Cache $upstream_cache_status always;
         server {{ location / {{ proxy_pass http://{address}; proxy_cache one; {lines} }} }}"
    ))
}

#[test]
fn an_unsafe_method_covers_the_variants_of_an_earlier_process() {
    let asked = AtomicU32::new(0);
    let cached = Cached::answering(RULES, move |request| match request.starts_with("GET") {
        true => {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            with("Vary: X-V").replace("%N", &number.to_string())
        }
        false => "HTTP/1.1 204 No Content\n\n".into(),
    });
    for number in 1..=3 {
        assert_eq!(cached.get_with(&format!("X-V: {number}")), format!("MISS n{number}"));
    }
    let next = next_process(&cached, "", RULES);
    let get = |number: u32| {
        outcome(&next.ask(&GET.replacen("\r\n\r\n", &format!("\r\nX-V: {number}\r\n\r\n"), 1)))
    };
    assert_eq!([get(1), get(2)], ["HIT n1", "HIT n2"]);
    next.ask(&GET.replacen("GET", "POST", 1));
    // The second one was known, the third one was not.
    assert_eq!([get(1), get(2), get(3)], ["MISS n4", "MISS n5", "MISS n6"]);
    assert_eq!([get(1), get(2), get(3)], ["HIT n4", "HIT n5", "HIT n6"]);
    assert_eq!(cached.files().len(), 3);
}

#[test]
fn a_variant_that_this_process_has_stored_may_be_older_than_its_key() {
    let cached = Cached::answering(RULES, |_| with("Vary: X-V"));
    cached.get_with("X-V: 1");
    cached.get_with("X-V: 2");
    // The first one is fetched anew.
    cached.get_with("X-V: 1\r\nCache-Control: no-cache");
    assert_eq!(cached.get_with("X-V: 2"), "HIT n%");
}

#[test]
fn variants_of_an_earlier_process_count_once_they_are_used() {
    let cached = Cached::within("max_variants=3", "", |_| with("Vary: X-V"));
    (0..3).for_each(|number| _ = cached.get_with(&format!("X-V: {number}")));
    let next = next_process(&cached, "max_variants=3", "");
    let get = |number: u32| {
        outcome(&next.ask(&GET.replacen("\r\n\r\n", &format!("\r\nX-V: {number}\r\n\r\n"), 1)))
    };
    assert_eq!([get(2), get(1)], ["HIT n%", "HIT n%"]);
    assert_eq!(get(3), "MISS n%");
    assert_eq!(cached.files().len(), 3);
    assert_eq!(get(2), "MISS n%");
}

#[test]
fn a_request_may_demand_another_reply() {
    let cached = Cached::of(&with("Age: 100"), RULES);
    assert_eq!(cached.get_with("Cache-Control: no-store"), "MISS n1");
    assert_eq!([cached.get(), cached.get()], ["MISS n2", "HIT n2"]);
    for (control, expected) in [
        ("Cache-Control: max-age=200", "HIT n2"),
        ("Cache-Control: max-age=99", "EXPIRED n3"),
        ("Cache-Control: min-fresh=3600", "EXPIRED n4"),
        ("Cache-Control: no-cache", "EXPIRED n5"),
        ("Pragma: no-cache", "EXPIRED n6"),
        ("Pragma: foo", "HIT n6"),
        ("Cache-Control: only-if-cached", "HIT n6"),
    ] {
        assert_eq!(cached.get_with(control), expected, "{control}");
    }
    cached.expire();
    assert_eq!(cached.get_with("Cache-Control: max-stale"), "HIT n6");
    assert_eq!(status(&cached.reply_with("Cache-Control: only-if-cached")), "504");
}

#[test]
fn what_a_request_says_does_not_matter_by_the_rules_of_nginx() {
    let cached = Cached::of(REPLY, "");
    cached.get();
    assert_eq!(cached.get_with("Cache-Control: no-cache"), "HIT n1");
    assert!(values(&cached.server.ask(GET), "Age").is_empty());
}

#[test]
fn must_revalidate_wins_over_the_configuration() {
    for (control, expected) in [
        ("max-age=3600", "STALE a"),
        ("max-age=3600, must-revalidate", "EXPIRED b"),
        ("s-maxage=3600", "EXPIRED b"),
        ("max-age=3600, no-cache=\"x\"", "STALE a"),
    ] {
        let asked = AtomicU32::new(0);
        let lines = format!("{RULES} proxy_cache_use_stale http_500;");
        let cached =
            Cached::answering(&lines, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
                0 => format!("HTTP/1.1 200 OK\nCache-Control: {control}\nContent-Length: 1\n\na"),
                _ => "HTTP/1.1 500 Error\nContent-Length: 1\n\nb".into(),
            });
        cached.get();
        cached.expire();
        assert_eq!(cached.get(), expected, "{control}");
    }
}

#[test]
fn a_reply_may_allow_to_be_used_when_it_has_expired() {
    let lines = "stale-while-revalidate=4294967295, stale-if-error=4294967295";
    let asked = AtomicU32::new(0);
    let cached = Cached::answering(RULES, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => with("A: b").replace("max-age", &format!("{lines}, max-age")),
        1 => "HTTP/1.1 503 Error\nContent-Length: 1\n\nb".into(),
        number => with("A: b").replace("%N", &number.to_string()),
    });
    cached.get();
    cached.expire();
    // It is updated in the background, which fails at first.
    assert_eq!(cached.get(), "STALE n%");
    let updated = testing::eventually("an update", || {
        Some(cached.get()).filter(|reply| reply.starts_with("HIT"))
    });
    assert_eq!(updated, "HIT n2");
}

#[test]
fn fields_for_one_client_or_connection_are_not_stored() {
    let fields = "Connection: x-a\nX-A: 1\nX-B: 2\nX-C: 3\nCache-Control: private=\"x-b\"";
    let cached = Cached::of(&with(fields), RULES);
    let of = |reply: &str| ["X-A", "X-B", "X-C"].map(|name| values(reply, name).len());
    let replies = [cached.server.ask(GET), cached.server.ask(GET)];
    assert_eq!(replies.each_ref().map(|reply| of(reply)), [[0, 1, 1], [0, 0, 1]]);
    let stored = fs::read(&cached.files()[0]).unwrap();
    let stored = String::from_utf8_lossy(&stored[336..]).into_owned();
    assert!(!stored.contains("X-A") && !stored.contains("X-B") && stored.contains("X-C: 3\r\n"));
}

#[test]
fn replies_for_one_user_are_not_stored() {
    let cached = Cached::of(REPLY, RULES);
    assert_eq!(cached.get_with("Authorization: x"), "MISS n1");
    assert_eq!([cached.get(), cached.get_with("Authorization: x")], ["MISS n2", "HIT n2"]);
    let cached = Cached::of(&with("Cache-Control: public"), RULES);
    assert_eq!([cached.get_with("Authorization: x"), cached.get()], ["MISS n1", "HIT n1"]);
}

#[test]
fn a_reply_that_is_validated_for_one_user_stays_as_it_is() {
    let cached = Cached::answering(RULES, |request| match request.contains("If-None-Match") {
        true => "HTTP/1.1 304 Not Modified\nX-User: one\n\n".into(),
        false => with("ETag: \"a\""),
    });
    cached.get();
    cached.expire();
    assert_eq!(cached.get_with("Authorization: x"), "REVALIDATED n%");
    let file = fs::read(&cached.files()[0]).unwrap();
    assert!(file[8..16] == 1_i64.to_ne_bytes() && !file.ends_with(b"X-User: one\r\n\r\nn%"));
    assert_eq!(cached.get(), "REVALIDATED n%");
}

#[test]
fn a_field_that_belongs_to_the_connection_counts_before_it_is_dropped() {
    let cached = Cached::of(&with("Connection: cache-control\nCache-Control: private"), RULES);
    assert_eq!([cached.get(), cached.get()], ["MISS n1", "MISS n2"]);
}

#[test]
fn a_reply_that_must_be_validated_is_stored_for_that() {
    let cached = Cached::answering(RULES, |request| match request.contains("If-None-Match") {
        true => "HTTP/1.1 304 Not Modified\n\n".into(),
        false => with("ETag: \"a\"\nCache-Control: no-cache"),
    });
    let got = [cached.get(), cached.get(), cached.get()];
    assert_eq!(got, ["MISS n%", "REVALIDATED n%", "REVALIDATED n%"]);
}

#[test]
fn tags_come_before_times_and_stored_replies_have_ranges() {
    let fields = "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let cached = Cached::of(&with(fields), RULES);
    cached.get();
    for (condition, expected) in [
        ("If-None-Match: \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1993 08:49:37 GMT", "304"),
        ("If-None-Match: \"b\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "200"),
        ("If-Modified-Since: Sun, 06 Nov 1995 08:49:37 GMT", "304"),
        ("If-Modified-Since: foo", "200"),
        ("If-Match: \"a\"\r\nIf-Unmodified-Since: Sun, 06 Nov 1993 08:49:37 GMT", "200"),
        ("If-Match: \"b\"", "412"),
        ("If-Unmodified-Since: Sun, 06 Nov 1993 08:49:37 GMT", "412"),
        ("Range: bytes=1-", "206"),
    ] {
        assert_eq!(status(&cached.reply_with(condition)), expected, "{condition}");
    }
}

#[test]
fn a_reply_to_head_is_no_reply_to_get() {
    let cached = Cached::of(REPLY, "proxy_cache_rules rfc9111; proxy_cache_convert_head off;");
    cached.server.ask(&GET.replacen("GET", "HEAD", 1));
    assert!(cached.backend.asked().starts_with("HEAD"));
    assert!(cached.files().is_empty());
    assert_eq!([cached.get(), cached.get()], ["MISS n2", "HIT n2"]);
}

#[test]
fn a_reply_to_head_may_show_that_a_stored_one_is_outdated() {
    let lines = "proxy_cache_rules rfc9111; proxy_cache_convert_head off;";
    for (newer, files) in [("ETag: \"b\"", 0), ("ETag: \"a\"", 1), ("X: y", 1)] {
        let cached = Cached::answering(lines, move |request| match request.starts_with("HEAD") {
            true => with(newer),
            false => with("ETag: \"a\""),
        });
        cached.get();
        cached.expire();
        cached.server.ask(&GET.replacen("GET", "HEAD", 1));
        assert_eq!(cached.files().len(), files, "{newer}");
    }
}

#[test]
fn cache_status_says_what_the_cache_did() {
    for rules in ["nginx", "rfc9111"] {
        let lines = format!(
            "proxy_cache_rules {rules}; proxy_cache_status edge; proxy_cache_bypass $http_x_new;"
        );
        let fields = "Cache-Status: inner; hit\nVary: X-V\nETag: \"a\"";
        let cached = Cached::of(&with(fields), &lines);
        let own = |reply: &str| {
            let all = values(reply, "Cache-Status");
            assert_eq!(all[0], "inner; hit");
            let own = all.last().unwrap().to_string();
            own.split("; ttl=").next().unwrap().to_owned()
        };
        let get = |fields: &str| own(&cached.reply_with(fields));
        assert_eq!(get("A: b"), "edge; fwd=uri-miss; fwd-status=200; stored");
        assert_eq!(get("A: b"), "edge; hit");
        assert_eq!(get("X-V: 1"), "edge; fwd=vary-miss; fwd-status=200; stored");
        assert_eq!(get("X-New: 1"), "edge; fwd=bypass; fwd-status=200; stored");
        cached.expire();
        assert_eq!(get("A: b"), "edge; fwd=stale; fwd-status=200; stored");
        let post = cached.server.ask(&GET.replacen("GET", "POST", 1));
        assert_eq!(own(&post), "edge; fwd=method; fwd-status=200");
    }
    let off = Cached::of(REPLY, "");
    assert!(values(&off.server.ask(GET), "Cache-Status").is_empty());
}

#[test]
fn the_number_of_variants_has_a_bound() {
    let cached = Cached::within("max_variants=3", "", |_| with("Vary: X-V"));
    for number in 0..20 {
        assert_eq!(cached.get_with(&format!("X-V: {number}")), "MISS n%");
    }
    assert_eq!(cached.files().len(), 3);
    assert_eq!(cached.get_with("X-V: 0"), "HIT n%");
    assert_eq!(cached.get_with("X-V: 19"), "HIT n%");
    assert_eq!(cached.get_with("X-V: 1"), "MISS n%");
}

#[test]
fn a_reply_that_is_too_large_is_not_stored() {
    for framing in
        ["Content-Length: 5\n\nhello", "Transfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n"]
    {
        let reply = format!("HTTP/1.1 200 OK\nCache-Control: max-age=60\n{framing}");
        for (most, expected) in [(4, "MISS hello"), (5, "HIT hello")] {
            let answer = reply.clone();
            let cached =
                Cached::within(&format!("max_object_size={most}"), "", move |_| answer.clone());
            let got =
                [cached.get(), cached.get()].map(|reply| reply.replace("5\r\nhello", "hello"));
            assert!(got[1].starts_with(expected), "{most} {framing}: {got:?}");
        }
    }
}
