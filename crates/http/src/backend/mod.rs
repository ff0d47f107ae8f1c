//! The way of an exchange through a backend: a server is chosen, asked, and answers, or another is.
//!
//! ```text
//! body read -> server chosen -> connected -> asked -> head read -+-> reply, its body still to come
//!                    ^                                            |
//!                    +------------- next_upstream ---------------+
//! ```
//!
//! What all families of backends (`proxy_`, later `fastcgi_`, `grpc_`, `scgi_`, `uwsgi_`) are told
//! alike is declared here once, and mounted by prefix: the row of a family stands right before the
//! feature that has it, which takes the settings out of the place.
//!
//! What a protocol says to its backends is the feature's (`features::proxy`); servers, pools and
//! limits are crate `upstream`'s. Cancelling is dropping: connection, place and file go with the
//! future, or with the body.

mod ask;
mod body;
mod bound;
mod coding;
mod connect;
pub(crate) mod groups;
mod head;
mod outgoing;
mod pass;
mod queue;
mod spool;
mod store;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tunnel;
mod values;
mod variables;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use conf::{Buffers, Milliseconds, Number, Offset, Result, Size, SizeTemplate, Text};

use crate::health::Times;
use crate::site::Place;
pub(crate) use ask::describe;
pub(crate) use body::Rules;
pub(crate) use coding::Coding;
pub(crate) use connect::manner;
pub(crate) use head::{Passed, Rewrite};
pub(crate) use pass::{Plan, pass};
pub use tally::Backends;
pub(crate) use tally::Named;
use values::{Bind, Ignored, NextUpstream, Store, StoreAccess};
pub(crate) use variables::TABLE as VARIABLES;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether a reply is read as fast as the backend sends it, to memory and file if need be.
    buffering: bool = "on",
    /// Whether the request is read as a whole before the backend is asked.
    request_buffering: bool = "on",
    /// Whether the backend is asked on although the client has gone.
    ignore_client_abort: bool = "off",
    /// The local address that connections come from; `transparent`: even one of others.
    bind: Option<Bind>,
    /// Whether the kernel probes silent connections.
    socket_keepalive: bool = "off",
    /// Receive buffer of connections; 0: the system's choice.
    socket_rcvbuf: Size = "0",
    /// Send buffer of connections; 0: the system's choice.
    socket_sndbuf: Size = "0",
    /// Time for a connection to be made.
    connect_timeout: Milliseconds = "60s",
    /// Time between two writes.
    send_timeout: Milliseconds = "60s",
    /// Accepted, and without effect on Linux, as in nginx.
    send_lowat: Size = "0",
    /// Whether `error_page` answers for replies of 300 and above.
    intercept_errors: bool = "off",
    /// Whether the request's header fields are passed on.
    pass_request_headers: bool = "on",
    /// Whether the request's body is passed on.
    pass_request_body: bool = "on",
    /// The longest head of a reply.
    buffer_size: Size = "4k",
    /// Time between two reads.
    read_timeout: Milliseconds = "60s",
    /// Memory for one reply.
    buffers: Buffers = "8 4k",
    /// How much of it may be on the way to the client. Memory here is not tied up by that.
    busy_buffers_size: Option<Size>,
    /// Whether ranges are cut out of replies whatever the backend says of them.
    force_ranges: bool = "off",
    /// Bytes a second read from the backend; 0: as they come.
    limit_rate: SizeTemplate = "0",
    /// Where replies are kept as files: `on`: where requests map to.
    store: Store = "off",
    /// The permissions of such files.
    store_access: StoreAccess = "user:rw",
    /// The largest file for one reply; 0: none.
    max_temp_file_size: Option<Offset>,
    /// How much is written to it at once.
    temp_file_write_size: Option<Size>,
    /// When another server is asked.
    next_upstream: NextUpstream = "error timeout",
    /// How many are asked at most; 0: all there are.
    next_upstream_tries: Number = "0",
    /// Within which time others are asked; 0: any.
    next_upstream_timeout: Milliseconds = "0",
    /// A header field of replies that is passed on although it is not usually.
    pass_header: Vec<Text>,
    /// A header field of replies that is not passed on.
    hide_header: Vec<Text>,
    /// Header fields of replies that have no effect here.
    ignore_headers: Option<Ignored>,
}

