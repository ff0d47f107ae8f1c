//! What tests of sources share.

use std::path::Path;

use testing::Peer;

use super::Source;
use crate::http::HttpPlace;
use crate::wanted::WantedGroups;

pub(super) fn place(peer: &Peer) -> HttpPlace {
    HttpPlace::parse(&format!("http://{}", peer.address), Path::new("")).unwrap()
}

pub(super) fn shown(wanted: &WantedGroups) -> String {
    let groups = wanted.iter().map(|(group, list)| format!("{group}={}", list.json));
    groups.collect::<Vec<_>>().join(" ")
}

/// What a source reports until it fails, or has reported so often, and why it ended.
pub(super) fn lists(source: &mut dyn Source, most: usize) -> (Vec<String>, String) {
    let mut told = Vec::new();
    let ended = source.watch(&mut |wanted| {
        told.push(shown(&wanted));
        if told.len() == most { Err("enough".to_owned()) } else { Ok(()) }
    });
    let Err(why) = ended;
    (told, why)
}
