//! What is to be sent to the server, and when: the part that all sources share.
//!
//! ```text
//! source --lists or an error--> Core --next()--> Probe | Put | Release | wait until
//! server --answers------------> Core
//! ```
//!
//! A pure machine: it has no clock and no sockets. It keeps three promises. A source that is gone
//! or says nonsense changes nothing. An empty list is not sent before the source has said so for a
//! while. A server that has started again, or lost what it was told, is told again.

mod answer;
mod group;
mod metrics;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::backoff::Backoff;
use crate::server_entry::ServerList;
use crate::wanted::{GroupKey, WantedGroups};
pub use answer::AnsweringServer;
pub use answer::ServerAnswer;
use group::SteeredList;

/// How often the server is asked whether it is still the same.
pub const PROBE_MS: u64 = 1000;
/// The first and the longest wait after a server did not answer.
const SERVER_BACKOFF_MS: (u64, u64) = (100, 5000);

#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// How long a source must say that a group is empty; `None`: forever.
    pub empty_after_ms: Option<u64>,
    /// What makes the versions of this process different from those of others.
    pub run: String,
    /// For waits.
    pub seed: u64,
    /// The parts of the source, each of which reports by itself.
    pub parts: usize,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreStep {
    /// Ask the server which one it is.
    Probe,
    Put(PutList),
    /// Give a group back that the source no longer knows.
    Release(GroupKey),
    /// Nothing before this time.
    Wait(u64),
}

/// A list to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutList {
    pub group: GroupKey,
    pub version: String,
    pub json: std::sync::Arc<str>,
    pub allows_empty: bool,
}

/// The source as far as one part of it has reported.
#[derive(Debug, Default)]
struct ReportedPart {
    /// When it last told its lists.
    told_ms: Option<u64>,
    error: Option<String>,
}

#[derive(Debug)]
pub struct Core {
    settings: CoreSettings,
    parts: Vec<ReportedPart>,
    groups: BTreeMap<GroupKey, SteeredList>,
    versions: u64,
    /// Which server has answered last.
    server: Option<String>,
    is_server_gone: bool,
    probe_due_ms: u64,
    backoff: Backoff,
    counts: CoreCounts,
    /// Lines for the log.
    told: Vec<String>,
}

#[derive(Debug, Default)]
struct CoreCounts {
    made: u64,
    failed: u64,
    held: u64,
    source_errors: u64,
}

impl Core {
    pub fn new(settings: CoreSettings) -> Self {
        let (first, most) = SERVER_BACKOFF_MS;
        Self {
            parts: (0..settings.parts).map(|_| ReportedPart::default()).collect(),
            groups: BTreeMap::new(),
            versions: 0,
            server: None,
            is_server_gone: false,
            probe_due_ms: 0,
            backoff: Backoff::new(first, most, settings.seed),
            counts: CoreCounts::default(),
            told: Vec::new(),
            settings,
        }
    }

    /// A part of the source has told all its lists, or why it cannot.
    pub fn source_told(&mut self, part: usize, told: Result<WantedGroups, String>, now_ms: u64) {
        match told {
            Ok(wanted) => self.source_is_good(part, wanted, now_ms),
            Err(why) => self.source_failed(part, why),
        }
    }

    fn source_is_good(&mut self, part: usize, wanted: WantedGroups, now_ms: u64) {
        let state = &mut self.parts[part];
        state.told_ms = Some(now_ms);
        if state.error.take().is_some() {
            self.told.push("the source is back".to_owned());
        }
        self.add_new(&wanted, part);
        let mut wanted = wanted.into_iter().peekable();
        for (group, known) in &mut self.groups {
            let Some((_, list)) = wanted.next_if(|(name, _)| name == group) else {
                known.is_gone |= known.part == Some(part);
                if known.part == Some(part) && known.hold(now_ms) {
                    self.counts.held += 1;
                    self.told.push(format!("{group} has gone; its servers are kept for now"));
                }
                continue;
            };
            (known.part, known.is_gone) = (Some(part), false);
            if !list.is_known {
                known.empty_since_ms = None;
            } else if list.count == 0 {
                if known.hold(now_ms) {
                    self.counts.held += 1;
                    self.told
                        .push(format!("{group} has no servers; the last ones are kept for now"));
                }
            } else if known.take(list, now_ms) {
                self.versions += 1;
                known.version = self.versions;
            }
        }
    }

    /// Adds the groups that are named for the first time. Both maps have the same order, so they
    /// are walked side by side: looking up a thousand names would cost more than all the rest of a
    /// change.
    fn add_new(&mut self, wanted: &WantedGroups, part: usize) {
        let mut known = self.groups.keys().peekable();
        let is_new = |group: &&GroupKey| {
            while known.next_if(|name| name < group).is_some() {}
            known.next_if_eq(group).is_none()
        };
        let new: Vec<GroupKey> = wanted.keys().filter(is_new).cloned().collect();
        self.groups.extend(new.into_iter().map(|group| (group, SteeredList::new(Some(part)))));
    }

