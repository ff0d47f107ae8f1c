//! A place for one value, from one thread to another: a newer value replaces one that waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct LatestValue<T>(Arc<(Mutex<Option<T>>, Condvar)>);

impl<T> Clone for LatestValue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for LatestValue<T> {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(None), Condvar::new())))
    }
}

impl<T> LatestValue<T> {
    pub(crate) fn put(&self, value: T) {
        let (place, arrived) = &*self.0;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        arrived.notify_one();
    }

    /// Waits so long for a value.
    pub(crate) fn take(&self, most: Duration) -> Option<T> {
        let (place, arrived) = &*self.0;
        let waiting = place.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = arrived.wait_timeout_while(waiting, most, |value| value.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_value_replaces_one_that_waits() {
        let latest = LatestValue::default();
        latest.put(1);
        latest.put(2);
        assert_eq!(latest.take(Duration::from_secs(20)), Some(2));
        assert_eq!(latest.take(Duration::ZERO), None);
    }
}
