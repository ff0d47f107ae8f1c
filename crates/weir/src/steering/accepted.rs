//! A change that was accepted: what it is, the line of the log, and the answer.

use std::fmt;

use conf::Subsystem;
use net::MailboxSender;
use session::steering::{SteeringReply, SteeringRequest};
use upstream::roster::{GroupChange, ServerOperation};

use crate::log::notice;

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
    Servers(GroupChange),
    /// The group has another owner, or none.
    Owner(OwnerChange),
}

/// A group is claimed, or given back.
#[derive(Clone, Debug)]
pub struct OwnerChange {
    pub subsystem: Subsystem,
    pub group: Box<[u8]>,
    pub owner: Option<Box<[u8]>>,
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
                AcceptedWhat::Servers(change) => notice!("{}, by {who}", told(change)),
                AcceptedWhat::Owner(change) => notice!("{change}, by {who}"),
            }
        }
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
    let group = String::from_utf8_lossy(&change.group);
    let block = match change.subsystem {
        Subsystem::Stream => "stream upstream",
        Subsystem::Main | Subsystem::Http => "upstream",
    };
    let what = match &change.operation {
        ServerOperation::Add { id, spec } => format!("server {id} was added: {spec}"),
        ServerOperation::Set { id, spec } => format!("server {id} is now: {spec}"),
        ServerOperation::Remove { id } => format!("server {id} was removed"),
        ServerOperation::Replace(_) => "all servers were replaced".to_owned(),
    };
    format!("{block} \"{group}\": {what}")
}
