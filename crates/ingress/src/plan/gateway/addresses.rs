//! The addresses of Gateways: its own ones, or those that it shares.
//!
//! A Gateway may only have addresses that the operator gives away, or else whoever may write
//! Gateways could take over any address of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::ResourceKey;
use crate::plan::object::{list, text};
use crate::plan::outcome::Settings;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GatewayAddresses {
    /// Where its listeners listen; `None` is all addresses that no Gateway has for itself.
    pub(super) own: Vec<Option<IpAddr>>,
    /// `status.addresses`.
    pub(super) shown: Vec<Value>,
    /// Reason and message, if it does not have what it asks for.
    pub(super) fault: Option<(&'static str, String)>,
}

/// The addresses of all Gateways, the oldest of which is first. One that names none keeps the
/// address that its status has.
pub(super) fn assign(
    gateways: &[(&ResourceKey, &Value)],
    settings: &Settings,
) -> BTreeMap<ResourceKey, GatewayAddresses> {
    let mut assigned = BTreeMap::new();
    let mut free: BTreeSet<IpAddr> = settings.gateway_addresses.iter().copied().collect();
    let (asking, others): (Vec<_>, Vec<_>) =
        gateways.iter().partition(|(_, gateway)| !asked(gateway).is_empty());
    let shares = free.is_empty();
    let mut waiting = Vec::new();
    for (key, gateway) in others {
        let before = list(gateway, "/status/addresses").iter();
        let before = before.filter_map(|one| text(one, "/value")?.parse().ok());
        match before.into_iter().find(|one| free.remove(one)) {
            Some(address) => _ = assigned.insert(key.clone(), GatewayAddresses::own(address)),
            None => waiting.push(key),
        }
    }
    for (key, gateway) in asking {
        let addresses = GatewayAddresses::asked(&asked(gateway), settings);
        free.retain(|one| !addresses.own.contains(&Some(*one)));
        assigned.insert(key.clone(), addresses);
    }
    for key in waiting {
        let addresses = match free.pop_first() {
            _ if shares => GatewayAddresses::shared(settings),
            Some(address) => GatewayAddresses::own(address),
            None => GatewayAddresses::none("AddressNotAssigned", "all addresses are in use"),
        };
        assigned.insert(key.clone(), addresses);
    }
    assigned
}

/// The addresses that a Gateway asks for; an empty one is any.
fn asked(gateway: &Value) -> Vec<&str> {
    let values = list(gateway, "/spec/addresses").iter().filter_map(|one| text(one, "/value"));
    values.filter(|value| !value.is_empty()).collect()
}

impl GatewayAddresses {
    fn own(address: IpAddr) -> Self {
        let shown = vec![shown(&address.to_string())];
        Self { own: vec![Some(address)], shown, fault: None }
    }

    fn shared(settings: &Settings) -> Self {
        let shown = settings.addresses.iter().map(|one| shown(one)).collect();
        Self { own: vec![None], shown, fault: None }
    }

    fn none(reason: &'static str, message: &str) -> Self {
        Self { fault: Some((reason, message.to_owned())), ..Self::default() }
    }

    fn asked(asked: &[&str], settings: &Settings) -> Self {
        let mut addresses = Self::default();
        for &one in asked {
            let own = one.parse().ok().filter(|own| settings.gateway_addresses.contains(own));
            if own.is_none() && !settings.addresses.iter().any(|shared| shared == one) {
                let message = format!("the servers do not have the address {one} for Gateways");
                addresses.fault = Some(("AddressNotUsable", message));
                continue;
            }
            if !addresses.own.contains(&own) {
                addresses.own.push(own);
            }
            addresses.shown.push(shown(one));
        }
        addresses
    }
}

fn shown(address: &str) -> Value {
    let kind = if address.parse::<IpAddr>().is_ok() { "IPAddress" } else { "Hostname" };
    json!({"type": kind, "value": address})
}
