//! The kernel's accounts of processes: CPU time, memory, children (proc(5)).

use std::net::Ipv4Addr;
use std::{fs, io};

/// Unit of the times in /proc/PID/stat; fixed by the kernel's ABI on all known machines.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process and all its descendants.
pub fn family(pid: u32) -> Vec<u32> {
    let mut members = vec![pid];
    let mut next = 0;
    while next < members.len() {
        members.extend(children(members[next]));
        next += 1;
    }
    members
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// CPU time of a process and its descendants so far, in seconds, from the scheduler's account in
/// nanoseconds.
pub fn cpu_s(pid: u32) -> Result<f64, String> {
    let own = cpu_of_one_s(pid).map_err(|err| format!("/proc/{pid}/task: {err}"))?;
    let descendants = family(pid).into_iter().skip(1);
    // A descendant that has ended meanwhile has no account.
    Ok(own + descendants.filter_map(|pid| cpu_of_one_s(pid).ok()).sum::<f64>())
}

fn cpu_of_one_s(pid: u32) -> io::Result<f64> {
    scheduled_s(pid, 0)
}

/// Time for which a process and its descendants could run but waited for a processor so far, in
/// seconds.
pub fn run_delay_s(pid: u32) -> f64 {
    family(pid).into_iter().filter_map(|pid| scheduled_s(pid, 1).ok()).sum()
}

/// A field of all threads' schedstat: `CPU-NANOSECONDS WAIT-NANOSECONDS SLICES`.
fn scheduled_s(pid: u32, field: usize) -> io::Result<f64> {
    let mut seconds = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // A thread that has ended meanwhile has none either.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let ns = text.split_whitespace().nth(field).and_then(|ns| ns.parse::<f64>().ok());
        seconds += ns.unwrap_or_default() / 1e9;
    }
    Ok(seconds)
}

/// How often a process and its descendants have left a processor so far.
pub fn switches(pid: u32) -> u64 {
    let statuses = family(pid).into_iter().flat_map(|pid| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
    });
    statuses.map(|status| switches_of(&status)).sum()
}

/// `voluntary_ctxt_switches: 150` and `nonvoluntary_ctxt_switches: 545`
fn switches_of(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| line.split_once("_ctxt_switches:"));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

/// CPU time of this process's children that have ended and were waited for, in seconds.
pub fn cpu_of_the_ended_s() -> Result<f64, String> {
    const PATH: &str = "/proc/self/stat";
    let text = fs::read_to_string(PATH).map_err(|err| format!("{PATH}: {err}"))?;
    times_of_children_s(&text).ok_or_else(|| format!("{PATH}: {text}"))
}

/// The name may contain spaces and brackets, so fields are counted from its last bracket.
fn times_of_children_s(stat: &str) -> Option<f64> {
    const FIELDS_BEFORE: usize = 13;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(FIELDS_BEFORE);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(seconds()? + seconds()?)
}

/// Memory of a process and its descendants in bytes, with shared memory counted once: the
/// proportional set size without pages of files, whose share depends on other processes of the same
/// program.
pub fn memory(pid: u32) -> Result<f64, String> {
    let mut bytes = 0.0;
    for member in family(pid) {
        let path = format!("/proc/{member}/smaps_rollup");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // A descendant has ended meanwhile.
            Err(_) if member != pid => continue,
            Err(err) => return Err(format!("{path}: {err}")),
        };
        bytes +=
            taken(&text).ok_or_else(|| format!("{path} has no Pss_Anon: Linux 5.9 is needed"))?;
    }
    Ok(bytes)
}

fn taken(rollup: &str) -> Option<f64> {
    let kilobytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    };
    Some((kilobytes("Pss_Anon:")? + kilobytes("Pss_Shmem:")?) * 1024.0)
}

/// The number of descriptors that a process and its descendants have open.
pub fn descriptors(pid: u32) -> usize {
    let count = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    family(pid).iter().map(count).sum()
}

/// Ticks of CPU time of a process and its descendants, in user space and in the kernel.
pub fn ticks(pid: u32) -> (u64, u64) {
    let stats = family(pid).into_iter();
    let stats = stats.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    let both = stats.filter_map(|stat| own_ticks(&stat));
    both.fold((0, 0), |sum, (user, system)| (sum.0 + user, sum.1 + system))
}

fn own_ticks(stat: &str) -> Option<(u64, u64)> {
    const FIELDS_BEFORE: usize = 11;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(FIELDS_BEFORE);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A TCP socket in the kernel's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSocket {
    pub local: u16,
    /// The peer's port.
    pub remote: u16,
    pub state: SocketState,
}

/// States of TCP sockets that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// Closed, and kept for late segments.
    TimeWait,
    /// Waits for connections.
    Listen,
    /// Any other state.
    Other,
}

