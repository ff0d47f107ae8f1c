//! The stores of a configuration, and the tasks that exchange with them.

use std::rc::Rc;
use std::sync::Arc;

use conf::Load;
use net::Task;
use upstream::ResolverPolicy;

use super::address::StoreAddress;
use super::exchange::StoreExchange;
use super::{StoreMember, StorePlan, status};
use crate::status::StatusBook;

/// The stores of a configuration.
#[derive(Default)]
pub struct StoreBook {
    plans: Vec<StorePlan>,
    names: ResolverPolicy,
}

impl StoreBook {
    /// Adds what is exchanged with a store. Lines with the same address share a connection.
    pub fn join(address: &StoreAddress, member: Arc<dyn StoreMember>, load: &mut Load<'_>) {
        load.own.of::<StatusBook>().show_more(status::show);
        let plans = &mut load.own.of::<Self>().plans;
        match plans.iter_mut().find(|plan| plan.address == *address) {
            Some(plan) => plan.members.push(member),
            None => plans.push(StorePlan { address: address.clone(), members: vec![member] }),
        }
    }

    /// The finished book. `names` looks up the names of stores.
    pub fn take(names: ResolverPolicy, load: &mut Load<'_>) -> Self {
        Self { names, ..std::mem::take(load.own.of()) }
    }
}

/// The exchanges with all stores. A connection outlives the configuration, if the next one has a
/// store with the same address.
#[derive(Default)]
pub struct StoreExchanges(Vec<(Rc<StoreExchange>, Task)>);

impl StoreExchanges {
    /// Continues with the stores of another configuration.
    pub fn adopt(&mut self, book: Option<&StoreBook>) {
        let plans = book.map_or(&[][..], |book| &book.plans);
        self.0.retain_mut(|(exchange, task)| {
            let is_wanted = plans.iter().any(|plan| plan.address == exchange.address);
            if !is_wanted {
                task.stop();
                let shown = exchange.address.shown();
                if plans.iter().all(|plan| plan.address.shown() != shown) {
                    exchange.status.forget();
                }
            }
            is_wanted
        });
        for plan in plans {
            let names = book.map(|book| book.names.clone()).unwrap_or_default();
            let talks = plan.members.iter().map(|member| member.talk()).collect();
            match self.0.iter().find(|(exchange, _)| exchange.address == plan.address) {
                Some((exchange, _)) => exchange.serve(talks),
                None => {
                    let exchange = StoreExchange::new(plan.address.clone(), names);
                    exchange.serve(talks);
                    let task = net::spawn(exchange.clone().run());
                    self.0.push((exchange, task));
                }
            }
        }
    }
}
