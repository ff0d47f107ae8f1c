//! How an issuer's records of DNS are written and checked, as its block says.

use std::ffi::OsString;

use upstream::ResolverPolicy;
use upstream::address::Endpoint;
use wire::dns::{DomainName, TsigKey};

/// The settings of an issuer with the challenge dns-01.
#[derive(Clone, Debug)]
pub(crate) struct DnsSettings {
    pub(crate) writer: DnsWriter,
    pub(crate) check: DnsCheck,
    /// How long a program may run, and a record may take until it is seen.
    pub(crate) timeout_ms: u64,
}

/// Who adds and removes records.
#[derive(Clone, Debug)]
pub(crate) enum DnsWriter {
    /// Updates of these zones.
    Updates(Vec<DnsZone>),
    Hook(DnsHook),
}

/// A zone that takes updates (`dns_update`).
#[derive(Clone, Debug)]
pub(crate) struct DnsZone {
    /// In the order in which they are tried; at least one.
    pub(crate) servers: Vec<Endpoint>,
    pub(crate) name: DomainName,
    pub(crate) key: TsigKey,
    pub(crate) ttl_s: u32,
}

/// A program that changes records (`dns_hook`).
#[derive(Clone, Debug)]
pub(crate) struct DnsHook {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// Who has to show a record before the authority is told (`dns_check`).
#[derive(Clone, Debug)]
pub(crate) enum DnsCheck {
    /// All name servers of the zone.
    Authoritative,
    /// These servers.
    Servers(Vec<Endpoint>),
    Off,
}

/// A TXT record that proves a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DnsRecord {
    /// The domain that it proves.
    pub(crate) domain: String,
    /// The name of the record, after aliases were followed.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What to do with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordChange {
    Add,
    Remove,
}

/// Settings with the resolver that they are used with.
#[derive(Clone, Copy)]
pub(crate) struct DnsContext<'a> {
    pub(crate) settings: &'a DnsSettings,
    pub(crate) names: &'a ResolverPolicy,
}

impl DnsRecord {
    /// The name of the record, checked to be that of a host: an alias in somebody else's zone may
    /// have chosen it, and it becomes an argument of programs.
    pub(super) fn owner(&self) -> Result<DomainName, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let name = DomainName::from_text(self.name.as_bytes()).ok();
        let name = name.filter(|_| self.name.bytes().all(is_plain) && !self.name.starts_with('-'));
        name.ok_or_else(|| format!("\"{}\" is no name for a record", self.name))
    }
}

impl DnsSettings {
    /// The secrets of files, which the text of the block does not show.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        let zones = match &self.writer {
            DnsWriter::Updates(zones) => &zones[..],
            DnsWriter::Hook(_) => &[],
        };
        zones.iter().map(|zone| &zone.key.secret[..])
    }

    /// The zone that takes updates of a record: the smallest one that it is in.
    pub(super) fn zone_of(&self, record: &DnsRecord) -> Result<Option<&DnsZone>, String> {
        let DnsWriter::Updates(zones) = &self.writer else { return Ok(None) };
        let owner = record.owner()?;
        let within = zones.iter().filter(|zone| owner.is_within(&zone.name));
        let smallest = within.max_by_key(|zone| zone.name.to_string().len());
        match smallest {
            Some(zone) => Ok(Some(zone)),
            None => Err(format!("no \"dns_update\" is for the zone of \"{}\"", record.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> DnsRecord {
        DnsRecord { domain: "a.test".into(), name: name.into(), value: "v".into() }
    }

    #[test]
    fn names_of_records_are_plain() {
        assert!(record("_acme-challenge.a.test").owner().is_ok());
        for name in ["-a.test", "a..test", "$(a).test", "a b.test", "a\\.b.test", ""] {
            assert!(record(name).owner().is_err(), "{name}");
        }
    }

    #[test]
    fn the_smallest_zone_takes_the_update() {
        let zone = |name: &str| DnsZone {
            servers: Vec::new(),
            name: DomainName::from_text(name.as_bytes()).unwrap(),
            key: TsigKey::parse_line(b"key:c2VjcmV0").unwrap(),
            ttl_s: 60,
        };
        let settings = DnsSettings {
            writer: DnsWriter::Updates(vec![zone("test"), zone("a.test"), zone("b.a.test")]),
            check: DnsCheck::Off,
            timeout_ms: 1000,
        };
        let zone_of =
            |name: &str| settings.zone_of(&record(name)).map(|zone| zone.unwrap().name.to_string());
        assert_eq!(zone_of("x.a.test").as_deref(), Ok("a.test"));
        assert_eq!(zone_of("ba.test").as_deref(), Ok("test"));
        assert!(zone_of("a.net").unwrap_err().contains("no \"dns_update\" is for the zone"));
    }
}
