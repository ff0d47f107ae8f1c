mod services;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;

use super::testing::{A, AAAA, ReceivedQuery, TestNameServer, TestResponse};
use super::*;

/// Short enough to wait for.
const RESEND_MS: u64 = 300;
const TIMEOUT_MS: u64 = 10_000;

fn run<T>(test: impl Future<Output = T>) -> T {
    const MAX_MS: u64 = 60_000;
    net::run(within::within(MAX_MS, test)).unwrap().expect("in time")
}

fn settings(servers: &[&TestNameServer]) -> ResolverSettings {
    let servers = servers.iter().map(|server| server.address).collect();
    ResolverSettings { servers, ipv4: true, ipv6: true, ..Default::default() }
}

/// A resolver with nginx's resend interval, which a test with answers does not reach.
fn resolver_of(settings: ResolverSettings, timeout_ms: u64) -> Resolver {
    Resolver { state: Rc::new(ResolverState::new(settings)), timeout_ms }
}

/// A resolver with a short resend interval.
fn hurried(settings: ResolverSettings, timeout_ms: u64) -> Resolver {
    let mut state = ResolverState::new(settings);
    state.rotation.resend_ms = RESEND_MS;
    Resolver { state: Rc::new(state), timeout_ms }
}

fn resolver(servers: &[&TestNameServer]) -> Resolver {
    resolver_of(settings(servers), TIMEOUT_MS)
}

/// A name server with one address for every name.
fn simple() -> TestNameServer {
    TestNameServer::start(|asked| Some(asked.addresses(300, &["127.0.0.1"])))
}

/// An address on which no name server listens.
fn closed() -> SocketAddr {
    UdpSocket::bind("127.0.0.2:0").unwrap().local_addr().unwrap()
}

async fn shown(resolver: &Resolver, name: &str) -> String {
    match resolver.addresses(name.as_bytes()).await {
        Ok(resolved) => list(&resolved.addresses),
        Err(error) => error.to_string(),
    }
}

fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

async fn pause(ms: u64) {
    net::sleep(std::time::Duration::from_millis(ms)).await;
}

#[test]
fn both_families_are_queried_and_kept() {
    let server =
        TestNameServer::start(|asked| Some(asked.addresses(300, &["127.0.0.1", "::1", "::2"])));
    let resolver = resolver(&[&server]);
    run(async {
        assert_eq!(resolver.known(b"example.net"), None);
        assert_eq!(shown(&resolver, "example.net").await, "127.0.0.1 ::1 ::2");
        for same in ["EXAMPLE.net", "example.net."] {
            assert_eq!(resolver.addresses(same.as_bytes()).await.unwrap().addresses.len(), 3);
        }
        let known = resolver.known(b"example.net").unwrap();
        let left_ms = known.valid_until_ms - clock::now_ms();
        assert!((290_000..=300_000).contains(&left_ms), "{left_ms}");
    });
    assert_eq!(server.log(), ["A example.net", "AAAA example.net"]);
}

#[test]
fn addresses_are_not_queried() {
    let server = simple();
    let resolver = resolver(&[&server]);
    run(async {
        assert_eq!(shown(&resolver, "192.0.2.1").await, "192.0.2.1");
        assert_eq!(shown(&resolver, "2001:db8::1").await, "2001:db8::1");
        for nonsense in ["", "..", "a..b"] {
            let found = shown(&resolver, nonsense).await;
            assert!(found.ends_with(" could not be resolved (3: Host not found)"), "{found}");
        }
    });
    assert_eq!(server.log(), [""; 0]);
}

#[test]
fn one_family_may_be_enough() {
    let server = TestNameServer::start(|asked| Some(asked.addresses(300, &["127.0.0.1", "::1"])));
    let v4 = resolver_of(ResolverSettings { ipv6: false, ..settings(&[&server]) }, TIMEOUT_MS);
    let v6 = resolver_of(ResolverSettings { ipv4: false, ..settings(&[&server]) }, TIMEOUT_MS);
    run(async {
        assert_eq!(shown(&v4, "v4.net").await, "127.0.0.1");
        assert_eq!(shown(&v6, "v6.net").await, "::1");
    });
    assert_eq!(server.log(), ["A v4.net", "AAAA v6.net"]);
}

