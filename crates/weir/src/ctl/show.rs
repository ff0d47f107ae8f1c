//! Replies as text.

use std::fmt::Write;

use serde_json::Value;

pub(super) fn status(reply: &Value) -> String {
    let mut text = String::new();
    let word = |name: &str| reply[name].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let _ = writeln!(text, "{} {}", word("name"), word("version"));
    let _ = writeln!(text, "master process {}", number(&reply["pid"]));
    let _ = writeln!(text, "generation {}", number(&reply["generation"]));
    if let Value::Object(last) = &reply["last_reload"] {
        let time = last["time"].as_str().unwrap_or_default();
        let _ = match last["success"] == true {
            true => writeln!(text, "the last reload succeeded at {time}"),
            false => {
                let message = last["message"].as_str().unwrap_or_default();
                writeln!(text, "the last reload failed at {time}: {message}")
            }
        };
    }
    for (flag, told) in [("reloading", "a reload is under way"), ("upgrading", "an upgrade is")] {
        if reply[flag] == true {
            let _ = writeln!(text, "{told}");
        }
    }
    for process in reply["worker_processes"].as_array().into_iter().flatten() {
        let stage = process["stage"].as_str().unwrap_or_default();
        let _ = writeln!(text, "worker process {} is {stage}", number(&process["pid"]));
    }
    text
}

pub(super) fn ready(reply: &Value) -> String {
    match reply["ready"] == true {
        true => "ready\n".into(),
        false => "not ready\n".into(),
    }
}

pub(super) fn reload(reply: &Value) -> String {
    let lines = reply["log"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(|line| format!("{line}\n")).collect()
}

/// What a list of servers changed.
pub(super) fn difference(reply: &Value) -> String {
    let count = |name: &str| reply[name].as_u64().unwrap_or_default();
    let [added, changed, removed] = ["added", "changed", "removed"].map(count);
    format!("{added} added, {changed} changed, {removed} removed\n")
}

pub(super) fn upstreams(reply: &Value) -> String {
    let mut text = String::new();
    for (block, groups) in reply.as_object().into_iter().flatten() {
        for (name, group) in groups.as_object().into_iter().flatten() {
            let prefix = if block == "stream" { "stream/" } else { "" };
            let kept = if group["persistence"] == "file" { ", kept in a file" } else { "" };
            let owner = group["owner"].as_str();
            let owner = owner.map_or(String::new(), |owner| format!(", belongs to {owner}"));
            let _ = writeln!(text, "{prefix}{name}{kept}{owner}");
            text.push_str(&servers(&group["servers"]));
        }
    }
    text
}

/// One server, or a list of them.
pub(super) fn servers(reply: &Value) -> String {
    let one = std::slice::from_ref(reply);
    let servers = reply.as_array().map_or(one, Vec::as_slice);
    let width = servers.iter().filter_map(|server| server["server"].as_str()).map(str::len).max();
    servers.iter().map(|server| line(server, width.unwrap_or(0))).collect()
}

fn line(server: &Value, width: usize) -> String {
    let state = match (server["down"] == true, server["drain"] == true) {
        (true, _) => "down",
        (false, true) => "draining",
        (false, false) => "up",
    };
    let address = server["server"].as_str().unwrap_or_default();
    let id = server["id"].as_u64().unwrap_or_default();
    let mut text = format!("  {id:<4} {address:<width$}  {state:<8}");
    for name in ["weight", "max_conns", "max_fails", "fail_timeout", "slow_start", "route"] {
        match &server[name] {
            Value::Number(number) => drop(write!(text, "  {name}={number}")),
            Value::String(word) if !word.is_empty() => drop(write!(text, "  {name}={word}")),
            _ => {}
        }
    }
    if server["backup"] == true {
        text.push_str("  backup");
    }
    text.push('\n');
    text
}
