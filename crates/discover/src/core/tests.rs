use super::*;
use crate::server_entry::ServerEntry;
use crate::wanted::GroupedServers;

/// A core with a server that plays along, at a time that the test sets.
struct Played {
    core: Core,
    now_ms: u64,
    /// The groups as the server has them: `app=1,2`.
    sent: Vec<String>,
    server: Result<String, String>,
    owned: Vec<GroupKey>,
    answer: ServerAnswer,
}

fn wanted(groups: &[(&str, &[u8])]) -> WantedGroups {
    let mut grouped = GroupedServers::default();
    for (group, servers) in groups {
        let entries = servers.iter().map(|last| ServerEntry::new(&last.to_string()));
        grouped.add(&GroupKey::parse(group).unwrap(), entries);
    }
    grouped.into_wanted().unwrap()
}

impl Played {
    fn new() -> Self {
        let settings =
            CoreSettings { empty_after_ms: Some(30_000), run: "r".to_owned(), seed: 3, parts: 1 };
        Self::with(settings)
    }

    fn with(settings: CoreSettings) -> Self {
        let (server, answer) = (Ok("one".to_owned()), ServerAnswer::Made);
        Self {
            core: Core::new(settings),
            now_ms: 1000,
            sent: Vec::new(),
            server,
            owned: Vec::new(),
            answer,
        }
    }

    fn told(&mut self, groups: &[(&str, &[u8])]) -> String {
        self.core.source_told(0, Ok(wanted(groups)), self.now_ms);
        self.run()
    }

    fn fails(&mut self, why: &str) -> String {
        self.core.source_told(0, Err(why.to_owned()), self.now_ms);
        self.run()
    }

    /// Does what is due; what was sent.
    fn run(&mut self) -> String {
        for _ in 0..1000 {
            match self.core.next(self.now_ms) {
                CoreStep::Probe => {
                    let owned = std::mem::take(&mut self.owned);
                    let told = self.server.clone().map(|server| AnsweringServer { server, owned });
                    self.core.server_told(told, self.now_ms);
                }
                CoreStep::Put(put) => {
                    let text = put.json.replace("{\"server\":", "").replace(['"', '}'], "");
                    assert_eq!(put.allows_empty, text == "[]");
                    self.sent.push(format!("{}={text}", put.group));
                    self.core.answered(&put.group, self.answer.clone(), self.now_ms);
                }
                CoreStep::Release(group) => {
                    self.sent.push(format!("{group} is given back"));
                    self.core.answered(&group, self.answer.clone(), self.now_ms);
                }
                CoreStep::Wait(until) => {
                    assert!(until > self.now_ms, "it never waits for what is past");
                    return std::mem::take(&mut self.sent).join(" ");
                }
            }
        }
        panic!("there is no end");
    }

    /// Lets time pass; what was sent meanwhile.
    fn pass(&mut self, ms: u64) -> String {
        let (end, mut sent) = (self.now_ms + ms, Vec::new());
        while self.now_ms < end {
            let CoreStep::Wait(until) = self.core.next(self.now_ms) else { panic!("it is due") };
            self.now_ms = until.min(end);
            sent.push(self.run());
        }
        sent.retain(|text| !text.is_empty());
        sent.join(" ")
    }
}

#[test]
fn only_groups_that_change_are_sent() {
    let mut played = Played::new();
    assert_eq!(played.told(&[("a", &[1, 2]), ("b", &[3])]), "a=[1,2] b=[3]");
    assert_eq!(played.told(&[("a", &[2, 1]), ("b", &[3])]), "", "in another order");
    assert_eq!(played.told(&[("a", &[1, 2]), ("b", &[3, 4])]), "b=[3,4]");
    assert_eq!(played.pass(60_000), "");
    assert!(played.core.is_good());
}

#[test]
fn a_list_is_sent_although_others_change_faster_than_the_server_takes_them() {
    let mut core =
        Core::new(CoreSettings { empty_after_ms: None, run: "r".to_owned(), seed: 1, parts: 1 });
    core.server_told(Ok(AnsweringServer { server: "one".to_owned(), owned: Vec::new() }), 0);
    let mut sent = Vec::new();
    for round in 1..=6 {
        let last = [u8::from(round > 2)];
        let groups: &[(&str, &[u8])] = &[("a", &[round]), ("b", &[round]), ("z", &last)];
        core.source_told(0, Ok(wanted(groups)), round.into());
        let CoreStep::Put(put) = core.next(round.into()) else { panic!("a list") };
        core.answered(&put.group, ServerAnswer::Made, round.into());
        sent.push(put.group.to_string());
    }
    assert_eq!(sent, ["a", "b", "z", "a", "b", "a"]);
}

