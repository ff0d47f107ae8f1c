//! Passes exchanges on to backends: chooses a server, sends it the request, and reads its reply, or
//! tries another server.
//!
//! ```text
//! body read -> server chosen -> connected -> sent -> head read -+-> reply, its body read later
//!                    ^                                           |
//!                    +-------------- next_upstream --------------+
//! ```
//!
//! The settings that the families of backends (`proxy_`, `fastcgi_`, `scgi_`, `uwsgi_`) share are
//! declared here once and mounted by prefix: a row of the list of features names the family that a
//! feature uses. `grpc_` and `memcached_`, which have fewer, declare their own.
//!
//! A family's feature chooses the group of servers and writes the head of the request. Framing the
//! request and parsing the reply is the job of the family's [`protocol::Protocol`]; nothing else
//! here depends on the family. Servers, pools and limits are in crate `upstream`. A request is
//! cancelled by dropping it: connection, lease and file are released with the future, or with the
//! body.

pub(crate) mod address;
mod body;
pub(crate) mod cache;
mod call;
mod caller;
mod carrier;
pub(crate) mod check;
mod connect;
mod fetch;
mod head;
mod pass;
pub(crate) mod protocol;
mod request;
pub(crate) mod request_fields;
mod spool;
mod sticky;
mod store;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tunnel;
mod values;
mod variables;

use std::sync::Arc;

use conf::{Buffers, Layered, Load, Milliseconds, Number, Result, Size, SizeTemplate, Text};

