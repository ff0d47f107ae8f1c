//! The groups that may be named: those with a block, and every server that a line names without
//! one. However many lines name such a server, they share its group, and variables may name it,
//! too.

use std::collections::HashMap;
use std::sync::Arc;

use ::upstream::address::Endpoint;
use ::upstream::{Group, Groups};
use conf::{Directive, Error, Load, Result, Span, Word};
use net::Address;

/// Groups by name, or by host and port.
pub(crate) type ByName = HashMap<Box<[u8]>, Arc<Group>>;

/// A server as lines and variables name it.
#[derive(Clone, Debug)]
pub(crate) struct GroupHost {
    /// As it was written, with its port if that was said.
    pub(crate) text: Box<[u8]>,
    pub(crate) place: Endpoint,
}

/// Where a line names a server.
#[derive(Clone, Copy)]
struct At {
    /// What nginx takes for the place.
    end: Span,
    mark: Span,
}

/// The servers without a block, as far as the configuration was read; then all groups.
#[derive(Default)]
struct NamedGroups {
    hosts: Vec<(GroupHost, At)>,
    groups: Option<Arc<ByName>>,
}

impl GroupHost {
    /// A line names it.
    pub(crate) fn declare(&self, from: &Directive, word: &Word, load: &mut Load<'_>) {
        let at = At { end: from.end, mark: word.span };
        load.registry.of::<NamedGroups>().hosts.push((self.clone(), at));
    }

    /// Its group: that of the name, else that of the host and port.
    pub(crate) fn find<'g>(&self, groups: &'g ByName) -> Option<&'g Arc<Group>> {
        groups.get(&self.text.to_ascii_lowercase()[..]).or_else(|| groups.get(&self.key()[..]))
    }

    /// Whether a server can be asked there without anything else being known.
    pub(crate) fn has_port(&self) -> bool {
        match &self.place {
            Endpoint::At(Address::Ip(address)) => address.port() != 0,
            Endpoint::At(Address::Unix(_)) => true,
            Endpoint::Named { port, .. } => *port != 0,
        }
    }

    /// A block's name has no port: nobody means a server of that name.
    fn refuse_port(&self, at: At, groups: &ByName) -> Result<()> {
        let colon = self.text.iter().rposition(|&byte| byte == b':').unwrap_or(0);
        let (name, port) = self.text.split_at(colon);
        if !groups.contains_key(&name.to_ascii_lowercase()[..]) {
            return Ok(());
        }
        let (name, port) = (String::from_utf8_lossy(name), String::from_utf8_lossy(&port[1..]));
        let message = format!("upstream \"{name}\" may not have port {port}");
        Err(Error::at(at.end, message).marked(at.mark))
    }

    /// Host and port, the port also where it goes without saying.
    fn key(&self) -> Box<[u8]> {
        match &self.place {
            Endpoint::At(address) => address.to_string().into_bytes().into(),
            Endpoint::Named { host, port } => {
                let mut key = host.to_ascii_lowercase();
                key.extend_from_slice(format!(":{port}").as_bytes());
                key.into()
            }
        }
    }
}

/// All groups, once everything has been read.
pub(crate) fn all(load: &mut Load<'_>) -> Result<Arc<ByName>> {
    if let Some(groups) = &load.registry.of::<NamedGroups>().groups {
        return Ok(groups.clone());
    }
    let mut groups = load.own.of::<Groups>().all();
    for (host, at) in std::mem::take(&mut load.registry.of::<NamedGroups>().hosts) {
        if host.find(&groups).is_none() {
            host.refuse_port(at, &groups)?;
            let blame = |message: String| Error::at(at.end, message).marked(at.mark);
            if !host.has_port() {
                let text = String::from_utf8_lossy(&host.text);
                return Err(blame(format!("no port in upstream \"{text}\"")));
            }
            let group = Groups::implicit(&host.text, &host.place, blame, load)?;
            groups.insert(host.key(), group);
        }
    }
    let groups = Arc::new(groups);
    load.registry.of::<NamedGroups>().groups = Some(groups.clone());
    Ok(groups)
}
