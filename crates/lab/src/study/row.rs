//! A row of a study's table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyRow {
    pub(crate) name: String,
    /// The row whose levels it takes over; `None` for the baseline.
    #[serde(default)]
    pub(crate) based_on: Option<String>,
    /// The row that its effect is compared with; `None` for the first.
    #[serde(default)]
    pub(crate) compared_with: Option<String>,
    /// The factors that differ, with their levels.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// Whether the load bypasses the server and goes to the first backend.
    #[serde(default)]
    pub(crate) direct: bool,
    /// The only server that can run it, such as `weir`; `None` for all.
    #[serde(default)]
    pub(crate) only: Option<String>,
    /// Limits of what differs between the first program and the second, as in `--fail-if`.
    #[serde(default)]
    pub(crate) fail_if: Vec<String>,
    /// The source's finding, in its own words.
    #[serde(default)]
    pub(crate) found: Option<String>,
}
