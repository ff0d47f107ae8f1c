use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conf::Subsystem;
use zones::Zones;

use crate::resolver::ResolvedPeer;
use crate::testing::{ask, group, lease, load, load_after, load_named, load_of, sequence, short};
use crate::{Ask, Attempt, Group, LeaseEvent, ServerChoice};

const NOW: u64 = 1_000_000;

fn at(now_ms: u64) -> Ask<'static> {
    Ask { now_ms, ..Ask::default() }
}

/// A request to the next server, which succeeds unless the server is in `dead`.
fn request(group: &Arc<Group>, now_ms: u64, dead: &[&str]) -> (String, Option<LeaseEvent>) {
    let mut lease = lease(ask(group, at(now_ms)));
    let name = short(&lease);
    let event = match dead.contains(&&*name) {
        true => lease.failed(now_ms),
        false => {
            lease.succeeded(now_ms);
            None
        }
    };
    (name, event)
}

#[test]
fn a_server_that_fails_is_left_alone_for_fail_timeout() {
    let group = group("server 10.0.0.1 max_fails=2 fail_timeout=5s; server 10.0.0.2;");
    let names = |now_ms: u64, count: usize, dead: &[&str]| {
        let names = (0..count).map(|_| request(&group, now_ms, dead).0);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(request(&group, NOW, &["1"]), ("1".into(), None));
    assert_eq!(request(&group, NOW, &["1"]).0, "2");
    assert_eq!(request(&group, NOW, &["1"]), ("1".into(), Some(LeaseEvent::Disabled)));
    assert_eq!(LeaseEvent::Disabled.to_string(), "upstream server temporarily disabled");
    assert_eq!(names(NOW + 5000, 4, &[]), "2 2 2 2");
    // Then one request tries it, and its failure disables the server again.
    assert!(names(NOW + 5001, 3, &["1"]).contains('1'));
    assert_eq!(names(NOW + 10_001, 4, &[]), "2 2 2 2");
    // A success clears all failures.
    assert!(names(NOW + 10_002, 3, &[]).contains('1'));
    assert_eq!(group.servers()[0].fails(), 0);
    assert_eq!(names(NOW + 10_002, 4, &[]).matches('1').count(), 2);
}

#[test]
fn a_success_forgives_only_after_a_trial() {
    let group = group("server 10.0.0.1 max_fails=3 fail_timeout=5s; server 10.0.0.2;");
    let fails = || group.servers()[0].fails();
    assert_eq!(request(&group, NOW, &["1"]).0, "1");
    for _ in 0..4 {
        request(&group, NOW + 1000, &[]);
    }
    assert_eq!(fails(), 1, "within fail_timeout it counts");
    for _ in 0..4 {
        request(&group, NOW + 5001, &[]);
    }
    assert_eq!(fails(), 0);
}

#[test]
fn failures_take_weight_that_comes_back() {
    let group = group("server 10.0.0.1 weight=4 max_fails=2; server 10.0.0.2 weight=4;");
    assert_eq!(sequence(&group, 4, NOW), "1 2 1 2");
    assert_eq!(request(&group, NOW, &["1"]).0, "1");
    // It gains 2, 3, 4, 4 while the other gains 4 each time.
    assert_eq!(sequence(&group, 6, NOW), "2 2 1 2 1 2");
}

#[test]
fn max_fails_0_never_disables() {
    let group = group("server 10.0.0.1 max_fails=0; server 10.0.0.2 max_fails=0;");
    for _ in 0..20 {
        assert_eq!(request(&group, NOW, &["1", "2"]).1, None);
    }
}

#[test]
fn the_only_server_is_used_after_failures() {
    let group = group("server 10.0.0.1;");
    for _ in 0..3 {
        assert_eq!(request(&group, NOW, &["1"]), ("1".into(), None));
    }
    let mut attempt = Attempt::default();
    drop(lease(group.choose(&mut attempt, &at(NOW))));
    assert_eq!(attempt.tries_left(), 0);
    attempt.allow_another();
    assert_eq!(attempt.tries_left(), 1);
    assert_eq!(short(&lease(group.choose(&mut attempt, &at(NOW)))), "1");
}

#[test]
fn a_server_that_has_refused_a_request_may_be_chosen_again() {
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    let mut attempt = Attempt::default();
    for _ in 0..6 {
        lease(group.choose(&mut attempt, &at(NOW)));
        attempt.allow_again();
        assert_eq!(attempt.tries_left(), 2);
    }
    let chosen = [(); 2].map(|()| short(&lease(group.choose(&mut attempt, &at(NOW)))).to_owned());
    assert_eq!(chosen, ["1", "2"]);
    assert!(matches!(group.choose(&mut attempt, &at(NOW)), ServerChoice::None));
}

#[test]
fn backups_are_used_when_no_primary_can_be() {
    let group = group("server 10.0.0.1; server 10.0.0.2; server 10.0.0.9 backup;");
    let dead = ["1", "2"];
    let names: Vec<String> = (0..4).map(|_| request(&group, NOW, &dead).0).collect();
    assert_eq!(names.join(" "), "1 2 9 9");
    assert_ne!(request(&group, NOW + 10_001, &[]).0, "9");
    let one = crate::testing::group("server 10.0.0.1; server 10.0.0.9 backup;");
    request(&one, NOW, &["1"]);
    assert_eq!(request(&one, NOW, &[]).0, "9", "with a backup, no server is alone");
}

#[test]
fn a_server_that_is_down_is_not_used() {
    let group = group("server 10.0.0.1 down; server 10.0.0.2;");
    assert_eq!(sequence(&group, 3, NOW), "2 2 2");
    let mut attempt = Attempt::default();
    drop(group.choose(&mut attempt, &at(NOW)));
    assert_eq!(attempt.tries_left(), 0);
    let none = crate::testing::group("server 10.0.0.1 down;");
    assert!(matches!(ask(&none, at(NOW)), ServerChoice::None));
    let draining = crate::testing::group("server 10.0.0.1 drain; server 10.0.0.2;");
    assert_eq!(sequence(&draining, 3, NOW), "2 2 2");
}

#[test]
fn full_servers_make_a_group_busy_and_failed_ones_do_not() {
    let group = group("server 10.0.0.1 max_conns=1; server 10.0.0.2 max_conns=2;");
    let mut leases: Vec<_> = (0..3).map(|_| lease(ask(&group, at(NOW)))).collect();
    let mut attempt = Attempt::default();
    assert!(matches!(group.choose(&mut attempt, &at(NOW)), ServerChoice::Busy));
    let name = short(&leases.remove(1));
    assert_eq!(short(&lease(group.choose(&mut attempt, &at(NOW)))), name, "the place that is free");
    let alone = crate::testing::group("server 10.0.0.1 max_conns=1;");
    let _lease = lease(ask(&alone, at(NOW)));
    assert!(matches!(ask(&alone, at(NOW)), ServerChoice::Busy));
    let failed = crate::testing::group("server 10.0.0.1; server 10.0.0.2;");
    request(&failed, NOW, &["1"]);
    request(&failed, NOW, &["2"]);
    assert!(matches!(ask(&failed, at(NOW)), ServerChoice::None));
}

#[test]
fn a_server_that_is_back_starts_slowly() {
    let group = group(
        "server 10.0.0.1 weight=10 slow_start=100s fail_timeout=1s; server 10.0.0.2 weight=10;",
    );
    request(&group, NOW, &["1"]);
    let back = NOW + 1001;
    while request(&group, back, &[]).0 != "1" {}
    let share = |after_s: u64| {
        let names = (0..200).map(|_| request(&group, back + after_s * 1000, &[]).0);
        names.filter(|name| name == "1").count()
    };
    let shares = [1, 25, 50, 100].map(share);
    assert!(shares[0] <= 4, "{shares:?}");
    assert!((35..=45).contains(&shares[1]), "{shares:?}");
    assert!((62..=71).contains(&shares[2]), "{shares:?}");
    assert_eq!(shares[3], 100, "{shares:?}");
}

#[test]
fn a_reload_keeps_the_state_of_servers() {
    let text = "upstream reloaded { server 10.0.0.1; server 10.0.0.2 max_conns=1; }";
    let load = |before: &Zones| {
        let (groups, zones) = load_after(before, text).unwrap();
        (groups[0].clone(), zones)
    };
    let (old, zones) = load(&Zones::default());
    request(&old, NOW, &["1"]);
    let held = lease(ask(&old, at(NOW)));
    assert_eq!(short(&held), "2");
    let (new, zones) = load(&zones);
    assert_eq!(new.servers()[0].fails(), 1);
    assert_eq!(new.servers()[1].in_progress(), 1);
    assert!(matches!(ask(&new, at(NOW)), ServerChoice::Busy));
    drop(old);
    drop(held);
    assert_eq!(short(&lease(ask(&new, at(NOW)))), "2");
    drop(new);
    let (fresh, _) = load(&zones);
    assert_eq!(fresh.servers()[0].fails(), 0, "what nobody uses is forgotten");
}

#[test]
fn servers_with_one_address_have_separate_states() {
    let group = group("server 10.0.0.1; server 10.0.0.1;");
    request(&group, NOW, &["1"]);
    let fails: Vec<u32> = group.servers().iter().map(|server| server.fails()).collect();
    assert_eq!(fails, [1, 0]);
}

#[test]
fn health_takes_a_server_out_and_brings_it_back() {
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    assert!(group.servers()[0].set_healthy(false, NOW));
    assert!(!group.servers()[0].set_healthy(false, NOW), "no change");
    assert_eq!(sequence(&group, 2, NOW), "2 2");
    assert!(group.servers()[0].set_healthy(true, NOW));
    assert!(sequence(&group, 2, NOW).contains('1'));
}

#[test]
fn implicit_groups_keep_state_and_passing_ones_do_not() {
    let addresses = || {
        ["10.0.0.1:80", "10.0.0.2:80"].map(|text| net::Address::Ip(text.parse().unwrap())).to_vec()
    };
    let implicit = |subsystem| Group::implicit(subsystem, b"implicit", addresses());
    let (one, other) = (implicit(Subsystem::Http), implicit(Subsystem::Http));
    request(&one, NOW, &["1"]);
    assert_eq!(other.servers()[0].fails(), 1);
    assert_eq!(implicit(Subsystem::Stream).servers()[0].fails(), 0);
    assert_eq!(Group::passing(b"implicit", addresses()).servers()[0].fails(), 0);
    assert_eq!(one.pool().settings().connections, 0);
}

#[test]
fn groups_of_two_subsystems_share_nothing_but_a_name() {
    let of =
        |subsystem| load_of(subsystem, "app", "server 10.0.0.1:80; server 10.0.0.2:80;").unwrap().0;
    let (http, stream) = (of(Subsystem::Http), of(Subsystem::Stream));
    request(&http, NOW, &["1"]);
    assert_eq!((http.servers()[0].fails(), stream.servers()[0].fails()), (1, 0));
    assert_eq!(of(Subsystem::Http).servers()[0].fails(), 1);
    assert!(http.servers()[0].set_healthy(false, NOW));
    assert!(stream.servers()[0].set_healthy(false, NOW), "it was still healthy");
    assert_ne!(http.pool().number(), stream.pool().number(), "idle connections are kept by number");
    assert_eq!(of(Subsystem::Http).pool().number(), http.pool().number());
}

/// Threads that choose and release at once: the maximum is never exceeded, and no count is left.
#[test]
fn counts_are_exact_over_threads_and_generations() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 2000;
    let lines = "least_conn; server 10.0.0.1 max_conns=3; server 10.0.0.2 max_conns=2;";
    let text = format!("upstream threads {{ {lines} }}");
    let (old, zones) = load_after(&Zones::default(), &text).unwrap();
    let (new, _) = load_after(&zones, &text).unwrap();
    let generations = [&old[0], &new[0]];
    let served = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (group, served) = (generations[thread % 2], &served);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    match ask(group, at(NOW)) {
                        ServerChoice::Server(lease) => {
                            let most = if short(&lease) == "1" { 3 } else { 2 };
                            assert!(lease.server().in_progress() <= most);
                            served.fetch_add(1, Ordering::Relaxed);
                            if round % 4 == 0 {
                                std::thread::yield_now();
                            }
                        }
                        ServerChoice::Busy => std::thread::yield_now(),
                        ServerChoice::None => panic!("both servers live"),
                    }
                }
            });
        }
    });
    assert!(served.into_inner() > 0);
    let counts = generations[0].servers().iter().map(|server| server.in_progress()).sum::<u32>();
    assert_eq!(counts, 0);
}

