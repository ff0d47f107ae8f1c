//! Names of groups and tables in arguments.

use std::fmt;

use serde_json::Value;

use crate::messages::{Reported, complain};

/// A group: `NAME`, or `stream/NAME`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupArgument {
    is_stream: bool,
    pub(super) name: String,
}

impl GroupArgument {
    pub(super) fn parse(word: &str) -> Self {
        let (is_stream, name) = match word.strip_prefix("stream/") {
            Some(name) => (true, name),
            None => (false, word.strip_prefix("http/").unwrap_or(word)),
        };
        Self { is_stream, name: name.to_owned() }
    }

    pub(super) fn block(&self) -> &'static str {
        if self.is_stream { "stream" } else { "http" }
    }

    /// Its part of the list of all groups.
    pub(super) fn find<'v>(&self, all: &'v Value) -> Option<&'v Value> {
        all.get(self.block())?.get(&self.name)
    }

    pub(super) fn servers(&self) -> String {
        format!("/9/{}/upstreams/{}/servers", self.block(), percent_encoded(&self.name))
    }

    pub(super) fn server(&self, id: u64) -> String {
        format!("{}/{id}", self.servers())
    }

    pub(super) fn unknown(&self) -> Reported {
        complain(format_args!("ctl: there is no {self}"))
    }
}

impl fmt::Display for GroupArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upstream \"{}\" in {}", self.name, self.block())
    }
}

pub(super) fn percent_encoded(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).into(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}
