//! The groups that `proxy_pass` and similar directives may name: those with a block, and one for
//! each server that a line names without a block. All lines that name such a server share its
//! group, and variables may name it, too.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Span, Word};
use net::Address;

use crate::address::{self, AddressRefusal, Endpoint};
use crate::group::Group;
use crate::settings::Groups;

/// Groups by name, or by host and port.
pub type ByName = HashMap<Box<[u8]>, Arc<Group>>;

/// A server as lines and variables name it.
#[derive(Clone, Debug)]
pub struct GroupHost {
    /// The text, with its port if it has one.
    pub text: Box<[u8]>,
    /// The address, which is not used if a group has that name.
    pub place: Endpoint,
}

/// The position where a line names a server.
#[derive(Clone, Copy)]
struct At {
    /// The position that nginx reports.
    end: Span,
    mark: Span,
}

/// The servers without a block among the lines read so far; then all groups.
#[derive(Default)]
struct NamedGroups {
    hosts: Vec<(GroupHost, At)>,
    groups: Option<Arc<ByName>>,
}

/// The port of a text without one.
const NO_PORT: u16 = 0;

impl GroupHost {
    /// Parses a server whose port is required, unless the text is the name of a group.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, AddressRefusal> {
        let place = address::parse(text, NO_PORT)?.place;
        Ok(Self { text: text.into(), place })
    }

    /// Records that a line names the server.
    pub fn declare(&self, from: &Directive, word: &Word, load: &mut Load<'_>) {
        let at = At { end: from.end, mark: word.span };
        load.own.of::<NamedGroups>().hosts.push((self.clone(), at));
    }

    /// Its group: by name, or else by host and port.
    pub fn find<'g>(&self, groups: &'g ByName) -> Option<&'g Arc<Group>> {
        groups.get(&self.text.to_ascii_lowercase()[..]).or_else(|| groups.get(&self.key()[..]))
    }

    pub fn has_port(&self) -> bool {
        match &self.place {
            Endpoint::At(Address::Ip(address) | Address::Udp(address)) => address.port() != 0,
            Endpoint::At(Address::Unix(_)) => true,
            Endpoint::Named { port, .. } => *port != 0,
        }
    }

    /// Refuses a port after the name of a block, which no server has.
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

    /// Host and port, including a default port.
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
pub fn all(load: &mut Load<'_>) -> Result<Arc<ByName>> {
    if let Some(groups) = &load.own.of::<NamedGroups>().groups {
        return Ok(groups.clone());
    }
    let mut groups = load.own.of::<Groups>().all();
    for (host, at) in std::mem::take(&mut load.own.of::<NamedGroups>().hosts) {
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
    load.own.of::<NamedGroups>().groups = Some(groups.clone());
    Ok(groups)
}
