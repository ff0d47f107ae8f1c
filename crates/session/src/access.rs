//! `allow` and `deny`: who may come, by address. The first rule that is about a client decides; a
//! client of a Unix socket has no address but `unix:`.

use std::net::IpAddr;

use conf::{Cidr, Directive, Load, Result, Value};

/// What a rule says of those it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may come.
    Allow,
    /// They may not.
    Deny,
}

/// `allow` and `deny` in their order.
#[derive(Clone, Default)]
pub struct Rules {
    v4: Vec<Rule<u32>>,
    v6: Vec<Rule<u128>>,
    /// For clients of Unix sockets, who are all alike.
    unix: Option<Verdict>,
}

/// For addresses that are `network` where `mask` has ones.
#[derive(Clone, Copy)]
struct Rule<A> {
    network: A,
    mask: A,
    verdict: Verdict,
}

impl Value for Rules {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut rules = Self::default();
        rules.repeat(from, load)?;
        Ok(rules)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let verdict = if &*from.name.text == b"deny" { Verdict::Deny } else { Verdict::Allow };
        let word = from.arg(0);
        match &*word.text {
            b"all" => {
                self.add(Cidr::V4(0, 0), verdict);
                self.add(Cidr::V6(0, 0), verdict);
                self.unix.get_or_insert(verdict);
            }
            b"unix:" => {
                self.unix.get_or_insert(verdict);
            }
            network => {
                let invalid = || from.error_at(word, format!("invalid parameter \"{word}\""));
                let (network, low_bits) = Cidr::parse(network).ok_or_else(invalid)?;
                if low_bits {
                    let message = format!("low address bits of {word} are meaningless");
                    load.warn(from.error_at(word, message));
                }
                self.add(network, verdict);
            }
        }
        Ok(())
    }
}

impl Rules {
    fn add(&mut self, network: Cidr, verdict: Verdict) {
        match network {
            Cidr::V4(network, bits) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                self.v4.push(Rule { network, mask, verdict });
            }
            Cidr::V6(network, bits) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                self.v6.push(Rule { network, mask, verdict });
            }
        }
    }

    /// What the first rule about a client says; without an address it came by a Unix socket. An
    /// IPv4 address in IPv6's form counts as IPv4, unless no rule is about IPv4.
    pub fn verdict(&self, ip: Option<IpAddr>) -> Option<Verdict> {
        let ip = match ip {
            None => return self.unix,
            Some(ip) if self.v4.is_empty() => ip,
            Some(ip) => ip.to_canonical(),
        };
        match ip {
            IpAddr::V4(ip) => {
                let ip = ip.to_bits();
                self.v4.iter().find(|rule| ip & rule.mask == rule.network).map(|rule| rule.verdict)
            }
            IpAddr::V6(ip) => {
                let ip = ip.to_bits();
                self.v6.iter().find(|rule| ip & rule.mask == rule.network).map(|rule| rule.verdict)
            }
        }
    }
}
