//! `keyval_zone ... sync=`: one table at several machines, through a store.
//!
//! ```text
//! request --> process that decides --> tables of all processes --> exchange --> store
//! store --> exchange --KeyvalMerge--> process that decides --> tables of all processes
//! ```
//!
//! The exchange only looks at the table and asks for changes. The process that decides makes them
//! like all others, so that they are in the file of `state=` and in every process.
//!
//! Deliberately absent: which change wins ([`super::replica`]).

mod exchange;
mod feed;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use observe::Level;
use wire::resp::{RespCommands, RespReply};

use super::merge::{KeyvalMerge, MergedKey};
use super::replica::KeyvalReplica;
use super::zone::KeyvalZone;
use crate::steering::{self, SteeringRequest};
use crate::store::{StoreAddress, StoreMember, StoreTalk, StoreTurn};
use exchange::TableExchange;

/// The time between two lines of the log about keys that are left out.
const LOG_MS: u64 = 60_000;

/// A table that is exchanged.
pub(super) struct SyncedTable {
    pub(super) zone: Arc<KeyvalZone>,
    pub(super) replica: Arc<Mutex<KeyvalReplica>>,
    /// The store, as the log has it.
    pub(super) store: Box<str>,
}

impl SyncedTable {
    pub(super) fn new(
        zone: &Arc<KeyvalZone>,
        replica: &Arc<Mutex<KeyvalReplica>>,
        store: &StoreAddress,
    ) -> Self {
        let store = format!("store {}", store.shown()).into();
        Self { zone: zone.clone(), replica: replica.clone(), store }
    }
}

impl StoreMember for SyncedTable {
    fn talk(&self) -> Box<dyn StoreTalk> {
        exchange::lock(&self.replica).begin(self.zone.table());
        let (zone, replica) = (self.zone.clone(), self.replica.clone());
        let exchange = TableExchange::new(zone, replica, net::clock::now_ms());
        let (store, log_ms, left_out) = (self.store.clone(), 0, (0, 0));
        Box::new(TableTalk { exchange, store, log_ms, left_out })
    }
}

struct TableTalk {
    exchange: TableExchange,
    store: Box<str>,
    log_ms: u64,
    /// Keys without room, and invalid ones, that the log does not have yet.
    left_out: (u64, u64),
}

impl StoreTalk for TableTalk {
    fn ask(&mut self, turn: &StoreTurn<'_>, commands: &mut RespCommands) {
        self.exchange.take_answer(turn.now_ms);
        self.exchange.ask(turn, commands);
    }

    fn take(&mut self, turn: &StoreTurn<'_>, replies: &[RespReply]) -> Result<(), &'static str> {
        self.exchange.take(turn, replies)?;
        self.pass_on();
        self.count_left_out(turn);
        Ok(())
    }

    fn lost(&mut self, _: u32) {
        self.exchange.lost();
    }

    fn told_lost(&self, _: u32) -> String {
        "changes of tables stay at this machine".to_owned()
    }

    fn waits(&mut self) {
        self.exchange.take_answer(net::clock::now_ms());
        self.exchange.look_without_store(net::clock::monotonic_ms());
    }

    fn found(&mut self) {}
}

impl TableTalk {
    /// Asks the process that decides.
    fn pass_on(&mut self) {
        let Some(keys) = self.exchange.take_merge() else { return };
        let request = merge_request(&self.exchange.zone, keys, &self.store);
        // A reload may continue the exchange with another talk.
        let replica = self.exchange.replica.clone();
        net::spawn_if_running(async move {
            let reply = steering::ask(request).await;
            exchange::lock(&replica).answer(reply.is_some_and(|reply| reply.status == 204));
        });
    }

    fn count_left_out(&mut self, turn: &StoreTurn<'_>) {
        let invalid = std::mem::take(&mut self.exchange.invalid);
        let refused = exchange::lock(&self.exchange.replica).take_refused();
        turn.status.count_left_out(refused, invalid);
        self.left_out = (self.left_out.0 + refused, self.left_out.1 + invalid);
        if self.left_out == (0, 0) || turn.now_ms < self.log_ms {
            return;
        }
        self.log_ms = turn.now_ms + LOG_MS;
        let (refused, invalid) = std::mem::take(&mut self.left_out);
        let (zone, store) = (String::from_utf8_lossy(&self.exchange.zone.name), &self.store);
        let what = format!("{refused} keys have no room, {invalid} are invalid");
        let text = format_args!("keyval zone \"{zone}\" lacks keys of {store}: {what}");
        observe::log(Level::Error, text);
    }
}

fn merge_request(zone: &KeyvalZone, keys: Vec<MergedKey>, store: &str) -> SteeringRequest {
    let (subsystem, zone) = (zone.subsystem, zone.name.clone());
    let body = KeyvalMerge { subsystem, zone, keys }.to_bytes().into();
    let (who, store) = (store.as_bytes().into(), store.as_bytes().into());
    SteeringRequest { body, who, store, ..SteeringRequest::default() }
}
