//! The name of a feature, given to whatever the feature hooks in.
//!
//! [`features!`](crate::features) announces every feature to the place that it is installed in, so
//! no feature says its own name.

use std::fmt;

/// A feature, as its row of the feature list names its module. One word.
#[derive(Clone, Copy, Debug)]
pub struct FeatureName(pub &'static &'static str);

impl Default for FeatureName {
    /// No feature.
    fn default() -> Self {
        Self(&"")
    }
}

impl fmt::Display for FeatureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Where features hook in while a configuration is compiled.
pub trait InstallTarget {
    /// This feature hooks in next. A place without hooks has no use for the name.
    fn installing(&mut self, _feature: FeatureName) {}
}
