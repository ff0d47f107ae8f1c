//! What a feature has hooked into a phase or into the way of a reply, and which feature it was.

use std::ops::Deref;

use conf::FeatureName;

/// A function of a feature. It is called like the function.
pub struct Hook<F> {
    /// Whose it is.
    pub feature: FeatureName,
    /// What is called.
    pub run: F,
}

impl<F> Deref for Hook<F> {
    type Target = F;
    fn deref(&self) -> &F {
        &self.run
    }
}
