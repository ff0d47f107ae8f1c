//! `allow` and `deny`: access by address. The first rule that matches a client decides; a client of
//! a Unix socket has no address but `unix:`.

use std::net::IpAddr;

use conf::{Cidr, Directive, Load, Result, Value};

/// The effect of a rule on matching clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// Access is allowed.
    Allow,
    /// Access is denied.
    Deny,
}

/// `allow` and `deny` in their order.
#[derive(Clone, Default)]
pub struct AccessRules {
    v4: Vec<AccessRule<u32>>,
    v6: Vec<AccessRule<u128>>,
    /// For clients of Unix sockets.
    unix: Option<RuleVerdict>,
}

/// Matches addresses that equal `network` in the bits of `mask`.
#[derive(Clone, Copy)]
struct AccessRule<A> {
    network: A,
    mask: A,
    verdict: RuleVerdict,
}

impl Value for AccessRules {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut rules = Self::default();
        rules.repeat(from, load)?;
        Ok(rules)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let verdict =
            if &*from.name.text == b"deny" { RuleVerdict::Deny } else { RuleVerdict::Allow };
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

impl AccessRules {
    /// Adds a rule that allows an address, a network or `all`; `None`: it is neither.
    pub fn allow(&mut self, word: &[u8]) -> Option<()> {
        match word {
            b"all" => {
                self.add(Cidr::V4(0, 0), RuleVerdict::Allow);
                self.add(Cidr::V6(0, 0), RuleVerdict::Allow);
                self.unix.get_or_insert(RuleVerdict::Allow);
            }
            b"unix:" => _ = self.unix.get_or_insert(RuleVerdict::Allow),
            network => self.add(Cidr::parse(network)?.0, RuleVerdict::Allow),
        }
        Some(())
    }

    fn add(&mut self, network: Cidr, verdict: RuleVerdict) {
        match network {
            Cidr::V4(network, bits) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                self.v4.push(AccessRule { network, mask, verdict });
            }
            Cidr::V6(network, bits) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                self.v6.push(AccessRule { network, mask, verdict });
            }
        }
    }

    /// The verdict of the first matching rule; a client without an address uses a Unix socket. An
    /// IPv4 address in IPv6's form counts as IPv4, unless no rule is about IPv4.
    pub fn verdict(&self, ip: Option<IpAddr>) -> Option<RuleVerdict> {
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
