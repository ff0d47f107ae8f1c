//! The hosts of a study: network namespaces joined by veth pairs, or, without root, loopback
//! addresses.

mod namespace;
mod row;

use std::fs;

use namespace::NetworkNamespace;
pub(crate) use row::{HostRole, RowHosts, counts};

use crate::study::{RowSetting, Study};

/// The kind of hosts that this machine can have.
pub(crate) enum StudyNetwork {
    /// The congestion control of all hosts.
    Namespaces(&'static str),
    /// The reason.
    Loopback(String),
    /// The machines of agents, and where each part is.
    Agents(String),
}

impl StudyNetwork {
    /// Namespaces if this process may create them. Loopback addresses cannot serve rows that need
    /// hosts of their own: with `only_loopback` such rows are left out, otherwise they are an
    /// error.
    pub(crate) fn choose(study: &mut Study, only_loopback: bool) -> Result<Self, String> {
        if !only_loopback {
            let network = Self::of_this_machine();
            return match (&network, Self::demanding(study)?.first()) {
                (Self::Loopback(why), Some(row)) => Err(format!(
                    "row \"{row}\" needs hosts of its own (for kernel settings, places or links), \
                     and {why}; --loopback leaves such rows out"
                )),
                _ => Ok(network),
            };
        }
        let left_out = Self::demanding(study)?;
        study.leave_out(&left_out)?;
        let mut why = "as --loopback says".to_owned();
        if !left_out.is_empty() {
            why.push_str(&format!("; left out: {}", left_out.join("; ")));
        }
        Ok(Self::Loopback(why))
    }

    /// The machines of agents, which are as they are: a row that changes hosts, links or kernel
    /// settings is an error. So is one with idle connections or another generator, which only this
    /// machine has.
    pub(crate) fn agents(study: &Study, places: String) -> Result<Self, String> {
        let mut demanding = Self::demanding(study)?;
        for row in &study.rows {
            let RowSetting { cores, load, .. } = RowSetting::of(study, row)?;
            let is_refused = cores.is_some() || load.idle > 0 || load.generator.is_foreign();
            if is_refused && !demanding.contains(&row.name) {
                demanding.push(row.name.clone());
            }
        }
        match demanding.as_slice() {
            [] => Ok(Self::Agents(places)),
            rows => Err(format!(
                "rows \"{}\" set kernel settings, processors, hosts, links, routes, idle \
                 connections or another generator, which --host cannot: copy the study without \
                 them, or run it without --host",
                rows.join("\", \"")
            )),
        }
    }

    /// The rows that need hosts of their own.
    fn demanding(study: &Study) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for row in &study.rows {
            if RowSetting::of(study, row)?.needs_namespaces() {
                names.push(row.name.clone());
            }
        }
        Ok(names)
    }

    fn of_this_machine() -> Self {
        if !is_root() {
            return Self::Loopback("network namespaces need root".to_owned());
        }
        match NetworkNamespace::new() {
            Ok(probe) => Self::Namespaces(congestion(&probe)),
            Err(why) => Self::Loopback(format!("there are no network namespaces ({why})")),
        }
    }

    /// The line in the report.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Namespaces(congestion) => {
                format!("hosts are network namespaces joined by veth pairs, with {congestion}")
            }
            Self::Loopback(why) => format!("all parts share loopback addresses: {why}"),
            Self::Agents(places) => format!("{places}; {WHOLE}"),
        }
    }
}

const WHOLE: &str = "a part that has a machine for itself uses all of its processors";

/// The setting of the congestion control.
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// The congestion control of hosts: Linux' default, or reno where a namespace may not choose it.
/// The machine's own would decide more than most rows. BBR sends large replies by a timer, and to
/// set one costs a virtual machine more than the reply.
fn congestion(probe: &NetworkNamespace) -> &'static str {
    if probe.set_kernel(CONGESTION, "cubic").is_ok() { "cubic" } else { "reno" }
}

/// `Uid: real effective saved filesystem`
pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|line| line.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
title = "t"
explanation = "e"
template = "%%a%% %%listen%%"
[load]
connections = 1
[factor.a]
baseline = "1"
levels = ["2"]
[factor.kernel]
sets = "kernel"
baseline = ""
levels = ["net.core.somaxconn=9"]
[[row]]
name = "one"
[[row]]
name = "two"
set = { kernel = "net.core.somaxconn=9" }
[[row]]
name = "three"
set = { a = "2" }
"#;

    #[test]
    fn rows_that_need_hosts_are_left_out_on_loopback_addresses() {
        let mut study = Study::parse("s", STUDY).expect("a study");
        let network = StudyNetwork::choose(&mut study, true).expect("loopback addresses");
        let names: Vec<&str> = study.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["one", "three"]);
        assert!(network.told().ends_with("left out: two"), "{}", network.told());
    }

    #[test]
    fn rows_that_need_hosts_are_an_error_on_the_machines_of_agents() {
        let study = Study::parse("s", STUDY).expect("a study");
        let told = StudyNetwork::agents(&study, String::new()).err().unwrap_or_default();
        assert!(told.starts_with("rows \"two\" set kernel settings"), "{told}");
    }

    #[test]
    fn idle_connections_and_other_generators_are_an_error_on_the_machines_of_agents() {
        for (sets, baseline, level) in [("load.idle", "0", "9"), ("generator", "weir load", "wrk")]
        {
            let of = format!("\"{sets}\"\nbaseline = \"{baseline}\"");
            let text = STUDY
                .replace("\"kernel\"\nbaseline = \"\"", &of)
                .replace("net.core.somaxconn=9", level)
                .replace("connections = 1", "connections = 1\nturn_ms = 1000");
            let study = Study::parse("s", &text).expect("a study");
            let told = StudyNetwork::agents(&study, String::new()).err().unwrap_or_default();
            assert!(told.starts_with("rows \"two\" set"), "{sets}: {told}");
            assert!(told.contains("idle connections or another generator"), "{told}");
        }
    }

    #[test]
    fn a_row_based_on_a_left_out_row_is_an_error() {
        let text = STUDY.replace("set = { a", "compared_with = \"two\"\nset = { a");
        let mut study = Study::parse("s", &text).expect("a study");
        let told = StudyNetwork::choose(&mut study, true).err().unwrap_or_default();
        assert_eq!(told, "row \"three\" refers to row \"two\", which needs hosts of its own");
    }
}
