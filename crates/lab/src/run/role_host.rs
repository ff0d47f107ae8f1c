//! `--host ROLE=PLACE`: the machine of a part of the study.

use std::net::Ipv4Addr;

use crate::agent::AgentPlace;
use crate::hosts::HostRole;

/// The machine of a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoleHost {
    pub(super) role: HostRole,
    /// `None`: this machine.
    pub(super) place: Option<AgentPlace>,
    /// The address at which the other parts reach it, if it is not that of the agent.
    pub(super) address: Option<Ipv4Addr>,
}

impl RoleHost {
    /// Reads `server=10.0.0.3:7700`, or `server=ssh:a,192.168.7.3`.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let refused = |why: &str| format!("--host {word}: {why}");
        let (role, rest) = word.split_once('=').ok_or_else(|| refused(EXPECTED))?;
        let role = HostRole::ALL.into_iter().find(|known| known.name() == role);
        let role = role.ok_or_else(|| refused("the parts are client, server and backend"))?;
        let (place, address) = rest.split_once(',').map_or((rest, None), |(p, a)| (p, Some(a)));
        let place = match place {
            "here" => None,
            place => Some(AgentPlace::parse(place).map_err(|why| refused(&why))?),
        };
        let address = address.map(|address| {
            address.parse().map_err(|_| refused(&format!("{address} is no IPv4 address")))
        });
        Ok(Self { role, place, address: address.transpose()? })
    }
}

const EXPECTED: &str = "expected a part and its place, such as server=ssh:10.0.0.2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_a_place_and_perhaps_an_address() {
        let server = RoleHost::parse("server=10.0.0.3:7700,192.168.7.3").unwrap();
        assert_eq!(server.role, HostRole::Server);
        assert_eq!(server.place.map(|place| place.to_string()).as_deref(), Some("10.0.0.3:7700"));
        assert_eq!(server.address, Some(Ipv4Addr::new(192, 168, 7, 3)));
        let here = RoleHost::parse("backend=here,10.0.0.1").unwrap();
        assert!(here.place.is_none() && here.address.is_some());
        for (word, part) in [
            ("server", "expected a part and its place"),
            ("proxy=ssh:a", "the parts are client, server and backend"),
            ("server=10.0.0.3", "is neither ssh:HOST nor an address"),
            ("server=here,a", "a is no IPv4 address"),
        ] {
            let told = RoleHost::parse(word).err().unwrap_or_default();
            assert!(told.starts_with(&format!("--host {word}: ")) && told.contains(part), "{told}");
        }
    }
}
