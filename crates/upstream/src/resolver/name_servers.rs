//! `resolver`: the name servers, and how their answers are used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use conf::{Directive, Load, Result, Value, Word, units};
use net::Address;

use super::Resolver;
use super::counters::ResolverZones;
use super::servers::ResolverSettings;
use super::state::ResolverState;
use crate::address;

const DNS_PORT: u16 = 53;

/// The value of `resolver`. Blocks that inherit it share its caches.
#[derive(Clone, Debug)]
pub struct NameServers(Arc<ResolverSettings>);

thread_local! {
    /// This worker's resolvers by their lines, which are weak references: configurations end.
    static STATES: RefCell<HashMap<usize, OfWorker>> = RefCell::default();
}

struct OfWorker {
    settings: Weak<ResolverSettings>,
    state: Rc<ResolverState>,
}

impl NameServers {
    pub fn settings(&self) -> &ResolverSettings {
        &self.0
    }

    /// Their addresses; at least one, unless the configuration is only checked.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.0.servers
    }

    /// This worker's resolver for the line; waits end after `timeout_ms`, or never if it is 0.
    pub fn resolver(&self, timeout_ms: u64) -> Resolver {
        // A weak reference keeps the address from being used again.
        let key = Arc::as_ptr(&self.0).addr();
        let state = STATES.with_borrow_mut(|states| {
            if let Some(known) = states.get(&key) {
                return known.state.clone();
            }
            states.retain(|_, known| known.settings.strong_count() > 0);
            let state = Rc::new(ResolverState::new((*self.0).clone()));
            let settings = Arc::downgrade(&self.0);
            states.insert(key, OfWorker { settings, state: state.clone() });
            state
        });
        Resolver { state, timeout_ms }
    }
}

impl Value for NameServers {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut settings =
            ResolverSettings { valid_ms: None, ipv4: true, ipv6: true, ..Default::default() };
        for word in &from.args {
            settings.parameter(word, from, load)?;
        }
        if !settings.ipv4 && !settings.ipv6 {
            return Err(from.error("\"ipv4\" and \"ipv6\" cannot both be \"off\""));
        }
        let names_none = |word: &Word| word.text.contains(&b'=');
        if from.args.iter().all(names_none) {
            return Err(from.error("no name servers defined"));
        }
        Ok(Self(Arc::new(settings)))
    }
}

impl ResolverSettings {
    fn parameter(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let invalid = || from.error_at(word, format!("invalid parameter: {word}"));
        let flag = |text: &[u8]| match text {
            b"on" => Ok(true),
            b"off" => Ok(false),
            _ => Err(invalid()),
        };
        let text = &word.text;
        if let Some(time) = text.strip_prefix(b"valid=") {
            self.valid_ms = Some(units::seconds(time).ok_or_else(invalid)?.saturating_mul(1000));
        } else if let Some(text) = text.strip_prefix(b"ipv4=") {
            self.ipv4 = flag(text)?;
        } else if let Some(text) = text.strip_prefix(b"ipv6=") {
            self.ipv6 = flag(text)?;
        } else if let Some(zone) = text.strip_prefix(b"status_zone=") {
            if zone.is_empty() {
                return Err(invalid());
            }
            self.zone = Some(zone.into());
            load.own.of::<ResolverZones>().add(zone);
        } else {
            self.servers.extend(servers(word, from, load)?);
        }
        Ok(())
    }
}

/// `address`, `address:port`, `[v6]`, `[v6]:port`, or a name that the system knows.
fn servers(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Vec<SocketAddr>> {
    let refuse = |why: &str| from.error_at(word, format!("{why} in resolver \"{word}\""));
    let parsed = address::parse(&word.text, DNS_PORT).map_err(refuse)?;
    let ip = |address| match address {
        Address::Ip(ip) | Address::Udp(ip) => Ok(ip),
        Address::Unix(_) => Err(refuse("unix domain socket")),
    };
    let found: Vec<_> = parsed.place.addresses().into_iter().map(ip).collect::<Result<_>>()?;
    let found = if found.is_empty() { Err(refuse("host not found")) } else { Ok(found) };
    Ok(load.of_this_machine(found)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> NameServers {
        let servers = vec!["127.0.0.1:53".parse().unwrap()];
        NameServers(Arc::new(ResolverSettings {
            servers,
            ipv4: true,
            ipv6: true,
            ..Default::default()
        }))
    }

    #[test]
    fn every_line_has_caches_of_its_own() {
        let (one, other) = (line(), line());
        let state = |servers: &NameServers| servers.resolver(0).state;
        assert!(Rc::ptr_eq(&state(&one), &state(&one.clone())), "who inherits shares");
        assert!(!Rc::ptr_eq(&state(&one), &state(&other)));
        let gone = Rc::downgrade(&state(&one));
        drop(one);
        state(&line());
        assert!(gone.upgrade().is_none());
        assert_eq!(STATES.with_borrow(HashMap::len), 2);
    }
}
