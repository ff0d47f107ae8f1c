//! A feature's function in a phase or on the way of a reply, and the name of the feature.

use std::ops::Deref;

use conf::FeatureName;

/// A function of a feature. It is called like the function.
pub struct Hook<F> {
    /// The feature.
    pub feature: FeatureName,
    /// The function.
    pub run: F,
}

impl<F> Deref for Hook<F> {
    type Target = F;
    fn deref(&self) -> &F {
        &self.run
    }
}