    fn source_failed(&mut self, part: usize, why: String) {
        self.counts.source_errors += 1;
        let state = &mut self.parts[part];
        if state.error.as_ref() != Some(&why) {
            self.told.push(format!("the source failed, the last lists are kept: {why}"));
        }
        state.error = Some(why);
        // What it said before it failed may be wrong.
        let may_be = |known: &&mut SteeredList| known.part.is_none_or(|of| of == part);
        for known in self.groups.values_mut().filter(may_be) {
            known.empty_since_ms = None;
        }
    }

    /// What is to be done now.
    pub fn next(&mut self, now_ms: u64) -> CoreStep {
        if now_ms >= self.probe_due_ms {
            return CoreStep::Probe;
        }
        let mut until = self.probe_due_ms;
        // Lists that have news come before those that are tried again, and of each kind the one
        // that has waited longest: neither lists that change all the time nor groups that the
        // server does not have must hold back others.
        let mut first: Option<((bool, u64), &GroupKey, &SteeredList)> = None;
        let is_good = |part: &ReportedPart| part.told_ms.is_some() && part.error.is_none();
        let is_whole = self.parts.iter().all(is_good);
        for (group, known) in &mut self.groups {
            if known.part.is_none() && is_whole && known.hold(now_ms) {
                self.counts.held += 1;
                self.told
                    .push(format!("{group} is not named any more; its servers are kept for now"));
            }
            let expired = self.settings.empty_after_ms.zip(known.empty_since_ms);
            match expired.map(|(after, since)| since.saturating_add(after)) {
                Some(end) if end <= now_ms => {
                    known.take(ServerList::empty(), now_ms);
                    self.versions += 1;
                    known.version = self.versions;
                    self.told.push(format!("{group} stays empty: its servers are removed"));
                }
                Some(end) => until = until.min(end),
                None => {}
            }
            match known.due_ms.filter(|_| !self.is_server_gone) {
                Some(due) if due <= now_ms => {
                    let order = (known.answer.is_some(), due);
                    if first.is_none_or(|(other, ..)| order < other) {
                        first = Some((order, group, known));
                    }
                }
                Some(due) => until = until.min(due),
                None => {}
            }
        }
        match first {
            Some((_, group, known)) => step(group, known, &self.settings.run),
            None => CoreStep::Wait(until),
        }
    }

    /// The server has told which one it is, or did not.
    pub fn server_told(&mut self, told: Result<AnsweringServer, String>, now_ms: u64) {
        match told {
            Ok(AnsweringServer { server, owned }) => {
                if self.is_server_gone {
                    self.told.push("the server is back".to_owned());
                }
                self.backoff.succeeded();
                self.is_server_gone = false;
                self.probe_due_ms = now_ms + PROBE_MS;
                for group in owned {
                    self.groups.entry(group).or_insert_with(SteeredList::left_over);
                }
                if self.server.as_ref() != Some(&server) {
                    self.server = Some(server);
                    self.groups.values_mut().for_each(|known| known.tell_again(now_ms));
                }
            }
            Err(why) => self.server_failed(&why, now_ms),
        }
    }

    fn server_failed(&mut self, why: &str, now_ms: u64) {
        if !self.is_server_gone {
            self.told.push(format!("the server does not answer: {why}"));
        }
        self.counts.failed += 1;
        self.is_server_gone = true;
        self.probe_due_ms = now_ms + self.backoff.failed();
    }

    /// The server has answered a [`PutList`] or a release.
    pub fn answered(&mut self, group: &GroupKey, answer: ServerAnswer, now_ms: u64) {
        if let ServerAnswer::Failed(why) = &answer {
            return self.server_failed(why, now_ms);
        }
        let Some(known) = self.groups.get_mut(group) else { return };
        let is_nowhere = known.is_gone && answer == ServerAnswer::Unknown;
        if known.is_done_with() || is_nowhere {
            self.groups.remove(group);
            return;
        }
        let line = match &answer {
            ServerAnswer::Made => None,
            ServerAnswer::Unknown => Some("the server has no such group".to_owned()),
            ServerAnswer::Owned(why) | ServerAnswer::Refused(why) => Some(why.clone()),
            ServerAnswer::Unmade(why) | ServerAnswer::Failed(why) => Some(why.clone()),
        };
        self.counts.made += u64::from(line.is_none());
        let is_new = known.take_answer(answer, now_ms);
        self.told.extend(line.filter(|_| is_new).map(|line| format!("{group}: {line}")));
    }

    /// Lines for the log since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// Whether every part has told its lists, and the server has answered all of them.
    pub fn is_settled(&self) -> bool {
        self.parts.iter().all(|part| part.told_ms.is_some())
            && !self.is_server_gone
            && !self.groups.values().any(SteeredList::is_untold)
    }

    /// Whether the server has all lists that there are.
    pub fn is_good(&self) -> bool {
        let has_list = |known: &&SteeredList| known.list.is_some();
        self.is_settled() && self.groups.values().filter(has_list).all(SteeredList::is_made)
    }
}

fn step(group: &GroupKey, known: &SteeredList, run: &str) -> CoreStep {
    match &known.list {
        Some(list) if !known.is_done_with() => CoreStep::Put(PutList {
            group: group.clone(),
            version: format!("{run}-{}", known.version),
            json: list.json.clone(),
            allows_empty: list.count == 0,
        }),
        _ => CoreStep::Release(group.clone()),
    }
}
