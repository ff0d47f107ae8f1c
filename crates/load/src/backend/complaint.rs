//! Errors at run time.

/// Reports an error at run time.
pub(super) fn complain(text: &str) {
    crate::tell(&format!("weir: backend: {text}\n"));
}
