//! One group: what it is to have, and what the server knows of it.

use super::answer::ServerAnswer;
use crate::server_entry::ServerList;

/// When a group is tried again that the server does not know, or that belongs to another.
const REFUSED_AGAIN_MS: u64 = 30_000;
/// When a group is tried again whose change the server could not make.
const UNMADE_AGAIN_MS: u64 = 2000;

#[derive(Debug)]
pub(super) struct SteeredList {
    /// The part of the source that names it; `None`: an earlier process had it, and none has yet.
    pub(super) part: Option<usize>,
    /// `None`: nothing is believed yet.
    pub(super) list: Option<ServerList>,
    /// The number of the list.
    pub(super) version: u64,
    /// Since when the source says that it is empty, if that is not believed yet.
    pub(super) empty_since_ms: Option<u64>,
    /// Whether the source no longer names it.
    pub(super) is_gone: bool,
    /// When the next request is due; `None`: not before something changes.
    pub(super) due_ms: Option<u64>,
    /// What the server made of the list.
    pub(super) answer: Option<ServerAnswer>,
}

impl SteeredList {
    pub(super) fn new(part: Option<usize>) -> Self {
        Self {
            part,
            list: None,
            version: 0,
            empty_since_ms: None,
            is_gone: false,
            due_ms: None,
            answer: None,
        }
    }

    /// A group that an earlier process has claimed.
    pub(super) fn left_over() -> Self {
        Self { is_gone: true, ..Self::new(None) }
    }

    /// Takes a list. Returns whether it is another one.
    pub(super) fn take(&mut self, list: ServerList, now_ms: u64) -> bool {
        self.empty_since_ms = None;
        let is_new = self.list.as_ref() != Some(&list);
        if is_new {
            self.list = Some(list);
            self.tell_again(now_ms);
        }
        is_new
    }

    /// The source says that there are no servers. Returns whether that is new.
    pub(super) fn hold(&mut self, now_ms: u64) -> bool {
        let is_new = self.empty_since_ms.is_none() && !self.is_empty();
        if is_new {
            self.empty_since_ms = Some(now_ms);
        }
        is_new
    }

    fn is_empty(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.count == 0)
    }

    /// The server may not have the list any more. One that is due already keeps its turn.
    pub(super) fn tell_again(&mut self, now_ms: u64) {
        let due = self.due_ms.map_or(now_ms, |due| due.min(now_ms));
        self.due_ms = self.list.is_some().then_some(due);
        self.answer = None;
    }

    /// Whether the server has removed all servers of a group that the source no longer names.
    pub(super) fn is_done_with(&self) -> bool {
        self.is_gone && self.is_empty() && self.is_made()
    }

    pub(super) fn is_made(&self) -> bool {
        self.answer == Some(ServerAnswer::Made)
    }

    /// Whether the server has not answered the list yet.
    pub(super) fn is_untold(&self) -> bool {
        self.list.is_some() && self.answer.is_none()
    }

    /// Takes the answer to the list. Returns whether it is another one than before.
    pub(super) fn take_answer(&mut self, answer: ServerAnswer, now_ms: u64) -> bool {
        let is_new = self.answer.as_ref() != Some(&answer);
        self.due_ms = match &answer {
            ServerAnswer::Unknown | ServerAnswer::Owned(_) => Some(now_ms + REFUSED_AGAIN_MS),
            ServerAnswer::Unmade(_) | ServerAnswer::Failed(_) => Some(now_ms + UNMADE_AGAIN_MS),
            ServerAnswer::Made | ServerAnswer::Refused(_) => None,
        };
        self.answer = Some(answer);
        if self.is_done_with() {
            self.due_ms = Some(now_ms);
        }
        is_new
    }
}
