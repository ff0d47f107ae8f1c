//! Settings that only the feature that declares them reads, each under a type of its own.

use std::any::Any;

/// Settings by type, searched in order because they are few.
#[derive(Default)]
pub(crate) struct OwnSettings(Vec<Box<dyn Any + Send + Sync>>);

impl OwnSettings {
    /// The settings of that type, if the feature has added any.
    pub(crate) fn find<T: 'static>(&self) -> Option<&T> {
        self.0.iter().find_map(|settings| settings.downcast_ref())
    }

    /// Adds settings, at most once of each type.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, settings: T) {
        debug_assert!(self.find::<T>().is_none(), "a feature adds its settings once");
        self.0.push(Box::new(settings));
    }
}