fn peer(address: &str, weight: u16, backup: bool) -> ResolvedPeer {
    ResolvedPeer { backup, address: address.parse().unwrap(), name: None, weight }
}

fn names(group: &Group) -> String {
    let names = group.servers();
    let names: Vec<_> = names.iter().map(|server| String::from_utf8_lossy(server.name())).collect();
    names.join(" ")
}

const RESOLVER: &str = "resolver 127.0.0.1;";

#[test]
fn servers_that_stay_keep_their_state_when_names_change() {
    let group = group(&format!("{RESOLVER} server 10.0.0.1; server name:81 resolve weight=3;"));
    assert_eq!(names(&group), "10.0.0.1:80");
    let found = [peer("10.0.0.2:81", 1, false), peer("10.0.0.3:81", 1, false)];
    group.found(1, &found);
    assert_eq!(names(&group), "10.0.0.1:80 10.0.0.2:81 10.0.0.3:81");
    assert_eq!(sequence(&group, 7, NOW).matches("2:81").count(), 3);
    let mut kept = group.servers()[1].clone();
    let mut attempt = Attempt::default();
    while lease(group.choose(&mut attempt, &at(NOW))).address() != kept.address() {}
    let left = attempt.tries_left();
    group.found(1, &found[..1]);
    assert!(Arc::ptr_eq(&kept, &group.servers()[1]));
    kept = group.servers()[1].clone();
    assert_eq!(names(&group), "10.0.0.1:80 10.0.0.2:81");
    assert!(matches!(group.choose(&mut attempt, &at(NOW)), ServerChoice::Server(_)));
    assert!(attempt.tries_left() < left.max(1), "an attempt goes on, and ends");
    group.found(1, &[]);
    assert_eq!(names(&group), "10.0.0.1:80");
    drop(kept);
}