#[test]
fn failures_have_nginx_s_words_and_are_not_kept() {
    let server = TestNameServer::start(|asked| {
        let code = asked.name.bytes().next()? - b'0';
        Some(asked.reply().code(code))
    });
    let resolver = resolver(&[&server]);
    run(async {
        let expected = |code: &str| format!("{}.net could not be resolved ({code})", &code[..1]);
        for code in ["2: Server failure", "3: Host not found", "4: Unimplemented"] {
            assert_eq!(shown(&resolver, &format!("{}.NET", &code[..1])).await, expected(code));
        }
        assert_eq!(shown(&resolver, "5.net.").await, expected("5: Operation refused"));
        let error = resolver.addresses(b"0.net").await.unwrap_err();
        assert!(error.is_not_found(), "a name without addresses: {error}");
        let left_ms = error.valid_until_ms - clock::now_ms();
        assert!((9_000..=FAILURE_VALID_MS).contains(&left_ms), "{left_ms}");
        shown(&resolver, "0.net").await;
    });
    assert_eq!(server.log().iter().filter(|line| *line == "A 0.net").count(), 2);
}

#[test]
fn a_failure_is_final_and_the_next_lookup_uses_the_next_server() {
    let bad = TestNameServer::start(|asked| Some(asked.reply().code(2)));
    let good = simple();
    let resolver = resolver(&[&bad, &good]);
    run(async {
        let failed = "a.net could not be resolved (2: Server failure)";
        assert_eq!(shown(&resolver, "a.net").await, failed);
        assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1");
        assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1");
    });
    assert_eq!((bad.log().len(), good.log().len()), (2, 2));
}

#[test]
fn a_query_is_repeated_and_then_sent_to_the_next_server() {
    let silent = TestNameServer::start(|_| None);
    let second = TestNameServer::start(|asked| {
        (asked.times > 1).then(|| asked.addresses(300, &["127.0.0.1"]))
    });
    let resolver = hurried(settings(&[&silent, &second]), TIMEOUT_MS);
    run(async {
        assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1");
    });
    // Two questions, twice each: the second server is used only after the first had both.
    assert_eq!((silent.log().len(), second.log().len()), (4, 4));
}

