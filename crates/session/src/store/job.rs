//! The stores of a configuration, and the job that exchanges with them.

use std::rc::Rc;
use std::sync::Arc;

use conf::Load;
use net::Task;
use upstream::ResolverPolicy;
use zones::{TwoProcesses, ZoneState, Zones};

use super::address::StoreAddress;
use super::exchange::StoreExchange;
use super::{StoreMember, StorePlan, status};
use crate::control_job::ControlJob;
use crate::status::StatusBook;

/// The stores of a subsystem, while its block is read.
#[derive(Default)]
pub struct StoreBook(Vec<StorePlan>);

/// The stores of a subsystem.
struct StorePlans(Vec<StorePlan>);

impl ZoneState for StorePlans {
    const DIRECTIVES: &'static [&'static str] = &["nodes"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl StoreBook {
    /// Adds what is exchanged with a store.
    pub fn join(address: &StoreAddress, member: Arc<dyn StoreMember>, load: &mut Load<'_>) {
        load.own.of::<StatusBook>().show_more(status::show);
        let names = ResolverPolicy::default();
        let plan = StorePlan { address: address.clone(), names, members: vec![member] };
        load.own.of::<Self>().0.push(plan);
    }

    /// Completes the book, after the whole block was read. `names` looks up the names of stores.
    pub fn finish(names: &ResolverPolicy, load: &mut Load<'_>) {
        let mut plans = std::mem::take(&mut load.own.of::<Self>().0);
        plans.iter_mut().for_each(|plan| plan.names = names.clone());
        if !plans.is_empty() {
            Zones::of(load).keep(b"", |_| Arc::new(StorePlans(plans)));
        }
    }
}

/// The exchanges with all stores. Lines with the same address share a connection, whatever their
/// subsystem; it outlives the configuration if the next one has such a line.
#[derive(Default)]
pub struct StoreJob(Vec<(Rc<StoreExchange>, Task)>);

impl<S> ControlJob<S> for StoreJob {
    fn adopt(&mut self, _: &S, zones: &Zones) {
        let subsystems = zones.all::<StorePlans>();
        let plans = by_address(subsystems.iter().flat_map(|plans| &plans.0));
        self.end_all_but(&plans);
        for plan in plans {
            let talks = plan.members.iter().map(|member| member.talk()).collect();
            match self.0.iter().find(|(exchange, _)| exchange.address == plan.address) {
                Some((exchange, _)) => exchange.serve(talks),
                None => {
                    let exchange = StoreExchange::new(plan.address, plan.names);
                    exchange.serve(talks);
                    let task = net::spawn(exchange.clone().run());
                    self.0.push((exchange, task));
                }
            }
        }
    }

    /// The last sessions are limited, too.
    fn leave(&mut self) {}
}

impl StoreJob {
    fn end_all_but(&mut self, plans: &[StorePlan]) {
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
    }
}

/// The same members, with one plan for each address.
fn by_address<'a>(all: impl Iterator<Item = &'a StorePlan>) -> Vec<StorePlan> {
    let mut plans: Vec<StorePlan> = Vec::new();
    for plan in all {
        match plans.iter_mut().find(|known| known.address == plan.address) {
            Some(known) => known.members.extend_from_slice(&plan.members),
            None => plans.push(plan.clone()),
        }
    }
    plans
}
