//! Names of servers that are looked up while the server runs: `resolve`, and those that were not
//! found at start.
//!
//! The control thread looks them up, once for all workers, from the time it adopts a configuration
//! until it adopts the next. The addresses found reach the workers through the groups, which they
//! share. The limits of groups take effect at that time, too.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Weak};

use net::{Task, Timer};
use observe::Level;

use crate::address::Endpoint;
use crate::group::Group;
use crate::lines::LineLookup;
use crate::resolver::{self, ResolvedPeer};

/// How long after a failed lookup the name is looked up again.
const RETRY_MS: u64 = 5000;

/// Lookups under way; they end when this is dropped.
#[derive(Default)]
pub struct Discovery {
    groups: Vec<GroupLookups>,
}

/// The lookups of one group, by the ids of its lines.
struct GroupLookups {
    group: Weak<Group>,
    tasks: HashMap<u64, Task>,
}

impl Discovery {
    /// Begins to look up the names of these groups. Call it once for each configuration.
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a Arc<Group>>) -> Self {
        let groups = groups.into_iter().map(|group| {
            group.apply_limits();
            let mut lookups = GroupLookups { group: Arc::downgrade(group), tasks: HashMap::new() };
            lookups.renew(group);
            lookups
        });
        Self { groups: groups.collect() }
    }

    /// Begins and ends lookups after the servers of a group were changed.
    pub fn changed(&mut self, group: &Arc<Group>) {
        let is_of = |lookups: &&mut GroupLookups| lookups.group.as_ptr() == Arc::as_ptr(group);
        if let Some(lookups) = self.groups.iter_mut().find(is_of) {
            lookups.renew(group);
        }
    }
}

impl GroupLookups {
    fn renew(&mut self, group: &Arc<Group>) {
        let wanted = group.lookups();
        let gone = |id: &u64, _: &mut Task| !wanted.iter().any(|(wanted, _)| wanted == id);
        self.tasks.extract_if(gone).for_each(|(_, task)| task.stop());
        for (line, lookup) in wanted {
            if !self.tasks.contains_key(&line)
                && let Some(task) = begin(group, line, lookup)
            {
                self.tasks.insert(line, task);
            }
        }
    }
}

impl Drop for GroupLookups {
    fn drop(&mut self) {
        self.tasks.values().for_each(Task::stop);
    }
}

fn begin(group: &Arc<Group>, line: u64, lookup: LineLookup) -> Option<Task> {
    let group = Arc::downgrade(group);
    match lookup {
        LineLookup::None => None,
        LineLookup::Watch(watched, servers) => {
            let resolver = servers.names.resolver(servers.timeout_ms);
            Some(net::spawn(resolver::watch(resolver, watched, 0, move |outcome| {
                if let (Ok(found), Some(group)) = (outcome, group.upgrade()) {
                    group.found(line, &found);
                }
            })))
        }
        LineLookup::Until(place) => Some(net::spawn(find(group, line, place))),
    }
}

/// Looks the name up with the system's resolver until that succeeds.
async fn find(group: Weak<Group>, line: u64, place: Endpoint) {
    loop {
        let timer = Timer::new();
        timer.set(RETRY_MS);
        poll_fn(|cx| timer.poll(cx)).await;
        let asked = place.clone();
        let found = net::offload(move || asked.addresses()).await;
        let Some(group) = group.upgrade() else { return };
        if found.is_empty() {
            continue;
        }
        let name = String::from_utf8_lossy(group.name()).into_owned();
        observe::log(Level::Notice, format_args!("{place} in upstream \"{name}\" is now resolved"));
        let peer = |address| match address {
            net::Address::Ip(address) => {
                Some(ResolvedPeer { backup: false, address, name: None, weight: 1 })
            }
            net::Address::Udp(_) | net::Address::Unix(_) => None,
        };
        group.found(line, &found.into_iter().filter_map(peer).collect::<Vec<_>>());
        return;
    }
}

#[cfg(test)]
mod tests;
