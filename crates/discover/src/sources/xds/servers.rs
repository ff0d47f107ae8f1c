//! The servers of a group from the endpoints of a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wire::xds::{XdsAddress, XdsAssignment, XdsEndpoint, XdsHealth, XdsLocality};

use super::notes::XdsNotes;
use crate::server_entry::{ServerEntry, ServerList};
use crate::sources::host_port;

/// The largest weight of a server; larger ones are scaled.
const WEIGHT_MAX: u64 = 65_535;
/// What the largest weight becomes when weights are scaled: they are rounded to a thousandth of it.
const SCALED_MAX: f64 = 1000.0;
/// What is added to the priority of endpoints that are only used when others are not enough.
const DEGRADED: u32 = 1 << 16;

/// An endpoint that is used.
struct UsedEndpoint<'a> {
    endpoint: &'a XdsEndpoint<'a>,
    address: String,
    /// The lowest one is used first.
    level: u32,
    weight: u64,
}

/// The servers of a group. `allows_names`: an address may be a name.
pub(super) fn servers(
    assignment: &XdsAssignment<'_>,
    allows_names: bool,
    notes: &mut XdsNotes,
) -> Result<ServerList, String> {
    if assignment.drops {
        notes.note("drop_overloads", assignment.name);
    }
    let mut used = Vec::new();
    let mut priorities: BTreeMap<u32, Vec<&XdsLocality<'_>>> = BTreeMap::new();
    for locality in &assignment.localities {
        if locality.is_elsewhere {
            notes.note("leds_cluster_locality_config", assignment.name);
        }
        priorities.entry(locality.priority).or_default().push(locality);
    }
    for localities in priorities.values() {
        let mut of_priority = Vec::new();
        for locality in localities {
            of_priority.push((*locality, usable(locality, allows_names, assignment.name, notes)?));
        }
        weigh(&mut of_priority);
        used.extend(of_priority.into_iter().flat_map(|(_, endpoints)| endpoints));
    }
    entries(used)
}

/// The endpoints of a locality that are used.
fn usable<'a>(
    locality: &'a XdsLocality<'a>,
    allows_names: bool,
    cluster: &str,
    notes: &mut XdsNotes,
) -> Result<Vec<UsedEndpoint<'a>>, String> {
    let mut used = Vec::new();
    for endpoint in &locality.endpoints {
        let Some(address) = server_address(&endpoint.address, allows_names)? else {
            notes.note("envoy_internal_address", cluster);
            continue;
        };
        let degraded = if endpoint.health == XdsHealth::Degraded { DEGRADED } else { 0 };
        if endpoint.health != XdsHealth::Unhealthy {
            let (level, weight) = (locality.priority + degraded, endpoint.weight.unwrap_or(1));
            used.push(UsedEndpoint { endpoint, address, level, weight: weight.into() });
        }
    }
    Ok(used)
}

/// `None`: it is inside Envoy.
fn server_address(address: &XdsAddress<'_>, allows_names: bool) -> Result<Option<String>, String> {
    match *address {
        XdsAddress::Internal => Ok(None),
        XdsAddress::Pipe(path) if path.starts_with('/') && !path.contains(char::is_whitespace) => {
            Ok(Some(format!("unix:{path}")))
        }
        XdsAddress::Socket { host, port } => {
            let is_name = |host: &str| {
                let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                host.bytes().all(is_good)
            };
            match host.parse::<IpAddr>().is_ok() || allows_names && is_name(host) {
                true => Ok(Some(host_port(host, port.into()))),
                false => Err(format!("\"{host}\" is not an address")),
            }
        }
        XdsAddress::Pipe(path) => Err(format!("\"{path}\" is not a path of a socket")),
    }
}

/// Makes weights within a priority of those within its localities.
fn weigh(localities: &mut [(&XdsLocality<'_>, Vec<UsedEndpoint<'_>>)]) {
    let with_endpoints = || localities.iter().filter(|(_, endpoints)| !endpoints.is_empty());
    let has_weights = with_endpoints().count() > 1
        && with_endpoints().all(|(locality, _)| locality.weight.is_some());
    let mut shares = Vec::new();
    for (locality, endpoints) in localities.iter() {
        let sum: u64 = endpoints.iter().map(|one| one.weight).sum();
        for one in endpoints {
            shares.push(match locality.weight.filter(|_| has_weights) {
                Some(weight) => one.weight as f64 * f64::from(weight) / sum as f64,
                None => one.weight as f64,
            });
        }
    }
    let most = shares.iter().fold(0.0, |most: f64, share| most.max(*share));
    let is_plain = most <= WEIGHT_MAX as f64 && shares.iter().all(|share| share.fract() == 0.0);
    let scale = if is_plain { 1.0 } else { SCALED_MAX / most };
    let endpoints = localities.iter_mut().flat_map(|(_, endpoints)| endpoints);
    for (one, share) in endpoints.zip(shares) {
        one.weight = (share * scale).round().max(1.0) as u64;
    }
}

fn entries(used: Vec<UsedEndpoint<'_>>) -> Result<ServerList, String> {
    let first = used.iter().map(|one| one.level).min();
    let mut unique: BTreeMap<(bool, String), UsedEndpoint<'_>> = BTreeMap::new();
    for one in used {
        let key = (Some(one.level) != first, one.address.clone());
        let is_draining = |one: &UsedEndpoint<'_>| one.endpoint.health == XdsHealth::Draining;
        // Of endpoints that are listed twice, the first one counts, as in Envoy.
        let is_better =
            unique.get(&key).is_none_or(|known| is_draining(known) && !is_draining(&one));
        if is_better {
            unique.insert(key, one);
        }
    }
    let entries = unique.into_iter().map(|((is_backup, address), one)| {
        let mut entry = ServerEntry::new(&address);
        if one.weight != 1 {
            entry.set("weight", &one.weight.to_string())?;
        }
        if is_backup {
            entry.set("backup", "true")?;
        }
        if one.endpoint.health == XdsHealth::Draining {
            entry.set("drain", "true")?;
        }
        Ok(entry)
    });
    ServerList::new(entries.collect::<Result<_, String>>()?)
}
