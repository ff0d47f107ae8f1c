//! The data that the master sends to the worker process: a configuration and everything needed to
//! serve it.
//!
//! The files come as a recording, so the worker process needs no right to read them; logs and
//! sockets come as open descriptors, which follow in the order given here. The bytes come from the
//! master, but reading them never panics.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use net::Address;
use net::users::ProcessIdentity;
use session::ListenerSlots;

use crate::config_origin::ConfigOrigin;
use crate::defaults::Defaults;
use crate::subsystems::Sites;

/// One configuration on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSnapshot {
    /// The generation's number.
    pub number: u64,
    pub origin: ConfigOrigin,
    /// The files it was read from.
    pub recording: Vec<u8>,
    /// Who the process is to become, if it has not yet.
    pub identity: Option<ProcessIdentity>,
    /// How many open log files follow.
    pub logs: u32,
    /// The addresses to listen on.
    pub slots: Vec<SlotEntry>,
    /// The changes of groups since it was read, as bytes.
    pub changes: Vec<Box<[u8]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    pub slot: u32,
    pub address: Address,
    /// How many sockets follow; 0: the process has them.
    pub sockets: u32,
}

impl ConfigSnapshot {
    /// How many descriptors follow.
    pub fn descriptors(&self) -> usize {
        let sockets = self.slots.iter().map(|slot| slot.sockets as usize);
        self.logs as usize + sockets.sum::<usize>()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let ConfigOrigin {
            conf,
            prefix,
            conf_prefix,
            directives,
            defaults,
            lenient,
            privileged,
            is_trial,
            port: _,
        } = &self.origin;
        number(&mut out, self.number);
        [conf, prefix, conf_prefix].into_iter().for_each(|text| string(&mut out, text));
        optional(&mut out, directives.as_deref());
        write_defaults(&mut out, defaults);
        let flags = [*lenient, *privileged, *is_trial];
        flags.into_iter().for_each(|flag| number(&mut out, flag.into()));
        string(&mut out, &self.recording);
        optional(&mut out, self.identity.as_ref().map(|identity| &*identity.name));
        if let Some(ProcessIdentity { user, group, .. }) = &self.identity {
            [*user, *group].into_iter().for_each(|id| number(&mut out, id.into()));
        }
        number(&mut out, self.logs.into());
        number(&mut out, self.slots.len() as u64);
        for SlotEntry { slot, address, sockets } in &self.slots {
            number(&mut out, (*slot).into());
            string(&mut out, &address_text(address));
            number(&mut out, (*sockets).into());
        }
        number(&mut out, self.changes.len() as u64);
        self.changes.iter().for_each(|change| string(&mut out, change));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = SnapshotReader { bytes };
        let number = input.number()?;
        let origin = ConfigOrigin {
            conf: input.string()?,
            prefix: input.string()?,
            conf_prefix: input.string()?,
            directives: input.optional()?,
            defaults: input.defaults()?,
            lenient: input.number()? != 0,
            privileged: input.number()? != 0,
            is_trial: input.number()? != 0,
            port: None,
        };
        let recording = input.string()?.into();
        let identity = match input.optional()? {
            Some(name) => Some(ProcessIdentity { name, user: input.id()?, group: input.id()? }),
            None => None,
        };
        let (logs, count) = (input.id()?, input.number()?);
        let slots = (0..count).map(|_| input.slot()).collect::<Option<_>>()?;
        let count = input.number()?;
        let changes = (0..count).map(|_| input.string()).collect::<Option<_>>()?;
        Some(Self { number, origin, recording, identity, logs, slots, changes })
    }
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    number(out, u64::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        string(out, bytes);
    }
}

fn write_defaults(out: &mut Vec<u8>, defaults: &Defaults) {
    let Defaults { error_log, access_log, pid, client_body_temp, proxy_temp } = defaults;
    for log in [error_log, access_log] {
        optional(out, log.as_ref().map(|log| log.as_os_str().as_bytes()));
    }
    for path in [pid, client_body_temp, proxy_temp] {
        string(out, path.as_os_str().as_bytes());
    }
}

fn address_text(address: &Address) -> Vec<u8> {
    match address {
        Address::Ip(ip) => ip.to_string().into(),
        Address::Udp(ip) => format!("udp:{ip}").into(),
        Address::Unix(path) => [b"unix:", path.as_os_str().as_bytes()].concat(),
    }
}

struct SnapshotReader<'a> {
    bytes: &'a [u8],
}