/// The IPv4 TCP sockets in the network namespace of a process.
pub fn sockets(pid: u32) -> Result<Vec<ListedSocket>, String> {
    let path = format!("/proc/{pid}/net/tcp");
    let table = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    Ok(table.lines().filter_map(listed).collect())
}

/// `sl local remote state ...`, with ports after a colon.
fn listed(line: &str) -> Option<ListedSocket> {
    let mut words = line.split_whitespace().skip(1);
    let mut port = || u16::from_str_radix(words.next()?.rsplit_once(':')?.1, 16).ok();
    let (local, remote) = (port()?, port()?);
    let state = match words.next()? {
        "06" => SocketState::TimeWait,
        "0A" => SocketState::Listen,
        _ => SocketState::Other,
    };
    Some(ListedSocket { local, remote, state })
}

/// Whether a socket listens on a port in the network namespace of a process.
pub fn listens(pid: u32, port: u16) -> bool {
    let sockets = sockets(pid).unwrap_or_default();
    sockets.iter().any(|socket| (socket.local, socket.state) == (port, SocketState::Listen))
}

/// The number of IPv4 TCP sockets with this port at either end, except listening ones and those in
/// TIME_WAIT.
pub fn sockets_in_use(port: u16) -> Result<usize, String> {
    let is_in_use = |socket: &&ListedSocket| {
        !matches!(socket.state, SocketState::Listen | SocketState::TimeWait)
            && (socket.local == port || socket.remote == port)
    };
    Ok(sockets(std::process::id())?.iter().filter(is_in_use).count())
}

/// Numbers of TCP sockets in a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// IPv4 sockets in use, including listening ones.
    pub in_use: usize,
    /// Sockets in TIME_WAIT.
    pub time_wait: usize,
}

/// The counts of a process's namespace. The kernel maintains them: unlike for a list, the cost does
/// not depend on the number of sockets.
pub fn socket_counts(pid: u32) -> Result<SocketCounts, String> {
    let path = format!("/proc/{pid}/net/sockstat");
    let text = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    Ok(counts_in(&text))
}

/// `TCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1`
fn counts_in(sockstat: &str) -> SocketCounts {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = |name: &str| {
        let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
        pair.and_then(|pair| pair[1].parse().ok()).unwrap_or_default()
    };
    SocketCounts { in_use: of("inuse"), time_wait: of("tw") }
}

/// The established TCP connections in a process's namespace, of IPv4 and IPv6. The kernel counts
/// those whose other end has closed (CLOSE_WAIT) as well.
pub fn established(pid: u32) -> Result<usize, String> {
    let path = format!("/proc/{pid}/net/snmp");
    let text = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    Ok(established_in(&text))
}

/// `Tcp: ... CurrEstab ...`, and a second line with the numbers.
fn established_in(snmp: &str) -> usize {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "CurrEstab");
    found.and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

/// Traffic of the network interfaces in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received bytes.
    pub bytes_in: u64,
    /// Received packets, as the interface counts them: large ones may be split later.
    pub packets_in: u64,
    /// Sent bytes.
    pub bytes_out: u64,
    /// Sent packets.
    pub packets_out: u64,
}

/// The traffic of some interfaces in the network namespace of a process.
pub fn traffic(pid: u32, counts: impl Fn(&str) -> bool) -> Result<Traffic, String> {
    let path = format!("/proc/{pid}/net/dev");
    let table = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    Ok(traffic_in(&table, counts))
}

/// `name: bytes packets errs drop fifo frame compressed multicast bytes packets ...`
fn traffic_in(table: &str, counts: impl Fn(&str) -> bool) -> Traffic {
    let interfaces = table.lines().filter_map(|line| line.split_once(':'));
    let counted = interfaces.filter(|(name, _)| counts(name.trim()));
    counted.fold(Traffic::default(), |sum, (_, words)| {
        let words: Vec<u64> = words.split_whitespace().flat_map(str::parse).collect();
        let at = |place: usize| words.get(place).copied().unwrap_or_default();
        Traffic {
            bytes_in: sum.bytes_in + at(0),
            packets_in: sum.packets_in + at(1),
            bytes_out: sum.bytes_out + at(8),
            packets_out: sum.packets_out + at(9),
        }
    })
}

