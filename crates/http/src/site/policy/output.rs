//! Settings for writing replies.

/// A location's settings for writing replies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    pub sendfile: bool,
    /// `sendfile_max_chunk`; 0: no limit.
    pub sendfile_max_chunk: u64,
    pub tcp_nopush: bool,
    pub tcp_nodelay: bool,
    pub send_timeout_ms: u64,
    pub postpone_output: u64,
    /// The size of a read from a file that is not sent by sendfile().
    pub buffer_size: u64,
    pub read_ahead: u64,
    pub chunked_transfer_encoding: bool,
    pub reset_timedout_connection: bool,
}