#[test]
fn every_list_has_a_version_of_its_own() {
    let mut core =
        Core::new(CoreSettings { empty_after_ms: None, run: "r".to_owned(), seed: 1, parts: 1 });
    core.server_told(Ok(AnsweringServer { server: "one".to_owned(), owned: Vec::new() }), 0);
    let mut version = |servers: &[u8], now_ms: u64| {
        core.source_told(0, Ok(wanted(&[("a", servers)])), now_ms);
        let CoreStep::Put(put) = core.next(now_ms) else { panic!("a list") };
        put.version
    };
    assert_eq!((version(&[1], 1), version(&[2], 2), version(&[1], 3)).2, "r-3");
}

#[test]
fn a_source_that_is_gone_changes_nothing_and_its_age_is_told() {
    let mut played = Played::new();
    assert_eq!(played.fails("no route"), "");
    assert!(played.core.metrics(played.now_ms).contains("weir_discovery_age_seconds inf"));
    played.told(&[("a", &[1])]);
    assert_eq!(played.fails("no route"), "");
    assert_eq!(played.pass(90_000), "");
    assert_eq!(played.fails("no route"), "");
    let metrics = played.core.metrics(played.now_ms);
    assert!(metrics.contains("weir_discovery_age_seconds 90\n"), "{metrics}");
    assert!(metrics.contains("weir_discovery_source_up 0\n"), "{metrics}");
    let lines = played.core.lines();
    let failures = lines.iter().filter(|line| line.contains("no route")).count();
    assert_eq!(failures, 2, "once at the start and once later: {lines:?}");
    assert_eq!(played.told(&[("a", &[1])]), "");
    assert!(played.core.metrics(played.now_ms).contains("weir_discovery_age_seconds 0\n"));
}

#[test]
fn an_empty_list_is_sent_only_after_a_while() {
    for empty in [&[("a", &[][..]), ("b", &[3])][..], &[("b", &[3])]] {
        let mut played = Played::new();
        played.told(&[("a", &[1]), ("b", &[3])]);
        assert_eq!(played.told(empty), "");
        assert_eq!(played.pass(29_000), "");
        assert_eq!(played.told(&[("a", &[2]), ("b", &[3])]), "a=[2]", "it was a mistake");
        assert_eq!(played.told(empty), "");
        assert_eq!(played.pass(29_999), "", "the time begins anew");
        let sent = if empty.len() == 2 { "a=[]" } else { "a=[] a is given back" };
        assert_eq!(played.pass(1), sent);
        assert_eq!(played.pass(120_000), "");
        assert_eq!(played.told(&[("a", &[2]), ("b", &[3])]), "a=[2]");
    }
}

#[test]
fn a_source_that_fails_after_an_empty_answer_is_not_believed() {
    let mut played = Played::new();
    played.told(&[("a", &[1])]);
    played.told(&[]);
    played.pass(10_000);
    played.fails("gone");
    assert_eq!(played.pass(60_000), "");
    assert_eq!(played.told(&[]), "");
    assert_eq!(played.pass(29_999), "");
    assert_eq!(played.pass(1), "a=[] a is given back");
}

#[test]
fn an_empty_list_at_the_start_is_held_as_well() {
    let mut played = Played::new();
    assert_eq!(played.told(&[("a", &[])]), "", "the server may have some in its state file");
    assert!(played.core.is_settled());
    assert_eq!(played.pass(29_999), "");
    assert_eq!(played.pass(1), "a=[]");
    let settings = CoreSettings { empty_after_ms: None, run: "r".to_owned(), seed: 3, parts: 1 };
    let mut never = Played::with(settings);
    never.told(&[("a", &[1])]);
    never.told(&[("a", &[])]);
    assert_eq!(never.pass(1_000_000), "");
}

#[test]
fn a_server_that_starts_again_is_told_everything_again() {
    let mut played = Played::new();
    played.told(&[("a", &[1]), ("b", &[2])]);
    played.server = Ok("another".to_owned());
    assert_eq!(played.pass(PROBE_MS), "a=[1] b=[2]");
    played.server = Err("connection refused".to_owned());
    assert_eq!(played.pass(PROBE_MS), "");
    assert_eq!(played.told(&[("a", &[1, 5]), ("b", &[2])]), "", "it waits for the server");
    assert!(played.core.metrics(played.now_ms).contains("weir_discovery_server_up 0\n"));
    assert_eq!(played.pass(60_000), "");
    played.server = Ok("another".to_owned());
    assert_eq!(played.pass(5000), "a=[1,5]", "it was not started again");
}

#[test]
fn a_request_without_an_answer_is_repeated() {
    let mut played = Played::new();
    played.answer = ServerAnswer::Failed("timed out".to_owned());
    played.core.source_told(0, Ok(wanted(&[("a", &[1])])), played.now_ms);
    assert_eq!(played.run(), "a=[1]");
    assert!(!played.core.is_settled());
    played.answer = ServerAnswer::Made;
    assert_eq!(played.pass(100), "a=[1]");
    assert!(played.core.is_good());
}

