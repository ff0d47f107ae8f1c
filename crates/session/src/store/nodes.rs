//! `nodes`: the store that counts the nodes, for limits of `N/nodes`.
//!
//! What counts is the heartbeat of the exchange, which this member has nothing to add to.

use std::sync::Arc;

use conf::{Directive, Load, Result};
use upstream::{LiveNodes, NodeCount};
use wire::resp::{RespCommands, RespReply};

use super::{StoreAddress, StoreBook, StoreMember, StoreTalk, StoreTurn};

struct CountedNodes(Arc<NodeCount>);

/// Reads `nodes ADDRESS`.
pub fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let word = from.arg(0);
    let address = StoreAddress::read(&word.text, word, from, load)?;
    let count = NodeCount::declare(from, load)?;
    count.set(LiveNodes::alone(address.nodes));
    StoreBook::join(&address, Arc::new(CountedNodes(count)), load);
    Ok(())
}

impl StoreMember for CountedNodes {
    fn talk(&self) -> Box<dyn StoreTalk> {
        Box::new(Self(self.0.clone()))
    }
}

impl StoreTalk for CountedNodes {
    fn ask(&mut self, _: &StoreTurn<'_>, _: &mut RespCommands) {}

    fn take(&mut self, _: &StoreTurn<'_>, _: &[RespReply]) -> Result<(), &'static str> {
        Ok(())
    }

    fn counted(&mut self, nodes: LiveNodes) {
        self.0.set(nodes);
    }

    /// The last known number holds.
    fn lost(&mut self, _: u32) {}

    fn told_lost(&self, _: u32) -> String {
        "the parts of limits stay as they are".to_owned()
    }

    fn found(&mut self) {}
}
