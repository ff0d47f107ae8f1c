//! Workers: their number, their descriptors, and the processor's frequency.

use super::{ExaminedConfig, FindingList, MachineLimits};

/// The default of `worker_connections` in nginx and Weir.
const CONNECTIONS: u64 = 512;
/// Descriptors of a worker besides its connections: listening sockets, logs, epoll sets.
const DESCRIPTORS_SPARE: u64 = 32;

/// With fewer workers than processors some processors idle; with more, workers share processors.
pub(super) fn count(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let Some(processors) = machine.processors else { return };
    let main = conf.main();
    let workers = match main.word("worker_processes").as_deref() {
        Some("auto") => return,
        Some(number) => number.parse().unwrap_or(1),
        None => 1,
    };
    let why = match workers.cmp(&processors) {
        std::cmp::Ordering::Less => "a worker uses one processor at most, so the others are idle",
        std::cmp::Ordering::Equal => return,
        std::cmp::Ordering::Greater => {
            "workers that share a processor take turns on it, which costs context switches and time"
        }
    };
    findings.add_at(
        main.setting("worker_processes").as_slice(),
        format!("worker_processes is {workers}; {processors} processors can be used"),
        why,
        "worker_processes auto;".to_owned(),
    );
}

/// Each connection takes a descriptor, and a second one for the file that it sends.
pub(super) fn descriptors(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let main = conf.main();
    let events = conf.events();
    let connections = events.as_ref().and_then(|events| events.number("worker_connections"));
    let connections = connections.unwrap_or(CONNECTIONS);
    let each = if conf.roots().is_empty() { 1 } else { 2 };
    let wanted = (connections + DESCRIPTORS_SPARE).max(connections * each);
    let raised = main.number("worker_rlimit_nofile");
    let Some(limit) = raised.or(machine.files).filter(|limit| *limit < wanted) else { return };
    let by = if raised.is_some() { "worker_rlimit_nofile" } else { "ulimit -n" };
    let hard = match machine.files_max {
        Some(max) if max < wanted => format!(" (the hard limit is {max}: raise it as well)"),
        _ => String::new(),
    };
    let settings = events.iter().filter_map(|events| events.setting("worker_connections"));
    let settings: Vec<_> = settings.chain(main.setting("worker_rlimit_nofile")).collect();
    findings.add_at(
        &settings,
        format!(
            "worker_connections is {connections}, but a worker may open {limit} descriptors ({by})"
        ),
        "once they are used up, connections are refused with \"Too many open files\"; a file that \
         is sent needs one beside its connection",
        format!("worker_rlimit_nofile {};{hard}", wanted.next_power_of_two()),
    );
}

/// All workers together take descriptors from one supply.
pub(super) fn descriptors_of_all(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let (Some(limit), Some(processors)) = (machine.files_of_all, machine.processors) else {
        return;
    };
    let (main, events) = (conf.main(), conf.events());
    let workers = match main.word("worker_processes").as_deref() {
        Some("auto") => processors,
        number => number.and_then(|number| number.parse().ok()).unwrap_or(1),
    };
    let connections = events.as_ref().and_then(|events| events.number("worker_connections"));
    let connections = connections.unwrap_or(CONNECTIONS);
    let wanted = workers.saturating_mul(connections);
    if limit >= wanted {
        return;
    }
    let setting = events.iter().filter_map(|events| events.setting("worker_connections"));
    let settings: Vec<_> = setting.chain(main.setting("worker_processes")).collect();
    findings.add_at(
        &settings,
        format!(
            "worker_connections is {connections}, and there are {workers} workers, but fs.file-max \
             is {limit}"
        ),
        "it limits the descriptors of all processes together; beyond it, connections are refused \
         with \"Too many open files in system\", and other programs suffer, too",
        format!("sysctl -w fs.file-max={}", wanted.saturating_mul(2)),
    );
}

/// A processor that saves power replies later.
pub(super) fn governor(
    machine: &MachineLimits,
    _: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    if let Some(governor @ "powersave") = machine.governor.as_deref() {
        findings.add(
            format!("the frequency of the processor is chosen by \"{governor}\""),
            "it rises only after load has come, so short bursts are served slowly",
            "cpupower frequency-set -g performance".to_owned(),
        );
    }
}
