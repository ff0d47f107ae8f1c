//! A second implementation of the limit, too simple to be wrong: lists, searched from the front.

/// The expected result of a request that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectedEnd {
    Waits { servers: Vec<usize>, tried: Vec<usize>, group: u64 },
    Granted(usize),
    Stranded,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ModelServer {
    pub(super) max: u32,
    pub(super) used: u32,
    /// What was allowed at some time since so many were in use.
    pub(super) ceiling: u32,
}

/// Servers, and requests in the order of joining.
#[derive(Default)]
pub(super) struct Model {
    pub(super) servers: Vec<ModelServer>,
    pub(super) joined: Vec<(u64, ExpectedEnd)>,
}

impl ExpectedEnd {
    fn waits_for(&self, server: usize) -> bool {
        matches!(self, Self::Waits { servers, .. } if servers.contains(&server))
    }
}

impl Model {
    pub(super) fn add_server(&mut self, max: u32) {
        self.servers.push(ModelServer { max, used: 0, ceiling: max });
    }

    pub(super) fn has_free(&self, server: usize) -> bool {
        self.servers[server].used < self.servers[server].max
    }

    pub(super) fn waiting_for(&self, server: usize) -> usize {
        self.joined.iter().filter(|(_, fate)| fate.waits_for(server)).count()
    }

    pub(super) fn waiting(&self) -> usize {
        self.joined.iter().filter(|(_, fate)| matches!(fate, ExpectedEnd::Waits { .. })).count()
    }

    pub(super) fn waits(&self, id: u64) -> bool {
        self.joined
            .iter()
            .any(|(other, fate)| *other == id && matches!(fate, ExpectedEnd::Waits { .. }))
    }

    /// A slot without waiting.
    pub(super) fn take(&mut self, server: usize) -> bool {
        let may = self.has_free(server) && self.waiting_for(server) == 0;
        self.servers[server].used += u32::from(may);
        may
    }

    pub(super) fn join(&mut self, id: u64, servers: &[usize], tried: &[usize], group: u64) {
        let (all, tried) = (servers.to_vec(), tried.to_vec());
        self.joined.push((id, ExpectedEnd::Waits { servers: all, tried, group }));
        for &server in servers {
            self.settle(server);
        }
    }

    /// Whether the slot went to a waiting request.
    pub(super) fn free(&mut self, server: usize) -> bool {
        self.servers[server].used -= 1;
        let ModelServer { max, used, ceiling } = self.servers[server];
        self.servers[server].ceiling = ceiling.min(used.max(max));
        self.settle(server) > 0
    }

    pub(super) fn set_max(&mut self, server: usize, max: u32) {
        let used = self.servers[server].used;
        self.servers[server] = ModelServer { max, used, ceiling: used.max(max) };
        self.settle(server);
    }

    pub(super) fn withdraw(&mut self, server: usize, of_group: u64) {
        for (_, fate) in &mut self.joined {
            let ExpectedEnd::Waits { servers, group, .. } = fate else { continue };
            if *group == of_group {
                servers.retain(|other| *other != server);
                if servers.is_empty() {
                    *fate = ExpectedEnd::Stranded;
                }
            }
        }
    }

    pub(super) fn admit(&mut self, server: usize, to_group: u64) {
        for (_, fate) in &mut self.joined {
            let ExpectedEnd::Waits { servers, tried, group } = fate else { continue };
            if *group == to_group && !tried.contains(&server) && !servers.contains(&server) {
                servers.push(server);
            }
        }
        self.settle(server);
    }

    /// Removes a request from the list. A grant is not freed by it.
    pub(super) fn remove(&mut self, id: u64) -> ExpectedEnd {
        let index = self.joined.iter().position(|(other, _)| *other == id).expect("it joined");
        self.joined.remove(index).1
    }

    /// Grants free slots. Returns how many.
    fn settle(&mut self, server: usize) -> u32 {
        let mut granted = 0;
        while self.has_free(server) {
            let oldest = self.joined.iter_mut().find(|(_, fate)| fate.waits_for(server));
            let Some((_, fate)) = oldest else { break };
            *fate = ExpectedEnd::Granted(server);
            self.servers[server].used += 1;
            granted += 1;
        }
        granted
    }
}