use crate::exchange::{Exchange, Role};
use crate::site::LocationBuilder;
pub(crate) use body::BodyPolicy;
pub(crate) use call::SENDING;
pub(crate) use carrier::{GrpcRequest, StreamRequest};
pub(crate) use connect::{CONNECTING, connect_options, local_end};
pub(crate) use head::{HeaderFilter, ReplyFields, ReplyRewriter};
pub(crate) use pass::{PassPlan, pass};
pub(crate) use request::BackendRequestBody;
pub(crate) use session::backend::Bind;
pub(crate) use values::{IgnoredFields, NextUpstream};
use values::{Store, StoreAccess};
pub(crate) use variables::VARIABLES;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether a response is read as fast as the backend sends it, into memory and then into a
    /// temporary file, so that a slow client does not occupy the backend. `off` passes each part on
    /// at once, which streaming and server-sent events need.
    ///
    /// ```nginx
    /// location /events {
    ///     proxy_pass http://127.0.0.1:3000;
    ///     proxy_buffering off;
    /// }
    /// ```
    buffering: bool = "on",
    /// Whether the whole request body is read before the request is sent to the backend. `off`
    /// passes the body on as it arrives; such a request cannot be sent to another server after a
    /// failure.
    ///
    /// ```nginx
    /// proxy_request_buffering off;
    /// ```
    request_buffering: bool = "on",
    /// Whether the request to the backend continues after the client has closed its connection.
    ///
    /// ```nginx
    /// proxy_ignore_client_abort on;
    /// ```
    ignore_client_abort: bool = "off",
    /// The local address for connections to backends. `transparent` allows an address that does not
    /// belong to this machine, such as the client's; this requires root.
    ///
    /// Syntax: ADDRESS [transparent]
    /// Syntax: off
    ///
    /// ```nginx
    /// proxy_bind 127.0.0.2;
    /// ```
    bind: Option<Bind>,
    /// Whether the kernel sends TCP keepalive probes on connections to backends.
    ///
    /// ```nginx
    /// proxy_socket_keepalive on;
    /// ```
    socket_keepalive: bool = "off",
    /// The size of the receive buffer of connections to backends. 0 means the system's default.
    socket_rcvbuf: Size = "0",
    /// The size of the send buffer of connections to backends. 0 means the system's default.
    socket_sndbuf: Size = "0",
    /// How long connecting to a backend may take.
    ///
    /// ```nginx
    /// proxy_connect_timeout 5s;
    /// ```
    connect_timeout: Milliseconds = "60s",
    /// The longest time between two writes of a request to a backend. It is not a limit for the
    /// whole request.
    ///
    /// ```nginx
    /// proxy_send_timeout 30s;
    /// ```
    send_timeout: Milliseconds = "60s",
    /// Whether responses with a status of 300 or above are handled by `error_page` instead of being
    /// passed on.
    ///
    /// ```nginx
    /// location / {
    ///     proxy_pass http://127.0.0.1:3000;
    ///     proxy_intercept_errors on;
    ///     error_page 502 503 /sorry.html;
    /// }
    /// ```
    intercept_errors: bool = "off",
    /// Whether the client's request header is passed on to the backend.
    pass_request_headers: bool = "on",
    /// Whether the client's request body is passed on to the backend. Authentication requests need
    /// no body.
    ///
    /// ```nginx
    /// location = /auth {
    ///     internal;
    ///     proxy_pass http://127.0.0.1:3001;
    ///     proxy_pass_request_body off;
    ///     proxy_set_header Content-Length "";
    /// }
    /// ```
    pass_request_body: bool = "on",
    /// The largest response header of a backend. A larger one is answered with 502.
    ///
    /// ```nginx
    /// proxy_buffer_size 16k;
    /// ```
    buffer_size: Size = "4k",
    /// The longest time between two reads of a backend's response. It is not a limit for the whole
    /// response. It also applies to tunnels (WebSocket) without traffic.
    ///
    /// ```nginx
    /// location /ws {
    ///     proxy_pass http://127.0.0.1:3000;
    ///     proxy_set_header Upgrade $http_upgrade;
    ///     proxy_set_header Connection upgrade;
    ///     proxy_read_timeout 1h;
    /// }
    /// ```
    read_timeout: Milliseconds = "60s",
    /// The number and size of the buffers for one buffered response; the rest goes to a temporary
    /// file.
    ///
    /// Differs: memory is allocated as needed; only the product of both numbers matters.
    ///
    /// ```nginx
    /// proxy_buffers 16 32k;
    /// ```
    buffers: Buffers = "8 4k",
    /// How much of the buffers may be in the process of being sent to the client.
    ///
    /// Differs: checked, but has no effect, because data being sent does not tie up the other
    /// buffers.
    busy_buffers_size: Option<Size>,
    /// Whether range requests are answered even if the backend does not announce support for them.
    force_ranges: bool = "off",
    /// Limits how many bytes per second are read from the backend for one request. 0 means no
    /// limit.
    ///
    /// ```nginx
    /// proxy_limit_rate 1m;
    /// ```
    limit_rate: SizeTemplate = "0",
    /// Saves responses as files: `on` at the path that the request maps to by `root` or `alias`,
    /// otherwise at this path.
    ///
    /// Syntax: on | off | STRING
    ///
    /// ```nginx
    /// location /images/ {
    ///     root /var/www/mirror;
    ///     error_page 404 = /fetch$uri;
    /// }
    /// location /fetch/ {
    ///     internal;
    ///     proxy_pass http://127.0.0.1:3000/;
    ///     proxy_store /var/www/mirror$uri;
    /// }
    /// ```
    store: Store = "off",
    /// The permissions of files that `proxy_store` saves.
    ///
    /// Syntax: user:PERMISSIONS [group:PERMISSIONS] [all:PERMISSIONS]
    ///
    /// ```nginx
    /// proxy_store_access user:rw group:rw all:r;
    /// ```
    store_access: StoreAccess = "user:rw",
    /// The largest temporary file for one response. Anything beyond memory and this file is read
    /// from the backend at the client's speed. 0 turns temporary files off.
    ///
    /// Default: 1024m
    ///
    /// ```nginx
    /// proxy_max_temp_file_size 0;
    /// ```
    max_temp_file_size: Option<Size>,
    /// How much is written to a temporary file at once.
    ///
    /// Default: twice the larger of proxy_buffer_size and one of proxy_buffers
    temp_file_write_size: Option<Size>,
    /// When a request is sent to another server: after an error, a timeout, an invalid response
    /// header, or a response with one of these statuses. A non-idempotent request (POST, LOCK,
    /// PATCH) is sent again only with `non_idempotent`, unless nothing of it was sent. Only
    /// `proxy_next_upstream` and `grpc_next_upstream` have `http_502` and `http_504`.
    ///
    /// Syntax: error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 |
    /// http_403 | http_404 | http_429 | non_idempotent | updating | off ...
    /// Differs: a server that has sent the first byte of its response is the last one for `error`
    /// and `timeout`.
    ///
    /// ```nginx
    /// proxy_next_upstream error timeout http_503;
    /// ```
    next_upstream: NextUpstream = "error timeout",
    /// The largest number of servers that are tried for one request. 0 means no limit.
    ///
    /// ```nginx
    /// proxy_next_upstream_tries 2;
    /// ```
    next_upstream_tries: Number = "0",
    /// How long after its first try a request may be sent to another server. 0 means no limit.
    ///
    /// ```nginx
    /// proxy_next_upstream_timeout 10s;
    /// ```
    next_upstream_timeout: Milliseconds = "0",
    /// Passes on a field of the response that is hidden by default: `Date`, `Server`, `X-Pad` or
    /// `X-Accel-...`.
    ///
    /// ```nginx
    /// proxy_pass_header Server;
    /// ```
    pass_header: Vec<Text>,
    /// Does not pass on this field of the response.
    ///
    /// ```nginx
    /// proxy_hide_header X-Powered-By;
    /// ```
    hide_header: Vec<Text>,
    /// Ignores these fields of the response, and passes them on like any other: `X-Accel-Redirect`,
    /// `X-Accel-Limit-Rate`, `X-Accel-Buffering`, `X-Accel-Charset`, `X-Accel-Expires`, `Expires`,
    /// `Cache-Control`, `Set-Cookie`, `Vary`.
    ///
    /// Syntax: FIELD...
    ///
    /// ```nginx
    /// proxy_ignore_headers X-Accel-Redirect;
    /// ```
    ignore_headers: Option<IgnoredFields>,
}

