//! The name of a feature, passed to each place where the feature hooks in.
//!
//! [`features!`](crate::features) announces every feature to the place where it is installed, so no
//! feature has to name itself.

use std::fmt;

/// A feature's module, as named by its row in the feature list. One word.
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

/// A place where features hook in while a configuration is compiled.
pub trait InstallTarget {
    /// Announces the feature that hooks in next. A place without hooks ignores the name.
    fn installing(&mut self, _feature: FeatureName) {}
}