#[test]
fn only_unanswered_questions_are_sent_again() {
    let server = TestNameServer::start(|asked| {
        (asked.kind == A || asked.times > 1).then(|| asked.addresses(300, &["127.0.0.1", "::1"]))
    });
    let resolver = hurried(settings(&[&server]), TIMEOUT_MS);
    run(async { assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1 ::1") });
    assert_eq!(server.log(), ["A a.net", "AAAA a.net", "AAAA a.net"]);
}

#[test]
fn a_wait_ends_in_time_and_so_does_the_lookup() {
    let silent = TestNameServer::start(|_| None);
    let resolver = hurried(settings(&[&silent]), RESEND_MS / 3);
    run(async {
        let expected = "a.net could not be resolved (110: Operation timed out)";
        assert_eq!(shown(&resolver, "a.net").await, expected);
        assert_eq!(resolver.state.under_way(), 1, "until the next resending");
        pause(2 * RESEND_MS).await;
        assert_eq!(resolver.state.under_way(), 0);
    });
    assert_eq!(silent.log().len(), 2);
}

#[test]
fn an_unreachable_name_server_is_skipped() {
    let server = simple();
    let mut both = settings(&[&server]);
    both.servers.insert(0, closed());
    let resolver = resolver_of(both, TIMEOUT_MS);
    run(async {
        assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1");
    });
    assert_eq!(server.log().len(), 2, "nothing was asked again");
}

#[test]
fn unreachable_name_servers_cause_no_busy_loop() {
    let mut none = settings(&[]);
    none.servers = vec![closed(), closed()];
    let resolver = resolver_of(none, RESEND_MS / 2);
    run(async { assert!(shown(&resolver, "a.net").await.ends_with("(110: Operation timed out)")) });
}

#[test]
fn a_truncated_answer_is_fetched_over_tcp() {
    let server = TestNameServer::start(|asked| match asked.over_tcp {
        true => Some(asked.addresses(300, &["127.0.0.1", "::1"])),
        false => Some(asked.addresses(300, &["127.0.0.201"]).truncated()),
    });
    let resolver = resolver(&[&server]);
    run(async { assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1 ::1") });
    let mut log = server.log();
    log.sort_unstable();
    assert_eq!(log, ["A a.net", "AAAA a.net", "tcp A a.net", "tcp AAAA a.net"]);
}

#[test]
fn an_answer_truncated_again_is_fetched_from_another_server_over_tcp() {
    let first = TestNameServer::start(|asked| Some(asked.reply().truncated()));
    let second = simple();
    let resolver = resolver(&[&first, &second]);
    run(async { assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1") });
    assert!(second.log().iter().all(|line| line.starts_with("tcp ")), "{:?}", second.log());
}

#[test]
fn invalid_responses_are_ignored() {
    let server = TestNameServer::start(|asked| {
        let reply = asked.addresses(300, &["127.0.0.1"]);
        Some(match asked.times {
            1 => reply.forged(),
            2 => asked.reply().code(1),
            3 => reply.record(&asked.name, asked.kind, 300, &[1, 2, 3]),
            _ => reply,
        })
    });
    let resolver = hurried(settings(&[&server]), TIMEOUT_MS);
    run(async { assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1") });
    assert_eq!(server.log().len(), 8);
}

fn aliases(asked: &ReceivedQuery) -> Option<TestResponse> {
    let alias = |name: &str| asked.reply().alias(&asked.name, 300, name);
    Some(match &asked.name[..] {
        "whole.net" => asked.addresses(300, &[]).alias("whole.net", 1, "a.net").record(
            "a.net",
            asked.kind,
            300,
            if asked.kind == A { &[127, 0, 0, 1] } else { &[0; 16] },
        ),
        "short.net" => asked.reply().alias("short.net", 1, "a.net"),
        "circle.net" => alias("circle.net"),
        "dangling.net" => alias("nowhere.net"),
        "nowhere.net" => asked.reply().code(3),
        name if name.starts_with("chain") => {
            let number: usize = name[5..name.len() - 4].parse().ok()?;
            match number {
                0 => alias("a.net"),
                _ => alias(&format!("chain{}.net", number - 1)),
            }
        }
        _ => asked.addresses(300, &["127.0.0.1"]),
    })
}

#[test]
fn aliases_are_followed() {
    let server = TestNameServer::start(aliases);
    let resolver = resolver(&[&server]);
    run(async {
        assert_eq!(shown(&resolver, "whole.net").await, "127.0.0.1 ::");
        assert_eq!(server.log().len(), 2, "all in one answer");
        let short = resolver.addresses(b"short.net").await.unwrap();
        let left_ms = short.valid_until_ms - clock::now_ms();
        assert_eq!((list(&short.addresses), left_ms <= 1000), ("127.0.0.1".into(), true));
        assert_eq!(shown(&resolver, "short.net").await, "127.0.0.1");
        assert_eq!(server.log().len(), 6, "kept by both names");
        let dangling = "dangling.net could not be resolved (3: Host not found)";
        assert_eq!(shown(&resolver, "dangling.net").await, dangling);
    });
}

#[test]
fn the_length_of_alias_chains_is_bounded() {
    let server = TestNameServer::start(aliases);
    let resolver = resolver(&[&server]);
    run(async {
        let longest = format!("chain{}.net", ALIASES_FOLLOWED_MAX - 1);
        assert_eq!(shown(&resolver, &longest).await, "127.0.0.1");
        assert!(resolver.known(longest.as_bytes()).is_some());
        let longer = format!("chain{ALIASES_FOLLOWED_MAX}.net");
        assert!(shown(&resolver, &longer).await.ends_with("(3: Host not found)"));
        assert!(shown(&resolver, "circle.net").await.ends_with("(3: Host not found)"));
        assert_eq!(resolver.known(b"circle.net"), None);
    });
}

/// Combinations of the answers to A and AAAA, and the results: nginx's http_resolver_aaaa.t.
#[test]
fn two_answers_make_one() {
    let server = TestNameServer::start(|asked| {
        if asked.name == "target.net" {
            return Some(asked.addresses(300, &["127.0.0.9", "::9"]));
        }
        let said = asked.name.as_bytes()[if asked.kind == A { 0 } else { 1 }];
        Some(match said {
            b'n' => asked.addresses(300, &["127.0.0.1", "::1"]),
            b'c' => asked.reply().alias(&asked.name, 300, "target.net"),
            b'e' => asked.reply().code(2),
            _ => asked.reply(),
        })
    });
    let resolver = resolver(&[&server]);
    let table = [
        ("nn", "127.0.0.1 ::1"),
        ("nz", "127.0.0.1"),
        ("zn", "::1"),
        ("nc", "127.0.0.1"),
        ("cn", "::1"),
        ("cc", "127.0.0.9 ::9"),
        ("ne", "2: Server failure"),
        ("en", "2: Server failure"),
        ("ee", "2: Server failure"),
        ("ec", "2: Server failure"),
        ("ze", "2: Server failure"),
        ("zz", "3: Host not found"),
    ];
    run(async {
        for (name, expected) in table {
            let found = shown(&resolver, &format!("{name}.net")).await;
            let failed = format!("{name}.net could not be resolved ({expected})");
            // The alias's answer may be cached, and then come in any order.
            let same = found == expected || found == failed;
            assert!(same, "{name}: {found}");
        }
    });
}

#[test]
fn an_answer_is_valid_for_its_ttl() {
    let server = TestNameServer::start(|asked| {
        let ttl_s = if asked.name == "never.net" { 0 } else { 1 };
        Some(asked.addresses(ttl_s, &["127.0.0.1"]))
    });
    let by_ttl = resolver(&[&server]);
    let valid = ResolverSettings { valid_ms: Some(60_000), ..settings(&[&server]) };
    let by_valid = resolver_of(valid, TIMEOUT_MS);
    run(async {
        for resolver in [&by_ttl, &by_valid] {
            shown(resolver, "a.net").await;
            shown(resolver, "never.net").await;
        }
        assert!(by_ttl.known(b"a.net").is_some());
        assert!(by_ttl.known(b"never.net").is_none());
        assert!(by_valid.known(b"never.net").is_some());
        pause(1100).await;
        assert!(by_ttl.known(b"a.net").is_none());
        assert!(by_valid.known(b"a.net").is_some());
        assert_eq!(server.log().len(), 8);
        assert_eq!(shown(&by_ttl, "a.net").await, "127.0.0.1");
        assert_eq!(server.log().len(), 10);
    });
}

#[test]
fn all_waiters_for_a_name_share_one_lookup() {
    const WAITERS: usize = 500;
    let server = TestNameServer::start(|asked| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        Some(asked.addresses(300, &["127.0.0.1"]))
    });
    let resolver = resolver(&[&server]);
    run(async {
        let waits = (0..WAITERS).map(|_| shown(&resolver, "a.net"));
        let found = within::all(waits).await;
        assert!(found.iter().all(|found| found == "127.0.0.1"));
        assert_eq!(resolver.state.under_way(), 0);
    });
    assert_eq!(server.log(), ["A a.net", "AAAA a.net"]);
}

#[test]
fn a_waiter_that_gives_up_does_not_affect_others() {
    let server = TestNameServer::start(|asked| {
        (asked.times > 1).then(|| asked.addresses(300, &["127.0.0.1"]))
    });
    let patient = hurried(settings(&[&server]), TIMEOUT_MS);
    let hasty = Resolver { timeout_ms: RESEND_MS / 3, ..patient.clone() };
    run(async {
        let waits = [&hasty, &patient, &hasty].into_iter().map(|resolver| shown(resolver, "a.net"));
        let found = within::all(waits).await;
        assert!(found[0].ends_with("(110: Operation timed out)"), "{found:?}");
        assert_eq!(found[1], "127.0.0.1");
        assert_eq!(found[0], found[2]);
    });
}

#[test]
fn a_thousand_names_at_once() {
    const NAMES: usize = 1000;
    let server = TestNameServer::start(|asked| {
        let number: usize = asked.name[1..asked.name.len() - 4].parse().ok()?;
        let address = format!("10.0.{}.{}", number / 250, number % 250);
        Some(asked.addresses(300, &[&address]))
    });
    let resolver = resolver_of(settings(&[&server]), 0);
    run(async {
        let names: Vec<_> = (0..NAMES).map(|number| format!("n{number}.net")).collect();
        let found = within::all(names.iter().map(|name| shown(&resolver, name))).await;
        for (number, found) in found.iter().enumerate() {
            assert_eq!(*found, format!("10.0.{}.{}", number / 250, number % 250));
        }
        assert!(names.iter().all(|name| resolver.known(name.as_bytes()).is_some()));
    });
    let ports = server.ports().len();
    assert!((NAMES * 2 / 16..NAMES * 2).contains(&ports), "{ports} sockets");
}

#[test]
fn every_lookup_has_a_port_of_its_own() {
    let server = simple();
    let resolver = resolver(&[&server]);
    run(async {
        for number in 0..8 {
            shown(&resolver, &format!("n{number}.net")).await;
            // The tasks that held the socket end.
            net::yield_now().await;
        }
    });
    assert!(server.ports().len() >= 7, "{:?}", server.ports());
}

#[test]
fn cached_addresses_are_rotated() {
    let server =
        TestNameServer::start(|asked| Some(asked.addresses(300, &["10.0.0.1", "10.0.0.2", "::1"])));
    let resolver = resolver(&[&server]);
    run(async {
        assert_eq!(shown(&resolver, "a.net").await, "10.0.0.1 10.0.0.2 ::1");
        let mut seen = std::collections::HashSet::new();
        for _ in 0..500 {
            let mut addresses = resolver.known(b"a.net").unwrap().addresses;
            seen.insert(addresses[0]);
            addresses.sort_unstable();
            assert_eq!(list(&addresses), "10.0.0.1 10.0.0.2 ::1");
        }
        assert_eq!(seen.len(), 3);
    });
}

#[test]
fn the_name_of_an_address() {
    let server = TestNameServer::start(|asked| match &asked.name[..] {
        "1.0.0.127.in-addr.arpa" => Some(asked.reply().pointer(&asked.name, 300, "one.net")),
        name if name.ends_with(".ip6.arpa") => Some(asked.reply().alias(name, 300, "other.arpa")),
        "other.arpa" => Some(asked.reply().pointer("other.arpa", 300, "six.net")),
        _ => Some(asked.reply().code(3)),
    });
    let resolver = resolver(&[&server]);
    run(async {
        let name = |ip: &str| resolver.name_of(ip.parse().unwrap());
        assert_eq!(name("127.0.0.1").await.unwrap().to_string(), "one.net");
        assert_eq!(name("127.0.0.1").await.unwrap().to_string(), "one.net");
        assert_eq!(name("::1").await.unwrap().to_string(), "six.net");
        let error = name("127.0.0.2").await.unwrap_err();
        assert_eq!(error.to_string(), "127.0.0.2 could not be resolved (3: Host not found)");
    });
    assert_eq!(server.log().len(), 4);
}

#[test]
fn questions_of_different_types_are_separate() {
    let server = TestNameServer::start(|asked| {
        assert!([A, AAAA].contains(&asked.kind));
        Some(asked.addresses(300, &["127.0.0.1"]))
    });
    let resolver = resolver(&[&server]);
    run(async {
        assert_eq!(shown(&resolver, "a.net").await, "127.0.0.1");
        assert!(
            resolver
                .state
                .follow_known(Topic::Services, &DomainName::from_text(b"a.net").unwrap())
                .is_none()
        );
    });
}
