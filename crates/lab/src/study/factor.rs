//! A factor: what changes from row to row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What may stand in one place.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Factor {
    #[serde(default)]
    pub(crate) sets: FactorTarget,
    pub(crate) baseline: String,
    #[serde(default)]
    pub(crate) levels: Vec<String>,
    /// What levels stand for; a level that is not here stands for itself.
    #[serde(default)]
    pub(crate) text: BTreeMap<String, String>,
}

/// Where a factor's level goes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum FactorTarget {
    /// Into the blank of the template that has the factor's name.
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
    /// Kernel settings of all hosts, `NAME=VALUE` with semicolons between them.
    #[serde(rename = "kernel")]
    Kernel,
    /// Where client, server and backends are: three names of hosts.
    #[serde(rename = "hosts")]
    Hosts,
    /// What the client's link does, in the words of `tc qdisc add ... netem`.
    #[serde(rename = "link")]
    Link,
}

impl FactorTarget {
    /// Whether it is a part of the load.
    pub(crate) fn is_of_the_load(self) -> bool {
        matches!(self, Self::Connections | Self::Path | Self::Close | Self::Tls)
    }
}

impl Factor {
    /// Baseline and levels.
    pub(crate) fn all_levels(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.baseline).chain(&self.levels).map(String::as_str)
    }

    /// What a level stands for.
    pub(crate) fn text<'f>(&'f self, level: &'f str) -> &'f str {
        self.text.get(level).map_or(level, String::as_str)
    }
}
