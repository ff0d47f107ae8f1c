//! How replies are written to the client.

/// How replies are written to the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// `sendfile`
    pub sendfile: bool,
    /// `sendfile_max_chunk`; 0: any.
    pub sendfile_max_chunk: u64,
    /// `tcp_nopush`
    pub tcp_nopush: bool,
    /// `tcp_nodelay`
    pub tcp_nodelay: bool,
    /// `send_timeout`
    pub send_timeout_ms: u64,
    /// `postpone_output`
    pub postpone_output: u64,
    /// Bytes read from a file at once where `sendfile` is off.
    pub buffer_size: u64,
    /// `read_ahead`
    pub read_ahead: u64,
    /// `chunked_transfer_encoding`
    pub chunked_transfer_encoding: bool,
    /// `reset_timedout_connection`
    pub reset_timedout_connection: bool,
}