/// Whether the configuration passes anything on anywhere, as far as it was read.
#[derive(Default)]
pub(crate) struct AnyBackend(pub(crate) bool);

/// Leaves the settings to the feature that has this family.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.family = Some(conf.clone());
    Ok(())
}

/// nginx's bound of `*_max_temp_file_size` where nothing is said.
const TEMP_FILE_SIZE_MAX: u64 = 1024 * 1024 * 1024;

impl Conf {
    /// Checks what sizes say of each other, in nginx's words; `prefix` is the family's.
    pub(crate) fn check(&self, prefix: &str) -> std::result::Result<(), String> {
        let (number, size) = (self.buffers.number, self.buffers.size);
        if number < 2 {
            return Err(format!("there must be at least 2 \"{prefix}buffers\""));
        }
        let largest = self.buffer_size.0.max(size);
        let of_largest = format!(
            "the maximum of the value of \"{prefix}buffer_size\" and one of the \"{prefix}buffers\""
        );
        let at_least = format!("must be equal to or greater than {of_largest}");
        if let Some(Size(busy)) = self.busy_buffers_size {
            if busy < largest {
                return Err(format!("\"{prefix}busy_buffers_size\" {at_least}"));
            }
            self.check_busy(busy, prefix)?;
        } else {
            self.check_busy(2 * largest, prefix)?;
        }
        if self.temp_file_write_size.is_some_and(|Size(bytes)| bytes < largest) {
            return Err(format!("\"{prefix}temp_file_write_size\" {at_least}"));
        }
        match self.max_temp_file_size {
            Some(Offset(bytes)) if bytes != 0 && bytes < largest => Err(format!(
                "\"{prefix}max_temp_file_size\" must be equal to zero to disable temporary files \
                 usage or {at_least}"
            )),
            _ => Ok(()),
        }
    }

    fn check_busy(&self, busy: u64, prefix: &str) -> std::result::Result<(), String> {
        let all_but_one = (self.buffers.number - 1).saturating_mul(self.buffers.size);
        if busy <= all_but_one {
            return Ok(());
        }
        Err(format!(
            "\"{prefix}busy_buffers_size\" must be less than the size of all \"{prefix}buffers\" \
             minus one buffer"
        ))
    }

    /// Whether a request goes on when its client has gone.
    pub(crate) fn outlives_client(&self) -> bool {
        self.ignore_client_abort || !matches!(self.store, Store::Off)
    }

    /// `pass_request_headers`
    pub(crate) fn passes_fields(&self) -> bool {
        self.pass_request_headers
    }

    /// `pass_request_body`
    pub(crate) fn passes_body(&self) -> bool {
        self.pass_request_body
    }

    /// `request_buffering`
    pub(crate) fn reads_body_first(&self) -> bool {
        self.request_buffering
    }

    /// How long each step of a health check may take, and the longest head of its reply.
    pub(crate) fn check_limits(&self) -> (Times, usize) {
        let times = Times::Steps {
            connect_ms: self.connect_timeout.0,
            send_ms: self.send_timeout.0,
            read_ms: self.read_timeout.0,
        };
        (times, usize::try_from(self.buffer_size.0).unwrap_or(usize::MAX))
    }

    /// How much of a reply is held in memory.
    pub(crate) fn memory_max(&self) -> usize {
        usize::try_from(self.buffers.number.saturating_mul(self.buffers.size)).unwrap_or(usize::MAX)
    }

    /// How much of a reply goes to a file.
    pub(crate) fn file_max(&self) -> u64 {
        self.max_temp_file_size.map_or(TEMP_FILE_SIZE_MAX, |size| size.0)
    }
}

/// An address with or without a port, as `bind` has it.
pub(crate) fn local_address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let ip = |text: &str| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    text.parse().ok().or_else(|| ip(bare.unwrap_or(text)))
}
