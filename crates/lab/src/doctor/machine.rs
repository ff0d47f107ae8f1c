//! The kernel's settings on this machine, and the limits of this process. A value that cannot be
//! read is unknown; checks that need it find nothing.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, Default)]
pub(super) struct MachineLimits {
    /// Processors that this process may run on.
    pub(super) processors: Option<u64>,
    /// The longest accept queue: `net.core.somaxconn`.
    pub(super) somaxconn: Option<u64>,
    /// The longest queue of handshakes under way: `net.ipv4.tcp_max_syn_backlog`.
    pub(super) syn_backlog: Option<u64>,
    /// Whether handshakes beyond that queue are answered with cookies: `net.ipv4.tcp_syncookies`.
    pub(super) has_syn_cookies: Option<bool>,
    /// The number of local ports for connections to one address.
    pub(super) local_ports: Option<u64>,
    /// The descriptors that this process may open (the soft limit).
    pub(super) files: Option<u64>,
    /// The highest number to which it can raise that limit (the hard limit).
    pub(super) files_max: Option<u64>,
    /// The descriptors that all processes together may open: `fs.file-max`.
    pub(super) files_of_all: Option<u64>,
    /// Connections that the firewall can track: `net.netfilter.nf_conntrack_max`.
    pub(super) tracked_connections: Option<u64>,
    /// The frequency governor of the first processor.
    pub(super) governor: Option<String>,
    /// The time of the machine's clock.
    pub(super) seconds_since_1970: Option<i64>,
}

impl MachineLimits {
    /// Reads the values below `root`, which is `/` except in tests.
    pub(super) fn read(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let sysctl = |name: &str| text(&format!("proc/sys/{name}"));
        let number = |name: &str| sysctl(name)?.trim().parse().ok();
        let limits = text("proc/self/limits").unwrap_or_default();
        let (files, files_max) = open_files(&limits).unzip();
        Self {
            processors: text("proc/self/status").as_deref().and_then(processors),
            somaxconn: number("net/core/somaxconn"),
            syn_backlog: number("net/ipv4/tcp_max_syn_backlog"),
            has_syn_cookies: number("net/ipv4/tcp_syncookies").map(|cookies: u64| cookies != 0),
            local_ports: sysctl("net/ipv4/ip_local_port_range").as_deref().and_then(ports),
            files,
            files_max,
            files_of_all: number("fs/file-max"),
            tracked_connections: number("net/netfilter/nf_conntrack_max"),
            governor: text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|governor| governor.trim().to_owned()),
            seconds_since_1970: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .and_then(|since| i64::try_from(since.as_secs()).ok()),
        }
    }
}

/// `Cpus_allowed_list: 0-3,8`
fn processors(status: &str) -> Option<u64> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split(',').map(range).sum()
}

/// The number of processors in `3` or `0-3`.
fn range(text: &str) -> Option<u64> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let [first, last] = [first, last].map(|number| number.parse::<u64>().ok());
    Some(last?.checked_sub(first?)? + 1)
}

/// `32768 60999`
fn ports(text: &str) -> Option<u64> {
    let mut ends = text.split_whitespace().map(|port| port.parse::<u64>().ok());
    let (first, last) = (ends.next()??, ends.next()??);
    Some(last.checked_sub(first)? + 1)
}

/// `Max open files            1024                 524288               files`
fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_whitespace();
    Some((limit(words.next()?)?, limit(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_formats_are_read() {
        assert_eq!(processors("Name:\tx\nCpus_allowed_list:\t0-3,8,10-11\n"), Some(7));
        assert_eq!(ports("32768\t60999\n"), Some(28_232));
        let limits = "Limit  Soft  Hard  Units\nMax open files   1024   unlimited   files\n";
        assert_eq!(open_files(limits), Some((1024, u64::MAX)));
    }

    #[test]
    fn missing_values_are_unknown() {
        let machine = MachineLimits::read(Path::new("/nowhere"));
        assert_eq!((machine.processors, machine.files, machine.somaxconn), (None, None, None));
        for text in ["", "3-1", "x", "1-"] {
            assert_eq!(processors(&format!("Cpus_allowed_list:\t{text}")), None, "{text}");
            assert_eq!(ports(text), None);
        }
        assert_eq!(open_files("Max open files 1024"), None);
    }

    #[test]
    fn this_machine_has_processors_and_files() {
        let machine = MachineLimits::read(Path::new("/"));
        assert!(machine.processors > Some(0) && machine.files > Some(0));
    }
}
