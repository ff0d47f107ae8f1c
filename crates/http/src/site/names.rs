//! Virtual servers of one listening socket by name: exact, `*.example.org`, `example.*`, regular
//! expressions, in this order of precedence, the longest wildcard first.

use std::collections::HashMap;

use pcre2::bytes::Regex;

use super::ServerId;
use crate::exchange::Exchange;
use crate::regex;

/// The servers of one listening socket.
pub struct ServerNames {
    /// The one that answers when no name fits.
    pub default: ServerId,
    exact: HashMap<Box<[u8]>, ServerId>,
    /// `.example.org` by `*.example.org`.
    leading: HashMap<Box<[u8]>, ServerId>,
    /// `www.example.` by `www.example.*`.
    trailing: HashMap<Box<[u8]>, ServerId>,
    patterns: Vec<(Regex, ServerId)>,
    only: bool,
}

impl ServerNames {
    /// A socket whose requests all go to `default` until names are added.
    pub fn new(default: ServerId) -> Self {
        Self {
            default,
            exact: HashMap::new(),
            leading: HashMap::new(),
            trailing: HashMap::new(),
            patterns: Vec::new(),
            only: true,
        }
    }

    /// Adds a name as `server_name` gives it; false if another server has it already.
    pub fn add(&mut self, name: &[u8], server: ServerId) -> bool {
        self.only &= server == self.default;
        let name = name.to_ascii_lowercase();
        let free = |map: &mut HashMap<Box<[u8]>, ServerId>, key: &[u8]| {
            let taken = map.contains_key(key);
            map.entry(key.into()).or_insert(server);
            !taken
        };
        match &name[..] {
            [b'*', b'.', ..] => free(&mut self.leading, &name[1..]),
            [b'.', bare @ ..] => {
                let exact = free(&mut self.exact, bare);
                free(&mut self.leading, &name) && exact
            }
            [.., b'.', b'*'] => free(&mut self.trailing, &name[..name.len() - 1]),
            _ => free(&mut self.exact, &name),
        }
    }

    /// Adds a regular expression.
    pub fn add_pattern(&mut self, pattern: Regex, server: ServerId) {
        self.only &= server == self.default && !regex::captures(&pattern);
        self.patterns.push((pattern, server));
    }

    /// Whether the server depends on the host that a client names.
    pub fn are_several(&self) -> bool {
        !self.only
    }

    /// The server for the exchange's host. A regular expression leaves its groups behind.
    pub fn choose(&self, x: &mut Exchange) -> ServerId {
        if self.only || x.request.host.is_empty() {
            return self.default;
        }
        self.by_table(&x.request.host).or_else(|| self.by_pattern(x)).unwrap_or(self.default)
    }

    fn by_table(&self, host: &[u8]) -> Option<ServerId> {
        let dots = || host.iter().enumerate().filter(|(_, b)| **b == b'.').map(|(at, _)| at);
        (self.exact.get(host))
            .or_else(|| dots().find_map(|at| self.leading.get(&host[at..])))
            .or_else(|| {
                (!self.trailing.is_empty())
                    .then(|| dots().filter_map(|at| self.trailing.get(&host[..=at])).last())
                    .flatten()
            })
            .copied()
    }

    fn by_pattern(&self, x: &mut Exchange) -> Option<ServerId> {
        let host = std::mem::take(&mut x.request.host);
        let found = self.patterns.iter().find(|(pattern, _)| regex::matches(pattern, &host, x));
        x.request.host = host;
        found.map(|(_, server)| *server)
    }
}