impl SnapshotReader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn id(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn string(&mut self) -> Option<Box<[u8]>> {
        let len = self.number()?.try_into().ok()?;
        let (string, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(string.into())
    }

    fn optional(&mut self) -> Option<Option<Box<[u8]>>> {
        match self.number()? {
            0 => Some(None),
            _ => self.string().map(Some),
        }
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(conf::bytes_path(&self.string()?).to_owned())
    }

    fn defaults(&mut self) -> Option<Defaults> {
        let log = |path: Option<Box<[u8]>>| path.map(|path| conf::bytes_path(&path).to_owned());
        Some(Defaults {
            error_log: log(self.optional()?),
            access_log: log(self.optional()?),
            pid: self.path()?,
            client_body_temp: self.path()?,
            proxy_temp: self.path()?,
        })
    }

    fn slot(&mut self) -> Option<SlotEntry> {
        let slot = self.id()?;
        let text = self.string()?;
        let ip = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
        let address = match (text.strip_prefix(b"unix:"), text.strip_prefix(b"udp:")) {
            (Some(path), _) => Address::Unix(PathBuf::from(conf::bytes_path(path))),
            (_, Some(udp)) => Address::Udp(ip(udp)?),
            _ => Address::Ip(ip(&text)?),
        };
        Some(SlotEntry { slot, address, sockets: self.id()? })
    }
}

/// Whose each slot is, and its place in that subsystem's list. A slot of an earlier configuration
/// is nobody's.
#[derive(Clone, Default)]
pub struct SlotOwners {
    /// The number of the subsystem, by slot.
    owners: Arc<[Option<usize>]>,
    /// By subsystem.
    places: [ListenerSlots; Sites::COUNT],
}

impl SlotOwners {
    /// The sockets of these slots as a configuration has them.
    pub fn of(slots: &[SlotEntry], sites: &Sites) -> Self {
        let places = sites.each().map(|site| {
            let addresses = site.sockets().into_iter().map(|(address, _)| address);
            places_of(slots, addresses)
        });
        let owner = |slot: usize| places.iter().position(|places| places[slot].is_some());
        let owners = (0..places[0].len()).map(owner).collect();
        Self { owners, places }
    }

    /// The number of the subsystem that has a slot, if the configuration has it.
    pub fn owner(&self, slot: u32) -> Option<usize> {
        self.owners.get(slot as usize).copied().flatten()
    }

    /// Whether the configuration has a slot.
    pub fn has(&self, slot: u32) -> bool {
        self.owner(slot).is_some()
    }

    pub fn of_subsystems(&self) -> impl Iterator<Item = &ListenerSlots> {
        self.places.iter()
    }
}

/// By slot: the place of its address in a list.
fn places_of<'a>(
    slots: &[SlotEntry],
    addresses: impl Iterator<Item = &'a Address>,
) -> ListenerSlots {
    let by_address: HashMap<&Address, u32> =
        (0..).zip(addresses).map(|(place, address)| (address, place)).collect();
    let last = slots.iter().map(|entry| entry.slot + 1).max().unwrap_or(0);
    let mut places = vec![None; last as usize];
    for entry in slots {
        places[entry.slot as usize] = by_address.get(&entry.address).copied();
    }
    places.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> ConfigSnapshot {
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        let entry = |slot, address, sockets| SlotEntry { slot, address, sockets };
        ConfigSnapshot {
            number: 7,
            origin: ConfigOrigin {
                conf: b"/etc/\xff.conf"[..].into(),
                directives: Some(b"daemon off;"[..].into()),
                defaults: Defaults {
                    error_log: Some("/e.log".into()),
                    pid: "/run/a.pid".into(),
                    ..Defaults::default()
                },
                lenient: true,
                is_trial: true,
                ..ConfigOrigin::default()
            },
            recording: vec![1, 2, 3],
            identity: Some(ProcessIdentity { name: b"www"[..].into(), user: 33, group: 44 }),
            logs: 2,
            slots: vec![
                entry(0, ip("127.0.0.1:80"), 2),
                entry(3, ip("[::1]:80"), 0),
                entry(4, Address::Unix("/run/a.sock".into()), 1),
                entry(5, Address::Udp("[::]:53".parse().unwrap()), 2),
            ],
            changes: vec![b"change"[..].into(), Box::default()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let snapshot = snapshot();
        assert_eq!(ConfigSnapshot::from_bytes(&snapshot.to_bytes()), Some(snapshot.clone()));
        assert_eq!(snapshot.descriptors(), 7);
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let bytes = snapshot().to_bytes();
        for len in 0..bytes.len() {
            assert_eq!(ConfigSnapshot::from_bytes(&bytes[..len]), None, "{len}");
        }
    }
}
