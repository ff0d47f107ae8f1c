//! Reading on from a connection that is closed, so that its client gets the whole reply.

conf::words! {
    /// When to linger.
    #[derive(Default)]
    pub enum Close {
        /// Never.
        Off = "off",
        /// Where the client may be sending still.
        #[default]
        On = "on",
        /// Always.
        Always = "always",
    }
}

/// How lingering goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lingering {
    /// When.
    pub close: Close,
    /// How long in all.
    pub time_ms: u64,
    /// How long without a byte.
    pub timeout_ms: u64,
}