#[test]
fn a_group_with_no_name_found_has_no_server() {
    let group = group(&format!("{RESOLVER} server name resolve; server other resolve backup;"));
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::None));
    group.found(1, &[peer("10.0.0.9:80", 1, false)]);
    assert_eq!(sequence(&group, 2, NOW), "9 9");
}

#[test]
fn a_service_brings_weights_and_backups() {
    let group = group(&format!("{RESOLVER} server name resolve service=http;"));
    let of = |address: &str, weight: u16, backup: bool| ResolvedPeer {
        name: wire::dns::DomainName::from_text(b"host.example").ok(),
        ..peer(address, weight, backup)
    };
    group.found(
        0,
        &[of("10.0.0.1:80", 5, false), of("10.0.0.2:80", 1, false), of("10.0.0.9:80", 1, true)],
    );
    assert_eq!(sequence(&group, 6, NOW).matches('1').count(), 5);
    assert_eq!(group.servers()[0].text(), b"host.example");
    let mut attempt = Attempt::default();
    let mut given = Vec::new();
    while let ServerChoice::Server(lease) = group.choose(&mut attempt, &at(NOW)) {
        given.push(short(&lease));
    }
    assert_eq!(given.last().unwrap(), "9");
}

#[test]
fn a_reload_begins_with_the_last_addresses() {
    let lines = format!("{RESOLVER} server name resolve;");
    let (old, _) = load_named("found", &lines).unwrap();
    old.found(0, &[peer("10.0.0.5:80", 1, false)]);
    let (new, _) = load_named("found", &lines.replace("name", "name:81")).unwrap();
    assert_eq!(names(&new), "10.0.0.5:81");
}

#[test]
fn invalid_uses_of_resolve_are_refused() {
    let table = [
        ("server name resolve;", "no resolver defined to resolve names at run time in upstream"),
        ("server name service=http;", "service upstream \"name\" requires \"resolve\" parameter"),
        ("server name service=;", "service is empty"),
        ("server name:80 resolve service=http;", "service upstream \"name:80\" may not have port"),
        (
            "server 10.0.0.1 resolve service=a;",
            "service upstream \"10.0.0.1\" requires domain name",
        ),
    ];
    for (lines, expected) in table {
        let refusal = load(lines).unwrap_err();
        assert!(refusal.starts_with(expected), "{lines}: {refusal}");
    }
    assert_eq!(names(&group("server 10.0.0.1 resolve;")), "10.0.0.1:80", "nothing to look up");
}
