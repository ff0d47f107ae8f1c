//! Backends within the configuration: a server that passes requests to another server of the same
//! configuration. In the copy it must pass them to the copy's server, not to the real one.

use std::collections::BTreeSet;

use crate::address::{ListenAddress, ListenPort};
use crate::listens::MovedListen;
use crate::tree::EditableTree;

/// The directives whose first word names a backend.
const PASSES: [&str; 9] = [
    "auth_http",
    "fastcgi_pass",
    "grpc_pass",
    "memcached_pass",
    "pass",
    "proxy_pass",
    "scgi_pass",
    "tunnel_pass",
    "uwsgi_pass",
];

/// Renames backends that moved to their new addresses, and returns their old addresses.
pub(super) fn follow(tree: &mut EditableTree, moved: &[MovedListen]) -> BTreeSet<ListenAddress> {
    let mut followed = BTreeSet::new();
    let lines = tree.lines();
    let groups = lines.iter().filter(|line| line.directive.is("upstream"));
    let groups: BTreeSet<String> =
        groups.map(|line| line.directive.argument().to_owned()).collect();
    tree.change(&mut |around, line| {
        let is_member = line.is("server") && around.last().is_some_and(|name| name == "upstream");
        if !is_member && !PASSES.contains(&line.name()) {
            return;
        }
        if let Some((listen, new)) = moved_to(line.argument(), &groups, moved) {
            line.words[1] = new.into_bytes();
            followed.insert(listen.from.clone());
        }
    });
    followed
}

/// The word with its address replaced, if that has moved.
fn moved_to<'m>(
    word: &str,
    groups: &BTreeSet<String>,
    moved: &'m [MovedListen],
) -> Option<(&'m MovedListen, String)> {
    let (scheme, rest) = match word.find("://") {
        Some(at) => word.split_at(at + 3),
        None => ("", word),
    };
    if let Some(path) = rest.strip_prefix("unix:") {
        let (path, after) = path.split_at(path.find(':').unwrap_or(path.len()));
        let from = ListenAddress::Unix(path.as_bytes().to_vec());
        let listen = moved.iter().find(|listen| listen.from == from)?;
        return Some((listen, format!("{scheme}{}{after}", listen.to)));
    }
    let (authority, after) = rest.split_at(rest.find(['/', '?', '$']).unwrap_or(rest.len()));
    if after.starts_with('$') || groups.contains(authority) {
        return None;
    }
    let default_port = if scheme == "https://" { 443 } else { 80 };
    let port = ListenPort::parse(authority, default_port)?;
    let receives = |listen: &&MovedListen| listen.from.tcp().is_some_and(|own| own.receives(&port));
    let listen = moved.iter().find(receives)?;
    Some((listen, format!("{scheme}{}{after}", listen.to)))
}
