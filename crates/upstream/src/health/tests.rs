use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::*;
use crate::resolver::ResolvedPeer;
use crate::testing::{ask, group, lease, load_named, short};
use crate::{Ask, ServerChoice};

const TERMS: CheckTerms =
    CheckTerms { interval_ms: 5000, jitter_ms: 0, fails: 1, passes: 1, begin: Begin::Healthy };

fn check(group: &Arc<Group>, terms: CheckTerms) -> HealthCheck<&'static str> {
    HealthCheck { group: group.clone(), terms, probe: "" }
}

fn watch(group: &Arc<Group>, terms: CheckTerms) -> Watch<&'static str> {
    let mut watch = Watch::default();
    watch.replace(vec![check(group, terms)], 0);
    watch
}

/// The last numbers of the addresses that are checked now, with the changes. `passes` gives the
/// results.
fn round(
    watch: &mut Watch<&'static str>,
    now_ms: u64,
    passes: impl Fn(&str) -> bool,
) -> Vec<(String, Option<Change>)> {
    let mut answers = BTreeMap::new();
    for due in watch.due(now_ms) {
        let name = String::from_utf8_lossy(due.server.name()).into_owned();
        let name = name.trim_start_matches("10.0.0.").trim_end_matches(":80").to_owned();
        let change = watch.answer(&due.key, passes(&name), now_ms);
        answers.insert(name, change);
    }
    answers.into_iter().collect()
}

fn names(answers: Vec<(String, Option<Change>)>) -> Vec<String> {
    answers.into_iter().map(|(name, _)| name).collect()
}

