//! Settings for writing replies.

/// A location's settings for writing replies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// `sendfile`
    pub sendfile: bool,
    /// `sendfile_max_chunk`; 0: no limit.
    pub sendfile_max_chunk: u64,
    /// `tcp_nopush`
    pub tcp_nopush: bool,
    /// `tcp_nodelay`
    pub tcp_nodelay: bool,
    /// `send_timeout`
    pub send_timeout_ms: u64,
    /// `postpone_output`
    pub postpone_output: u64,
    /// The size of a read from a file that is not sent by sendfile().
    pub buffer_size: u64,
    /// `read_ahead`
    pub read_ahead: u64,
    /// `chunked_transfer_encoding`
    pub chunked_transfer_encoding: bool,
    /// `reset_timedout_connection`
    pub reset_timedout_connection: bool,
}
