//! Requests about tables of `keyval`: what they name, and what they change.
//!
//! ```text
//! POST|PATCH|DELETE  http/keyvals/ZONE
//! DELETE             http/keyvals/ZONE/KEY
//! ```
//!
//! A request is tried on a copy of the table, which is written to the zone's file before the change
//! is made.

use std::collections::BTreeMap;

use conf::Subsystem;
use session::keyval::{
    KeyvalChange, KeyvalMerge, KeyvalRefusal, KeyvalRequest, KeyvalTable, KeyvalZone,
};
use session::steering::{SteeringReply, SteeringRequest};
use upstream::api::{SpecRefusal, percent_decoded};

use super::accepted::UNKEPT;
use super::errors::not_found;
use crate::subsystems::Sites;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyvalPath {
    subsystem: Subsystem,
    zone: Box<[u8]>,
    key: Option<Box<[u8]>>,
}

impl KeyvalPath {
    /// `None`: the path names something else.
    pub(super) fn parse(path: &[u8]) -> Option<Self> {
        let (block, rest) = split(path)?;
        let subsystem = match block {
            b"http" => Subsystem::Http,
            b"stream" => Subsystem::Stream,
            _ => return None,
        };
        let (_, names) = split(rest).filter(|(collection, _)| *collection == b"keyvals")?;
        let (zone, key) = split(names).unwrap_or((names, b""));
        let key = (!key.is_empty()).then(|| percent_decoded(key));
        (!zone.is_empty()).then(|| Self { subsystem, zone: percent_decoded(zone), key })
    }
}

/// The part before the first slash, and the rest.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().position(|byte| *byte == b'/')?;
    Some((&path[..slash], &path[slash + 1..]))
}

/// Tables as they are after changes that were decided and not made yet.
#[derive(Default)]
pub(super) struct TrialTables(BTreeMap<(Subsystem, Box<[u8]>), KeyvalTable>);

impl TrialTables {
    /// Decides a request, and makes its change here.
    pub(super) fn accept(
        &mut self,
        request: &SteeringRequest,
        path: KeyvalPath,
        sites: &Sites,
    ) -> Result<(KeyvalChange, SteeringReply), SpecRefusal> {
        let KeyvalPath { subsystem, zone: name, key } = path;
        let zone = sites.keyval_zone(subsystem, &name);
        let zone = zone.ok_or_else(|| refused(KeyvalRefusal::no_zone(&name)))?;
        let status = if &*request.method == b"POST" { 201 } else { 204 };
        let wanted = wanted(request, key)?;
        let table = self.table(zone);
        let now_ms = net::clock::monotonic_ms();
        let operation = table.accept(&wanted, zone.timeout_ms, now_ms).map_err(refused)?;
        let fields = if zone.state.is_some() { Vec::new() } else { vec![UNKEPT.to_owned()] };
        let reply = SteeringReply { status, fields, ..SteeringReply::default() };
        Ok((KeyvalChange { subsystem, zone: name, operation }, reply))
    }

    /// Makes changes of other machines here, as far as they still apply. `None`: nothing changes.
    pub(super) fn merge(
        &mut self,
        request: &SteeringRequest,
        sites: &Sites,
    ) -> Result<Option<KeyvalChange>, SpecRefusal> {
        let KeyvalMerge { subsystem, zone: name, keys } =
            KeyvalMerge::from_bytes(&request.body).ok_or_else(not_found)?;
        let zone = sites.keyval_zone(subsystem, &name).ok_or_else(not_found)?;
        let operation = self.table(zone).merge(keys, net::clock::monotonic_ms());
        Ok(operation.map(|operation| KeyvalChange { subsystem, zone: name, operation }))
    }

    /// The table of a zone.
    pub(super) fn table(&mut self, zone: &KeyvalZone) -> &mut KeyvalTable {
        self.0.entry((zone.subsystem, zone.name.clone())).or_insert_with(|| zone.table())
    }
}

/// What a request wants of the table.
fn wanted(request: &SteeringRequest, key: Option<Box<[u8]>>) -> Result<KeyvalRequest, SpecRefusal> {
    match (&*request.method, key) {
        (b"POST", None) => KeyvalRequest::add(&request.body).map_err(refused),
        (b"PATCH", None) => KeyvalRequest::modify(&request.body).map_err(refused),
        (b"DELETE", Some(key)) => Ok(KeyvalRequest::Remove(key)),
        // An argument would be one of `?key=`, whose author does not mean the whole table.
        (b"DELETE", None) if request.args.is_empty() => Ok(KeyvalRequest::Clear),
        (b"DELETE", None) => {
            let text =
                "arguments are not supported here; a key is removed by its path, or by PATCH";
            Err(SpecRefusal::new(400, text, "KeyvalFormatError"))
        }
        _ => Err(SpecRefusal::new(405, "method disabled", "MethodDisabled")),
    }
}

fn refused(refusal: KeyvalRefusal) -> SpecRefusal {
    let KeyvalRefusal { status, code, text } = refusal;
    SpecRefusal::new(status, text, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<(String, Option<String>)> {
        let KeyvalPath { zone, key, .. } = KeyvalPath::parse(path.as_bytes())?;
        let text = |bytes: Box<[u8]>| String::from_utf8_lossy(&bytes).into_owned();
        Some((text(zone), key.map(text)))
    }

    #[test]
    fn paths_name_a_zone_and_perhaps_a_key() {
        let zone = |name: &str, key: Option<&str>| Some((name.to_owned(), key.map(str::to_owned)));
        assert_eq!(parse("http/keyvals/a"), zone("a", None));
        assert_eq!(parse("stream/keyvals/a/"), zone("a", None));
        assert_eq!(parse("http/keyvals/a/10.0.0.0/8"), zone("a", Some("10.0.0.0/8")));
        assert_eq!(parse("http/keyvals/a%20b/%25%41"), zone("a b", Some("%A")));
        for other in ["http/keyvals", "http/keyvals/", "http/upstreams/a", "mail/keyvals/a", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
