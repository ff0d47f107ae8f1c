//! The notation of trusted proxies: addresses, networks, `unix:`, and host names.

use std::net::ToSocketAddrs;

use conf::{Cidr, Directive, Load, Result, Value};

use crate::forwarded::Proxies;

impl Value for Proxies {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut proxies = Self::default();
        proxies.repeat(from, load)?;
        Ok(proxies)
    }

    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let word = from.arg(0);
        if &*word.text == b"unix:" {
            self.unix = true;
            return Ok(());
        }
        if let Some((network, low_bits)) = Cidr::parse(&word.text) {
            if low_bits {
                let message = format!("low address bits of {word} are meaningless");
                load.warn(from.error_at(word, message));
            }
            self.networks.push(network);
            return Ok(());
        }
        let host = std::str::from_utf8(&word.text).ok();
        let found = host.and_then(|host| (host, 0).to_socket_addrs().ok());
        let found = found.ok_or_else(|| {
            from.error_at(word, format!("host not found in set_real_ip_from \"{word}\""))
        });
        let found = load.of_this_machine(found)?.into_iter().flatten();
        self.networks.extend(found.map(|address| Cidr::of(address.ip())));
        Ok(())
    }
}