/// The network interface through which an address is reached, in the network namespace of a
/// process.
pub fn interface(pid: u32, address: Ipv4Addr) -> Option<String> {
    if address.is_loopback() {
        return Some("lo".to_owned());
    }
    interface_in(&fs::read_to_string(format!("/proc/{pid}/net/route")).ok()?, address)
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`, with addresses as the machine has
/// their bytes in memory. The most specific route counts.
fn interface_in(table: &str, address: Ipv4Addr) -> Option<String> {
    let address = u32::from_ne_bytes(address.octets());
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| u32::from_str_radix(words.get(place)?, 16).ok();
        let (destination, mask) = (number(1)?, number(7)?);
        (address & mask == destination).then(|| (mask.count_ones(), words[0].to_owned()))
    };
    table.lines().filter_map(route).max_by_key(|(bits, _)| *bits).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_after_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 300 50 20 0 1 0 99";
        assert_eq!(times_of_children_s(stat), Some(3.5));
        assert_eq!(own_ticks(stat), Some((300 - 150, 25)));
        assert_eq!(times_of_children_s("7 (a) S 1"), None);
    }

    #[test]
    fn switches_of_both_kinds_are_counted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(switches_of(status), 155);
    }

    #[test]
    fn sockets_are_listed_with_their_states() {
        let line =
            |state: &str| format!("0: 0100007F:1F90 0100007F:C350 {state} 00000000:00000000");
        let socket = |state| Some(ListedSocket { local: 8080, remote: 50000, state });
        assert_eq!(listed(&line("06")), socket(SocketState::TimeWait));
        assert_eq!(listed(&line("0A")), socket(SocketState::Listen));
        assert_eq!(listed(&line("01")), socket(SocketState::Other));
        assert_eq!(listed("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn the_kernels_counts_of_sockets_are_read() {
        let text =
            "sockets: used 9\nTCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1\nUDP: inuse 1 mem 0\n";
        assert_eq!(counts_in(text), SocketCounts { in_use: 5, time_wait: 3 });
        assert_eq!(counts_in(""), SocketCounts::default());
    }

    #[test]
    fn established_connections_are_read() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin CurrEstab InSegs\nTcp: 200 17 9\n";
        assert_eq!(established_in(text), 17);
        assert_eq!(established_in("Tcp: CurrEstab\n"), 0);
    }

    #[test]
    fn traffic_is_added_up() {
        let table = "Inter-| Receive | Transmit\n face |bytes packets\n\
                     lo: 10 2 0 0 0 0 0 0 20 3 0\n a1: 100 20 0 0 0 0 0 0 200 30 0\n";
        let all = Traffic { bytes_in: 110, packets_in: 22, bytes_out: 220, packets_out: 33 };
        assert_eq!(traffic_in(table, |_| true), all);
        assert_eq!(traffic_in(table, |name| name == "lo").packets_out, 3);
        assert_eq!(traffic_in("", |_| true), Traffic::default());
    }

    #[test]
    fn the_most_specific_route_names_the_interface() {
        let number = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let route = |name: &str, to, mask| {
            format!("{name} {} 00000000 0003 0 0 0 {} 0 0 0\n", number(to), number(mask))
        };
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask\n".to_owned()
            + &route("eth0", [0, 0, 0, 0], [0, 0, 0, 0])
            + &route("eth1", [10, 0, 0, 0], [255, 255, 255, 0]);
        let of = |address| interface_in(&table, Ipv4Addr::from(address));
        assert_eq!(of([10, 0, 0, 7]).as_deref(), Some("eth1"));
        assert_eq!(of([10, 0, 1, 7]).as_deref(), Some("eth0"));
        assert_eq!(interface_in("", Ipv4Addr::new(10, 0, 0, 7)), None);
    }

    #[test]
    fn a_listening_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert!(listens(std::process::id(), port));
        drop(listener);
        // A child that another test starts has the socket until it executes its program.
        let dropped = std::time::Instant::now();
        while listens(std::process::id(), port) {
            assert!(dropped.elapsed().as_secs() < 10);
            std::thread::yield_now();
        }
    }

    #[test]
    fn cpu_time_of_this_process_is_counted() {
        let (pid, begin) = (std::process::id(), std::time::Instant::now());
        let before = cpu_s(pid).expect("its own account");
        while cpu_s(pid).expect("its own account") <= before {
            assert!(begin.elapsed().as_secs() < 10);
        }
    }

    #[test]
    fn waits_for_a_processor_are_read() {
        // Every process has waited before it ran for the first time.
        assert!(run_delay_s(std::process::id()) > 0.0);
    }

    #[test]
    fn memory_excludes_pages_of_files() {
        let rollup = "55c0 [rollup]\nRss:  12 kB\nPss:    8 kB\nPss_Anon:    2 kB\n\
                      Pss_File:    5 kB\nPss_Shmem:   1 kB\n";
        assert_eq!(taken(rollup), Some(3.0 * 1024.0));
        assert_eq!(taken("Pss: 8 kB\n"), None);
    }

    #[test]
    fn a_family_includes_grandchildren() {
        // They end when their standard input is closed.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'cat; :'; :"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let begin = std::time::Instant::now();
        while family(shell.id()).len() < 3 && begin.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        let members = family(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("a child of ours");
        assert_eq!(members.len(), 3);
    }
}
