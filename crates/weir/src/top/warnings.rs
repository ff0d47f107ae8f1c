//! What is wrong now, in words; those of the dashboard that fit on a few lines.

use serde_json::Value;

use super::amounts::{percent, span};
use super::growth::{at, number, text};
use super::rows::{GroupRow, ServerRow, SiteKind, SiteRow, share};

const DAY_MS: f64 = 86_400_000.0;
/// The days before its end from which on a certificate is worth a line.
const CERTIFICATE_DAYS: f64 = 21.0;
/// The most servers of a group that are named one by one.
const NAMED_MAX: usize = 3;
/// The least failed replies, and their least share, that are worth a line.
const ERRORS_MIN: f64 = 3.0;
const ERROR_SHARE_MIN: f64 = 0.02;

pub(super) fn find(
    sites: &[SiteRow],
    groups: &[GroupRow],
    tree: &Value,
    now_ms: f64,
) -> Vec<String> {
    let mut found = Vec::new();
    if text(tree, &["weir", "state"]) == "draining" {
        found.push("this server is draining".to_owned());
    }
    found.extend(reload(tree, now_ms));
    found.extend(sites.iter().filter_map(of_site));
    groups.iter().for_each(|group| of_group(group, now_ms, &mut found));
    for list in ["certificates", "acme"] {
        let certificates = at(tree, &["tls", list]).and_then(Value::as_array);
        let certificates = certificates.into_iter().flatten();
        found.extend(certificates.filter_map(|one| of_certificate(one, now_ms)));
    }
    found
}

fn reload(tree: &Value, now_ms: f64) -> Option<String> {
    let last = at(tree, &["weir", "reloads", "last"])?;
    if last.get("ok")?.as_bool()? {
        return None;
    }
    let (ago, why) = (span(now_ms - number(last, &["at"])), text(last, &["message"]));
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    Some(format!("the last reload failed {ago} ago{why}"))
}

fn of_site(site: &SiteRow) -> Option<String> {
    let share = share(site.classes)?;
    let is_worth = site.classes[5] >= ERRORS_MIN && share >= ERROR_SHARE_MIN;
    // A location's replies are also its server's.
    (is_worth && site.kind == SiteKind::Server)
        .then(|| format!("{} of replies are 5xx in site {}", percent(Some(share)), site.name))
}

fn of_group(group: &GroupRow, now_ms: f64, found: &mut Vec<String>) {
    let GroupRow { name, servers, queue } = group;
    let is_usable = |server: &ServerRow| matches!(&*server.state, "up" | "busy" | "checking");
    if !servers.is_empty() && !servers.iter().any(is_usable) {
        found.push(format!("no server of {name} can take requests"));
    }
    let bad = servers.iter().filter(|server| server.is_bad());
    match bad.clone().count() {
        many if many > NAMED_MAX => {
            found.push(format!("{many} of {} servers of {name} are unusable", servers.len()));
        }
        _ => found.extend(bad.map(|server| of_server(server, name, now_ms))),
    }
    if let Some((length, most)) = *queue
        && most > 0.0
        && length >= most
    {
        found.push(format!("queue of {name} is full: {length} requests wait"));
    }
}

fn of_server(server: &ServerRow, group: &str, now_ms: f64) -> String {
    let ServerRow { name, state, why, since_ms, .. } = server;
    let time = since_ms.map_or_else(String::new, |since| format!(" for {}", span(now_ms - since)));
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("server {name} of {group} {state}{time}{why}")
}

fn of_certificate(certificate: &Value, now_ms: f64) -> Option<String> {
    let left = certificate.get("not_after_at")?.as_f64()? - now_ms;
    let name = at(certificate, &["names"]).and_then(|names| names.get(0)?.as_str());
    let name = name.unwrap_or_else(|| text(certificate, &["file"]));
    match left / DAY_MS {
        _ if left < 0.0 => Some(format!("certificate of {name} expired {} ago", span(-left))),
        days if days < CERTIFICATE_DAYS => {
            Some(format!("certificate of {name} expires in {}", span(left)))
        }
        _ => None,
    }
}
