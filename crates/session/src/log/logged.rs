//! What the log asks of a session.

use crate::Session;

/// A variable that the log computes itself.
pub type LogVariable<X> = fn(&X, &mut Vec<u8>);

/// A session that is logged when it is over.
pub trait LoggedSession: Session {
    /// The variables that its log computes itself.
    const OWN: &'static [(&'static [u8], LogVariable<Self>)];
    /// The format `combined`, where it is built in.
    const COMBINED: Option<&'static str>;

    /// Whether a log whose path has variables may be written to; if not, that has been logged.
    fn admits_log_paths(&mut self) -> bool {
        true
    }
}
