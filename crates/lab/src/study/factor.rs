//! A factor: a value that differs between rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A factor with its levels.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Factor {
    #[serde(default)]
    pub(crate) sets: FactorTarget,
    pub(crate) baseline: String,
    #[serde(default)]
    pub(crate) levels: Vec<String>,
    /// The texts of levels; a level without an entry is its own text.
    #[serde(default)]
    pub(crate) text: BTreeMap<String, String>,
}

/// The part of a row that a factor's level sets.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum FactorTarget {
    /// The blank of the template with the factor's name.
    #[default]
    #[serde(rename = "template")]
    Template,
    #[serde(rename = "load.connections")]
    Connections,
    #[serde(rename = "load.path")]
    Path,
    #[serde(rename = "load.close")]
    Close,
    #[serde(rename = "load.tls")]
    Tls,
    #[serde(rename = "load.udp")]
    Udp,
    /// Options of the generator, as words.
    #[serde(rename = "load.options")]
    Options,
    /// The number of idle connections beside the load.
    #[serde(rename = "load.idle")]
    Idle,
    /// The program that loads the server.
    #[serde(rename = "generator")]
    Generator,
    /// Kernel settings of all hosts: `NAME=VALUE`, separated by semicolons.
    #[serde(rename = "kernel")]
    Kernel,
    /// The hosts of client, server and backends: three names.
    #[serde(rename = "hosts")]
    Hosts,
    /// The behaviour of the client's link, in the words of `tc qdisc add ... netem`.
    #[serde(rename = "link")]
    Link,
    /// Options of the server's route to the client, in the words of ip-route(8).
    #[serde(rename = "route")]
    Route,
    /// The processors of the server, and after a slash those of the generator and the backends.
    #[serde(rename = "cores")]
    Cores,
}

impl FactorTarget {
    /// Whether it is a part of the load.
    pub(crate) fn is_of_the_load(self) -> bool {
        use FactorTarget::{Close, Connections, Generator, Idle, Options, Path, Tls, Udp};
        matches!(self, Connections | Path | Close | Tls | Udp | Options | Idle | Generator)
    }
}

impl Factor {
    /// The baseline and the other levels.
    pub(crate) fn all_levels(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.baseline).chain(&self.levels).map(String::as_str)
    }

    /// The text of a level.
    pub(crate) fn text<'f>(&'f self, level: &'f str) -> &'f str {
        self.text.get(level).map_or(level, String::as_str)
    }
}
