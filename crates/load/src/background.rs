//! Options of the connections beside the measured load.

use net::Address;

use crate::requests::PreparedRequest;
use crate::run::plan::BackgroundPlan;
use crate::units;

const CONNECTIONS_MAX: u64 = 1_000_000;
/// The rate of slow clients by default, in bytes per second.
const SLOW_BYTES_PER_S: u64 = 64 * 1024;

/// `--idle` and `--slow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackgroundOptions {
    pub(crate) idle: u64,
    slow: u64,
    slow_bytes_per_s: u64,
}

impl BackgroundOptions {
    /// `100`.
    pub(crate) fn set_idle(&mut self, text: &str) -> Result<(), String> {
        self.idle = connections(text)?;
        Ok(())
    }

    /// `100`, `100,64k`.
    pub(crate) fn set_slow(&mut self, text: &str) -> Result<(), String> {
        let (count, rate) = match text.split_once(',') {
            Some((count, rate)) => (count, units::size(rate.trim())?),
            None => (text, SLOW_BYTES_PER_S),
        };
        if rate == 0 {
            return Err("the rate must be more than 0".into());
        }
        (self.slow, self.slow_bytes_per_s) = (connections(count)?, rate);
        Ok(())
    }

    pub(crate) fn connections(self) -> u64 {
        self.idle + self.slow
    }

    pub(crate) fn plan(self, request: PreparedRequest) -> BackgroundPlan {
        let Self { idle, slow, slow_bytes_per_s } = self;
        BackgroundPlan { idle, slow, slow_bytes_per_s, request }
    }

    /// Checks that `sources` addresses have ports for idle connections and `others`, each of them
    /// `ports`.
    pub(crate) fn check_ports(
        self,
        server: &Address,
        others: u64,
        sources: usize,
        ports: u64,
    ) -> Result<(), String> {
        let connections = others + self.connections();
        let ports = ports.saturating_mul(sources.max(1) as u64);
        if self.idle == 0 || matches!(server, Address::Unix(_)) || connections <= ports {
            return Ok(());
        }
        Err(format!(
            "{connections} connections need more local ports than the {ports} of the source \
             addresses; name more with --from, such as --from 127.0.0.2,127.0.0.3"
        ))
    }
}

fn connections(text: &str) -> Result<u64, String> {
    let count = units::count(text)?;
    match count {
        1..=CONNECTIONS_MAX => Ok(count),
        _ => Err(format!("{count} is not between 1 and {CONNECTIONS_MAX}")),
    }
}

/// The number of local ports of an address.
pub(crate) fn local_ports() -> u64 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    range.ok().and_then(|range| ports_in(&range)).unwrap_or(u64::from(u16::MAX))
}

/// `32768 60999`
fn ports_in(range: &str) -> Option<u64> {
    let mut ends = range.split_whitespace().map(|end| end.parse::<u64>().ok());
    let (first, last) = (ends.next()??, ends.next()??);
    last.checked_add(1)?.checked_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_clients_have_a_rate() {
        let slow = |text| {
            let mut options = BackgroundOptions::default();
            options.set_slow(text).map(|()| (options.slow, options.slow_bytes_per_s))
        };
        assert_eq!((slow("5"), slow("1k,2k")), (Ok((5, 65_536)), Ok((1000, 2048))));
        for wrong in ["", "0", "5,0", "5,", "5,x", "2m"] {
            assert!(slow(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn idle_connections_need_ports() {
        let mut options = BackgroundOptions::default();
        options.set_idle("100").unwrap();
        let server = Address::Ip("127.0.0.1:80".parse().unwrap());
        let check = |sources, ports| options.check_ports(&server, 10, sources, ports);
        assert!(check(0, 110).is_ok() && check(2, 55).is_ok());
        let told = check(2, 54).unwrap_err();
        assert!(told.starts_with("110 connections need more local ports than the 108 "), "{told}");
        assert_eq!((ports_in("32768\t60999\n"), ports_in("9 1")), (Some(28_232), None));
    }
}