/// Whether the configuration read so far contains a `proxy_pass` or the like.
#[derive(Default)]
pub(crate) struct ProxiesAnywhere(pub(crate) bool);

/// Does nothing: the feature of the family uses the settings.
pub fn install(_conf: &Arc<Conf>, _place: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

/// nginx's default of `*_max_temp_file_size`.
const TEMP_FILE_SIZE_MAX: u64 = 1024 * 1024 * 1024;

/// The settings of a family with few directives; the others have fixed values.
pub(crate) struct Connections {
    pub(crate) bind: Option<Bind>,
    pub(crate) socket_keepalive: bool,
    pub(crate) connect_timeout: Milliseconds,
    pub(crate) send_timeout: Milliseconds,
    pub(crate) read_timeout: Milliseconds,
    pub(crate) buffer_size: Size,
    pub(crate) next_upstream: NextUpstream,
    pub(crate) next_upstream_tries: Number,
    pub(crate) next_upstream_timeout: Milliseconds,
}

/// The further settings of a family that speaks HTTP and buffers in neither direction.
pub(crate) struct StreamSettings {
    pub(crate) socket_rcvbuf: Size,
    pub(crate) socket_sndbuf: Size,
    pub(crate) intercept_errors: bool,
    pub(crate) pass_header: Vec<Text>,
    pub(crate) hide_header: Vec<Text>,
    pub(crate) ignore_headers: Option<IgnoredFields>,
}

/// The time limits of a request's steps.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) connect_ms: u64,
    /// Between two writes.
    pub(crate) send_ms: u64,
    /// Between two reads.
    pub(crate) read_ms: u64,
}

impl Conf {
    /// The settings of a family with only these directives: replies are not buffered, and support
    /// ranges.
    pub(crate) fn of_connections(set: Connections, load: &mut Load<'_>) -> Self {
        Self {
            bind: set.bind,
            socket_keepalive: set.socket_keepalive,
            connect_timeout: set.connect_timeout,
            send_timeout: set.send_timeout,
            read_timeout: set.read_timeout,
            buffer_size: set.buffer_size,
            next_upstream: set.next_upstream,
            next_upstream_tries: set.next_upstream_tries,
            next_upstream_timeout: set.next_upstream_timeout,
            buffering: false,
            force_ranges: true,
            ..Layer::defaults(load).resolve()
        }
    }

    /// The settings of a family whose requests and replies are passed on as they come.
    pub(crate) fn of_streams(set: Connections, more: StreamSettings, load: &mut Load<'_>) -> Self {
        Self {
            socket_rcvbuf: more.socket_rcvbuf,
            socket_sndbuf: more.socket_sndbuf,
            intercept_errors: more.intercept_errors,
            pass_header: more.pass_header,
            hide_header: more.hide_header,
            ignore_headers: more.ignore_headers,
            request_buffering: false,
            force_ranges: false,
            ..Self::of_connections(set, load)
        }
    }

    /// Checks that the sizes fit each other, with nginx's messages; `prefix` is the family's.
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
            Some(Size(bytes)) if bytes != 0 && bytes < largest => Err(format!(
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

    /// Decides whether the request survives a client disconnect, and replaces the decision of an
    /// earlier location. `post_action` has no client.
    pub(crate) fn decide_client_abort(&self, x: &Exchange) {
        let goes_on = self.ignore_client_abort || !matches!(self.store, Store::Off);
        x.outlives_client.set(goes_on || x.role == Role::PostAction);
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

    /// The time limits of a request's steps.
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect_ms: self.connect_timeout.0,
            send_ms: self.send_timeout.0,
            read_ms: self.read_timeout.0,
        }
    }

    /// The largest head of a reply, in bytes.
    pub(crate) fn head_bytes_max(&self) -> usize {
        usize::try_from(self.buffer_size.0).unwrap_or(usize::MAX)
    }

    /// The largest trailers of a reply, in bytes.
    pub(crate) fn trailer_bytes_max(&self) -> u32 {
        u32::try_from(self.buffer_size.0).unwrap_or(u32::MAX)
    }

    /// The largest part of a reply in memory, in bytes.
    pub(crate) fn memory_max(&self) -> usize {
        usize::try_from(self.buffers.number.saturating_mul(self.buffers.size)).unwrap_or(usize::MAX)
    }

    /// The largest part of a reply in a temporary file, in bytes.
    pub(crate) fn file_max(&self) -> u64 {
        self.max_temp_file_size.map_or(TEMP_FILE_SIZE_MAX, |size| size.0)
    }
}
