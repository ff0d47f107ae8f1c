//! The limits of a request.

/// The limits of one request. None of them is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of all heads of the reply, interim ones included.
    pub head_bytes_max: usize,
    /// Bytes of the reply's body, without its framing.
    pub body_bytes_max: usize,
    /// The time to connect to one address, including the TLS handshake.
    pub connect_ms: u64,
    /// The time in which no byte is sent or received. A long poll needs a larger value.
    pub silence_ms: u64,
    /// The time for everything: looking up the name, all addresses, the request and the reply.
    pub total_ms: u64,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            head_bytes_max: 32 * 1024,
            body_bytes_max: 1024 * 1024,
            connect_ms: 10_000,
            silence_ms: 30_000,
            total_ms: 60_000,
        }
    }
}
