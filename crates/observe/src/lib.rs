//! Observability: the error log, log files, syslog.
//!
//! Usable from any thread and without an event loop. Deliberately absent: the notion of a request;
//! the caller provides the context of a message. Writes to sockets never wait; those to files may
//! wait for a disk.

mod connection_number;
mod errno;
mod error_log;
mod files;
mod json;
mod level;
mod line;
mod lines;
mod loop_peaks;
mod lost;
mod stamps;
mod syslog;
mod system;
mod text;

pub use connection_number::connection_number;
pub use errno::Errno;
pub use error_log::{
    ErrorLog, ErrorLogTags, KeptContext, MainLog, MainLogTags, MessageContext, MessageSource,
    begin_copies, copies_to_stderr, log, main_log, set_main_log, stderr_copies, take_copies, tell,
};
pub use files::{LogFile, LogFiles, LogOpenError, append_to};
pub use json::{is_plain_json, json_text};
pub use level::{Level, LevelSet};
pub use line::{LINE_MAX, LineBuffer};
pub use lines::{Buffering, append, end_turn, flush, flush_all};
pub use loop_peaks::{LongestTurns, LoopPeaks};
pub use lost::{lose_line, lost_log_lines};
pub use stamps::{Stamps, iso8601_ms};
pub use syslog::{SyslogError, SyslogSender, SyslogTarget, send};
pub use system::{System, settle, system};
pub use text::Text;
