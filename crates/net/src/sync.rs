//! The lock of what threads share, which loom replaces to try every order of their operations.

#[cfg(all(weir_loom, test))]
pub(crate) use ::loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(weir_loom, test)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks. Whoever panicked with the lock held left nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
