//! The interface of sessions for the access log.

use crate::Session;

/// A variable that the log computes itself.
pub type LogVariable<X> = fn(&X, &mut Vec<u8>);

/// A session that is logged when it ends.
pub trait LoggedSession: Session {
    /// The variables that the log computes itself.
    const OWN: &'static [(&'static [u8], LogVariable<Self>)];
    /// The format `combined`, if it is built in.
    const COMBINED: Option<&'static str>;

    /// Whether logs whose paths have variables may be written; if not, the session has logged the
    /// reason.
    fn admits_log_paths(&mut self) -> bool {
        true
    }
}
