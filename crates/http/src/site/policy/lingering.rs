//! Settings for lingering: reading from a connection that is closed, so that its client receives
//! the whole reply.

conf::words! {
    /// When to linger.
    #[derive(Default)]
    pub enum Close {
        /// Never.
        Off = "off",
        /// If the client may still be sending.
        #[default]
        On = "on",
        /// Always.
        Always = "always",
    }
}

/// A location's settings for lingering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lingering {
    /// When to linger.
    pub close: Close,
    /// How long in total.
    pub time_ms: u64,
    /// How long without receiving anything.
    pub timeout_ms: u64,
}