#[test]
fn refused_groups_hinder_no_others() {
    let owned = ServerAnswer::Owned("it belongs to another".to_owned());
    for (answer, again_ms) in [
        (owned, Some(30_000)),
        (ServerAnswer::Unknown, Some(30_000)),
        (ServerAnswer::Unmade("disk full".to_owned()), Some(2000)),
        (ServerAnswer::Refused("invalid".to_owned()), None),
    ] {
        let mut played = Played::new();
        played.answer = answer.clone();
        assert_eq!(played.told(&[("a", &[1]), ("b", &[2])]), "a=[1] b=[2]", "{answer:?}");
        assert!(played.core.is_settled() && !played.core.is_good());
        let metrics = played.core.metrics(played.now_ms);
        assert!(metrics.contains("weir_discovery_refused_groups 2\n"), "{metrics}");
        played.answer = ServerAnswer::Made;
        let again = again_ms.map_or("", |_| "a=[1] b=[2]");
        assert_eq!(played.pass(again_ms.unwrap_or(90_000)), again, "{answer:?}");
        assert_eq!(played.told(&[("a", &[7]), ("b", &[2])]), "a=[7]");
        played.server = Ok("a new configuration".to_owned());
        assert_eq!(played.pass(PROBE_MS), "a=[7] b=[2]");
    }
}

#[test]
fn parts_of_a_source_fail_by_themselves() {
    let settings =
        CoreSettings { empty_after_ms: Some(1000), run: "r".to_owned(), seed: 3, parts: 2 };
    let mut played = Played::with(settings);
    assert_eq!(played.told(&[("a", &[1])]), "a=[1]");
    assert!(!played.core.is_settled());
    played.core.source_told(1, Ok(wanted(&[("b", &[2])])), played.now_ms);
    assert_eq!(played.run(), "b=[2]");
    played.core.source_told(1, Err("gone".to_owned()), played.now_ms);
    assert_eq!(played.told(&[("a", &[3])]), "a=[3]");
    assert_eq!(played.pass(60_000), "", "the other part keeps its groups");
}

#[test]
fn a_group_that_an_earlier_process_left_is_removed_like_one_that_has_gone() {
    let settings =
        CoreSettings { empty_after_ms: Some(30_000), run: "r".to_owned(), seed: 3, parts: 2 };
    let mut played = Played::with(settings);
    played.owned = ["a", "old", "late"].map(|name| GroupKey::parse(name).unwrap()).to_vec();
    assert_eq!(played.told(&[("a", &[1])]), "a=[1]");
    assert_eq!(played.pass(90_000), "", "the other part has not told anything yet");
    played.core.source_told(1, Ok(wanted(&[("b", &[2])])), played.now_ms);
    assert_eq!(played.run(), "b=[2]");
    played.pass(10_000);
    assert_eq!(played.told(&[("a", &[1]), ("late", &[3])]), "late=[3]");
    assert_eq!(played.pass(20_000), "old=[] old is given back");
}

#[test]
fn a_group_that_neither_source_nor_server_knows_is_forgotten() {
    let mut played = Played::new();
    assert_eq!(played.told(&[("app", &[1]), ("old", &[2])]), "app=[1] old=[2]");
    assert_eq!(played.told(&[("app", &[1])]), "");
    played.server = Ok("reloaded".to_owned());
    played.answer = ServerAnswer::Unknown;
    played.now_ms += 1000;
    assert_eq!(played.run(), "app=[1] old=[2]");
    played.now_ms += 60_000;
    assert_eq!(played.run(), "app=[1]", "it is asked for no more");
}

#[test]
fn a_new_list_does_not_wait_for_groups_that_are_tried_again() {
    let mut played = Played::new();
    played.answer = ServerAnswer::Unknown;
    let groups: Vec<String> = (0..9).map(|number| format!("a{number}")).collect();
    let lists = |last: u8| {
        let mut lists: Vec<(&str, &[u8])> = groups.iter().map(|name| (&**name, &[1][..])).collect();
        lists.push(("z", if last == 1 { &[1] } else { &[2] }));
        wanted(&lists)
    };
    played.core.source_told(0, Ok(lists(1)), played.now_ms);
    played.run();
    // All are due again, and one of them has news.
    played.now_ms += 60_000;
    while played.core.next(played.now_ms) == CoreStep::Probe {
        let told = AnsweringServer { server: "one".to_owned(), owned: Vec::new() };
        played.core.server_told(Ok(told), played.now_ms);
    }
    played.core.source_told(0, Ok(lists(2)), played.now_ms);
    let CoreStep::Put(put) = played.core.next(played.now_ms) else { panic!("a list is due") };
    assert_eq!(put.group.to_string(), "z");
}
