//! The mutex for shared data; loom replaces it to try every order of operations.

#[cfg(all(weir_loom, test))]
pub(crate) use ::loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(weir_loom, test)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks a mutex. Poisoning is ignored, since no holder leaves the data inconsistent by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
