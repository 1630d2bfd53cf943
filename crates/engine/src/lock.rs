//! Locks a mutex also after a panic of another thread that held it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what several threads share. It is consistent even after a panic: every update is complete.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
