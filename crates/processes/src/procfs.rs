//! What the kernel accounts to processes: CPU time, memory, children (proc(5)).

use std::{fs, io};

/// Unit of the times in /proc/PID/stat; fixed by the kernel's ABI on the machines we know.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process and all that descend from it.
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

/// How long a process and its descendants have been on a processor so far, in seconds: the
/// scheduler's own account, in nanoseconds.
pub fn cpu_s(pid: u32) -> Result<f64, String> {
    let own = cpu_of_one_s(pid).map_err(|err| format!("/proc/{pid}/task: {err}"))?;
    let descendants = family(pid).into_iter().skip(1);
    // A descendant that has ended meanwhile has no account.
    Ok(own + descendants.filter_map(|pid| cpu_of_one_s(pid).ok()).sum::<f64>())
}

fn cpu_of_one_s(pid: u32) -> io::Result<f64> {
    let mut seconds = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // Nor has a thread.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
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

/// How long the children of this process that it has waited for were on a processor, in seconds.
pub fn cpu_of_the_ended_s() -> Result<f64, String> {
    const PATH: &str = "/proc/self/stat";
    let text = fs::read_to_string(PATH).map_err(|err| format!("{PATH}: {err}"))?;
    times_of_children_s(&text).ok_or_else(|| format!("{PATH}: {text}"))
}

/// The name may hold spaces and brackets, so fields are counted from its last bracket.
fn times_of_children_s(stat: &str) -> Option<f64> {
    const FIELDS_BEFORE: usize = 13;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(FIELDS_BEFORE);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(seconds()? + seconds()?)
}

/// Bytes a process and its descendants have taken, what they share counted once: the proportional
/// set size without pages of files, whose share also hangs on who else runs the same program.
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

/// How many TCP sockets of IPv4 have a port at either end, without those that listen and those in
/// TIME_WAIT.
pub fn sockets_in_use(port: u16) -> Result<usize, String> {
    let table =
        fs::read_to_string("/proc/net/tcp").map_err(|err| format!("/proc/net/tcp: {err}"))?;
    Ok(table.lines().filter(|line| is_in_use(line, port)).count())
}

/// `sl local remote state ...`, where 06 is TIME_WAIT and 0A is LISTEN.
fn is_in_use(line: &str, port: u16) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, state, ..] = words[..] else { return false };
    let port = format!(":{port:04X}");
    !matches!(state, "06" | "0A") && (local.ends_with(&port) || remote.ends_with(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 300 50 20 0 1 0 99";
        assert_eq!(times_of_children_s(stat), Some(3.5));
        assert_eq!(times_of_children_s("7 (a) S 1"), None);
    }

    #[test]
    fn switches_of_both_kinds_are_counted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(switches_of(status), 155);
    }

    #[test]
    fn sockets_of_a_port_are_told_apart_by_their_state() {
        let line =
            |state: &str| format!("0: 0100007F:1F90 0100007F:C350 {state} 00000000:00000000");
        assert!(is_in_use(&line("01"), 8080) && is_in_use(&line("08"), 50000));
        assert!(!is_in_use(&line("06"), 8080) && !is_in_use(&line("0A"), 8080));
        assert!(!is_in_use(&line("01"), 8081) && !is_in_use("sl local_address", 8080));
    }

    #[test]
    fn what_this_process_does_is_counted() {
        let (pid, begin) = (std::process::id(), std::time::Instant::now());
        let before = cpu_s(pid).expect("its own account");
        while cpu_s(pid).expect("its own account") <= before {
            assert!(begin.elapsed().as_secs() < 10);
        }
    }

    #[test]
    fn memory_is_what_was_taken_not_what_was_mapped() {
        let rollup = "55c0 [rollup]\nRss:  12 kB\nPss:    8 kB\nPss_Anon:    2 kB\n\
                      Pss_File:    5 kB\nPss_Shmem:   1 kB\n";
        assert_eq!(taken(rollup), Some(3.0 * 1024.0));
        assert_eq!(taken("Pss: 8 kB\n"), None);
    }

    #[test]
    fn a_family_has_its_grandchildren() {
        // They end when their standard input does.
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
