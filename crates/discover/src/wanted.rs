//! What a source says that groups are to have.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use crate::server_entry::{ServerEntry, ServerList};

/// The most groups of a source.
pub const GROUPS_MAX: usize = 100_000;

/// The name of a group: `app`, or `stream/db`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    is_stream: bool,
    name: String,
}

impl GroupKey {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (is_stream, name) = match text.strip_prefix("stream/") {
            Some(name) => (true, name),
            None => (false, text.strip_prefix("http/").unwrap_or(text)),
        };
        let is_good = !name.is_empty() && !name.chars().any(|one| one.is_control());
        let name = is_good.then(|| name.to_owned());
        name.map(|name| Self { is_stream, name }).ok_or_else(|| format!("invalid group \"{text}\""))
    }

    /// Its path in the API.
    pub fn path(&self) -> String {
        let name = percent_encoded(&self.name);
        let block = if self.is_stream { "stream" } else { "http" };
        format!("/9/{block}/upstreams/{name}")
    }
}

/// A text as a part of a path or of an argument.
pub fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).into(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_stream { "stream/" } else { "" }, self.name)
    }
}

/// The lists of all groups that a source, or a part of it, knows.
pub type WantedGroups = BTreeMap<GroupKey, ServerList>;

/// Servers by their groups, while a source is read.
#[derive(Debug, Default)]
pub struct GroupedServers(BTreeMap<GroupKey, Vec<ServerEntry>>);

impl From<BTreeMap<GroupKey, Vec<ServerEntry>>> for GroupedServers {
    fn from(servers: BTreeMap<GroupKey, Vec<ServerEntry>>) -> Self {
        Self(servers)
    }
}

impl GroupedServers {
    pub fn add(&mut self, group: &GroupKey, servers: impl IntoIterator<Item = ServerEntry>) {
        match self.0.entry(group.clone()) {
            Entry::Occupied(mut known) => known.get_mut().extend(servers),
            Entry::Vacant(new) => _ = new.insert(servers.into_iter().collect()),
        }
    }

    pub fn into_wanted(self) -> Result<WantedGroups, String> {
        if self.0.len() > GROUPS_MAX {
            return Err(format!("more than {GROUPS_MAX} groups"));
        }
        let lists = self.0.into_iter().map(|(group, servers)| {
            let list = ServerList::new(servers).map_err(|why| format!("{group}: {why}"))?;
            Ok((group, list))
        });
        lists.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_become_paths() {
        let path = |text: &str| GroupKey::parse(text).map(|group| group.path());
        assert_eq!(path("app"), Ok("/9/http/upstreams/app".to_owned()));
        assert_eq!(path("http/a/b"), Ok("/9/http/upstreams/a%2Fb".to_owned()));
        assert_eq!(path("stream/d b"), Ok("/9/stream/upstreams/d%20b".to_owned()));
        for wrong in ["", "stream/", "a\nb"] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
    }
}