/// The servers that can be chosen.
fn usable(group: &Arc<Group>) -> Vec<String> {
    let mut names: Vec<String> = (0..8)
        .filter_map(|_| match ask(group, Ask { now_ms: 1_000_000, ..Ask::default() }) {
            ServerChoice::Server(lease) => Some(short(&lease)),
            ServerChoice::Busy | ServerChoice::None => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn failures_and_passes_in_a_row_make_a_change_which_is_returned_once() {
    use Change::{Healthy, Unhealthy};
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    let mut watch = watch(&group, CheckTerms { fails: 2, passes: 3, ..TERMS });
    let story = [
        (false, None, 2),
        (true, None, 2),
        (false, None, 2),
        (false, Some(Unhealthy), 1),
        (false, None, 1),
        (true, None, 1),
        (true, None, 1),
        (false, None, 1),
        (true, None, 1),
        (true, None, 1),
        (true, Some(Healthy), 2),
        (true, None, 2),
    ];
    for (step, (passed, change, left)) in story.into_iter().enumerate() {
        let now_ms = 5000 * step as u64;
        let answers = round(&mut watch, now_ms, |name| name != "1" || passed);
        assert_eq!(answers, [("1".into(), change), ("2".into(), None)], "step {step}");
        assert_eq!(usable(&group).len(), left, "step {step}");
    }
}

#[test]
fn the_next_check_is_due_an_interval_after_the_result() {
    let group = group("server 10.0.0.1;");
    let mut watch = watch(&group, TERMS);
    let due = watch.due(0);
    assert_eq!(due.len(), 1);
    // It is checked once at a time.
    assert!(watch.due(20_000).is_empty());
    watch.answer(&due[0].key, true, 21_000);
    assert_eq!(watch.next_ms(), Some(20_000 + LOOK_MS));
    assert!(watch.due(25_999).is_empty());
    assert_eq!(watch.due(26_000).len(), 1);
}

#[test]
fn jitter_delays_each_check_randomly_up_to_its_maximum() {
    let group = group("server 10.0.0.1;");
    let mut watch = watch(&group, CheckTerms { jitter_ms: 1000, ..TERMS });
    let (mut now_ms, mut delays) = (0, Vec::new());
    for _ in 0..50 {
        let due = loop {
            match watch.due(now_ms).pop() {
                Some(due) => break due,
                None => now_ms += 1,
            }
        };
        delays.push(now_ms);
        watch.answer(&due.key, true, now_ms);
        now_ms = 0;
        let Some(at_ms) = watch.next_ms() else { panic!("a next time") };
        assert!(at_ms <= *delays.last().unwrap() + 6000);
        now_ms += delays.last().unwrap() + 5000;
    }
    let pauses: Vec<u64> = delays.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(pauses.iter().all(|pause| (5000..=6000).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
}

#[test]
fn a_server_that_must_pass_first_is_not_used_before() {
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    let begin = Begin::Checking { persistent: false };
    let mut watch = watch(&group, CheckTerms { begin, passes: 3, fails: 2, ..TERMS });
    assert!(usable(&group).is_empty());
    let answers = round(&mut watch, 0, |name| name == "2");
    assert_eq!(answers, [("1".into(), None), ("2".into(), Some(Change::Healthy))]);
    assert_eq!(usable(&group), ["2"]);
    let answers = round(&mut watch, 5000, |name| name == "2");
    assert_eq!(answers[0], ("1".into(), Some(Change::Unhealthy)));
    // Once unhealthy, one pass is not enough.
    assert_eq!(round(&mut watch, 10_000, |_| true)[0], ("1".into(), None));
}

#[test]
fn a_server_that_begins_unhealthy_needs_all_its_passes() {
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    let mut watch = watch(&group, CheckTerms { begin: Begin::Unhealthy, passes: 2, ..TERMS });
    round(&mut watch, 0, |_| true);
    assert!(usable(&group).is_empty());
    assert_eq!(round(&mut watch, 5000, |_| true)[1], ("2".into(), Some(Change::Healthy)));
    assert_eq!(usable(&group), ["1", "2"]);
}

#[test]
fn one_of_several_checks_is_enough_to_fail() {
    let group = group("server 10.0.0.1; server 10.0.0.2;");
    let mut watch = Watch::default();
    watch.replace(vec![check(&group, TERMS), check(&group, TERMS)], 0);
    let mut due = watch.due(0);
    assert_eq!(due.len(), 4);
    due.retain(|due| due.server.name() == b"10.0.0.1:80");
    assert_eq!(watch.answer(&due[0].key, false, 0), Some(Change::Unhealthy));
    assert_eq!(watch.answer(&due[1].key, true, 0), None);
    assert_eq!(usable(&group), ["2"]);
    assert_eq!(round(&mut watch, 5000, |_| true).len(), 1);
    assert_eq!(usable(&group), ["1", "2"]);
}

#[test]
fn a_reload_continues_health_and_schedule_and_applies_what_changed() {
    let (name, lines) = ("reload", "server 10.0.0.1; server 10.0.0.2;");
    let (first, _) = load_named(name, lines).unwrap();
    let mut watch = watch(&first, TERMS);
    round(&mut watch, 0, |name| name == "2");
    let (second, _) = load_named(name, lines).unwrap();
    drop(first);
    watch.replace(vec![check(&second, CheckTerms { passes: 2, ..TERMS })], 1000);
    assert_eq!(usable(&second), ["2"]);
    assert!(watch.due(4999).is_empty());
    assert_eq!(round(&mut watch, 5000, |_| true)[0], ("1".into(), None));
    // A shorter interval holds at once.
    watch.replace(vec![check(&second, CheckTerms { interval_ms: 100, ..TERMS })], 6000);
    assert!(watch.due(6099).is_empty());
    assert_eq!(round(&mut watch, 6100, |_| true)[0], ("1".into(), Some(Change::Healthy)));
    assert_eq!(usable(&second), ["1", "2"]);
}

#[test]
fn after_a_reload_servers_must_pass_again_unless_that_is_persistent() {
    for persistent in [false, true] {
        let name = format!("again{persistent}");
        let (group, _) = load_named(&name, "server 10.0.0.1; server 10.0.0.2;").unwrap();
        let terms = CheckTerms { begin: Begin::Checking { persistent }, ..TERMS };
        let mut watch = watch(&group, terms);
        round(&mut watch, 0, |name| name == "2");
        watch.replace(vec![check(&group, terms)], 1000);
        assert_eq!(usable(&group), if persistent { &["2"][..] } else { &[] });
        assert_eq!(watch.due(1000).len(), if persistent { 0 } else { 2 });
    }
}

#[test]
fn a_server_that_is_no_longer_checked_is_healthy() {
    let (group, _) = load_named("nomore", "server 10.0.0.1; server 10.0.0.2;").unwrap();
    let mut watch = watch(&group, TERMS);
    let due = watch.due(0);
    due.iter().for_each(|due| _ = watch.answer(&due.key, false, 0));
    assert!(usable(&group).is_empty());
    watch.replace(Vec::new(), 0);
    assert_eq!(usable(&group), ["1", "2"]);
    assert!(watch.due(100_000).is_empty() && watch.next_ms().is_none());
    assert_eq!(watch.answer(&due[0].key, false, 0), None);
    assert_eq!(usable(&group), ["1", "2"]);
}

#[test]
fn servers_come_and_go_with_their_names() {
    let lines = "resolver 127.0.0.1; server h resolve; server 10.0.0.9;";
    let group = group(lines);
    let peer = |number: u8| {
        let address = SocketAddr::from(([10, 0, 0, number], 80));
        ResolvedPeer { backup: false, address, name: None, weight: 1 }
    };
    group.found(0, &[peer(1)]);
    let begin = Begin::Checking { persistent: false };
    let mut watch = watch(&group, CheckTerms { begin, ..TERMS });
    assert_eq!(names(round(&mut watch, 0, |_| true)), ["1", "9"]);
    assert_eq!(usable(&group), ["1", "9"]);
    group.found(0, &[peer(1), peer(2)]);
    // It has not been checked yet.
    assert_eq!(usable(&group), ["1", "9"]);
    assert_eq!(watch.next_ms(), Some(LOOK_MS));
    assert_eq!(names(round(&mut watch, LOOK_MS, |_| true)), ["2"]);
    assert_eq!(usable(&group), ["1", "2", "9"]);
    group.found(0, &[peer(2)]);
    assert_eq!(names(round(&mut watch, 7000, |_| true)), ["2", "9"]);
}

#[test]
fn twins_are_checked_once_and_servers_that_are_down_never() {
    let group = group("server 10.0.0.1; server 10.0.0.1; server 10.0.0.2; server 10.0.0.3 down;");
    let mut watch = watch(&group, TERMS);
    assert_eq!(names(round(&mut watch, 0, |name| name == "2")), ["1", "2"]);
    assert_eq!(usable(&group), ["2"]);
}

#[test]
fn the_number_of_checks_at_one_time_is_bounded() {
    let servers: Vec<String> =
        (0..300).map(|n| format!("server 10.0.{}.{};", n / 100, n % 100 + 1)).collect();
    let group = group(&servers.join(" "));
    let mut watch = watch(&group, TERMS);
    let due = watch.due(0);
    assert_eq!(due.len(), UNDER_WAY_MAX);
    assert!(watch.due(0).is_empty());
    assert_eq!(watch.next_ms(), Some(LOOK_MS));
    watch.answer(&due[0].key, true, 0);
    assert_eq!((watch.next_ms(), watch.due(0).len()), (Some(0), 1));
}

#[test]
fn a_server_that_becomes_healthy_starts_slowly() {
    let group = group("server 10.0.0.1 slow_start=10s; server 10.0.0.2;");
    let mut watch = watch(&group, TERMS);
    round(&mut watch, 0, |name| name == "2");
    round(&mut watch, 5000, |_| true);
    let counts = (0..100).filter(|_| {
        let ask = Ask { now_ms: 6000, ..Ask::default() };
        short(&lease(group.choose(&mut crate::Attempt::default(), &ask))) == "1"
    });
    let count = counts.count();
    assert!((5..=15).contains(&count), "{count}");
}
