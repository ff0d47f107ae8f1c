//! A change that was accepted: what it is, the line of the log, and the answer.

use std::fmt;

use conf::Subsystem;
use http::CachePurgeChange;
use net::MailboxSender;
use session::keyval::{KeyvalChange, KeyvalOperation};
use session::steering::{SteeringReply, SteeringRequest};
use upstream::api::RosterDifference;
use upstream::roster::{GroupChange, ServerOperation};

use super::errors;
use super::worker_change::WorkerChange;
use crate::log::notice;

/// The field of replies to changes that the next start, and a new text of the block, undo.
pub(super) const UNKEPT: &str = "Weir-Persistence: none";

/// A change that was accepted, and the answer to its call.
pub struct AcceptedChange {
    /// The change, and the claim that comes with it.
    pub whats: Vec<AcceptedWhat>,
    pub(super) request: SteeringRequest,
    pub(super) reply: SteeringReply,
    pub(super) to: MailboxSender<SteeringReply>,
}

/// What changes.
#[derive(Clone, Debug)]
pub enum AcceptedWhat {
    /// Something that worker processes have as well.
    Workers(WorkerChange),
    /// The group has another owner, or none.
    Owner(OwnerChange),
    /// The servers of the group are those of another list.
    Version(VersionChange),
}

/// A group is claimed, or given back.
#[derive(Clone, Debug)]
pub struct OwnerChange {
    pub subsystem: Subsystem,
    pub group: Box<[u8]>,
    pub owner: Option<Box<[u8]>>,
}

/// The servers of a group are those of a list.
#[derive(Clone, Debug)]
pub struct VersionChange {
    pub subsystem: Subsystem,
    pub group: Box<[u8]>,
    /// `None`: the list has no version.
    pub version: Option<Box<[u8]>>,
    pub difference: RosterDifference,
}

impl fmt::Display for VersionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RosterDifference { added, changed, removed, .. } = self.difference;
        write!(f, "{}: the servers are those of a list", told_group(self.subsystem, &self.group))?;
        if let Some(version) = &self.version {
            write!(f, " of version \"{}\"", String::from_utf8_lossy(version))?;
        }
        write!(f, ": {added} added, {changed} changed, {removed} removed")
    }
}

impl fmt::Display for OwnerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = String::from_utf8_lossy(&self.group);
        match &self.owner {
            Some(owner) => {
                write!(f, "upstream \"{group}\" belongs to {}", String::from_utf8_lossy(owner))
            }
            None => write!(f, "upstream \"{group}\" has no owner"),
        }
    }
}

impl AcceptedChange {
    /// Writes the line of the log.
    pub fn log(&self) {
        let who = String::from_utf8_lossy(&self.request.who);
        for what in &self.whats {
            match what {
                // The change of the version tells it.
                AcceptedWhat::Workers(WorkerChange::Servers(GroupChange {
                    operation: ServerOperation::Replace(_),
                    ..
                })) => {}
                AcceptedWhat::Workers(WorkerChange::Servers(change)) => {
                    notice!("{}, by {who}", told(change));
                }
                AcceptedWhat::Workers(WorkerChange::Keyval(change)) => {
                    notice!("{}, by {who}", told_of_table(change));
                }
                AcceptedWhat::Workers(WorkerChange::Purge(change)) => {
                    notice!("{}, by {who}", told_of_purge(change));
                }
                AcceptedWhat::Owner(change) => notice!("{change}, by {who}"),
                AcceptedWhat::Version(change) => notice!("{change}, by {who}"),
            }
        }
    }

    /// Whether only worker processes keep the change, which the next ones find on disk.
    pub fn is_kept_by_workers(&self) -> bool {
        let is_purge =
            |what: &AcceptedWhat| matches!(what, AcceptedWhat::Workers(WorkerChange::Purge(_)));
        self.whats.iter().any(is_purge)
    }

    /// No process has made the change.
    pub fn not_made(&mut self) {
        self.reply = errors::not_made(&self.request);
    }

    /// The change does not outlive the process that has made it.
    pub fn not_kept(&mut self, why: &str) {
        self.reply = errors::not_kept(why, &self.request);
    }

    /// Gives the answer. `pending`: how many processes have not made the change yet.
    pub fn answer(mut self, pending: usize) {
        if pending > 0 {
            self.reply.fields.push(format!("Weir-Pending: {pending}"));
        }
        self.to.send(self.reply);
    }
}

/// A change as the log tells it.
fn told(change: &GroupChange) -> String {
    let what = match &change.operation {
        ServerOperation::Add { id, spec } => format!("server {id} was added: {spec}"),
        ServerOperation::Set { id, spec } => format!("server {id} is now: {spec}"),
        ServerOperation::Remove { id } => format!("server {id} was removed"),
        ServerOperation::Replace(_) => "all servers were replaced".to_owned(),
    };
    format!("{}: {what}", told_group(change.subsystem, &change.group))
}

fn told_group(subsystem: Subsystem, group: &[u8]) -> String {
    let block = match subsystem {
        Subsystem::Stream => "stream upstream",
        Subsystem::Main | Subsystem::Http => "upstream",
    };
    format!("{block} \"{}\"", String::from_utf8_lossy(group))
}

/// A change of a table as the log tells it: without values, which may be secrets.
fn told_of_table(change: &KeyvalChange) -> String {
    let zone = String::from_utf8_lossy(&change.zone);
    let block = match change.subsystem {
        Subsystem::Stream => "stream keyval zone",
        Subsystem::Main | Subsystem::Http => "keyval zone",
    };
    let what = match &change.operation {
        KeyvalOperation::Put(pairs) => match &pairs[..] {
            [pair] => format!("key \"{}\" was set", String::from_utf8_lossy(&pair.key)),
            pairs => format!("{} keys were set", pairs.len()),
        },
        KeyvalOperation::Remove(key) => {
            format!("key \"{}\" was removed", String::from_utf8_lossy(key))
        }
        KeyvalOperation::Clear => "all keys were removed".to_owned(),
        KeyvalOperation::Replace(_) => "all keys were replaced".to_owned(),
        KeyvalOperation::Merge { put, removed } => {
            format!("{} keys were set and {} removed", put.len(), removed.len())
        }
    };
    format!("{block} \"{zone}\": {what}")
}

/// A purge as the log tells it.
fn told_of_purge(change: &CachePurgeChange) -> String {
    let (cache, count) = (String::from_utf8_lossy(&change.cache), change.rules.len());
    let what = if count == 1 { "purge" } else { "purges" };
    format!("cache \"{cache}\": {count} {what}")
}
