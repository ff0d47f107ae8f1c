//! What makes a virtual server: its sockets, its names, and how its requests are read.

mod names;

use std::sync::Arc;

use conf::{Buffers, Milliseconds, Number, Result, Size};

use wire::http1::request::HeadLimits;

use crate::site::{ListenLine, Name, Place, Reading};
use names::Names;

conf::directives! {
    also {
        /// Sets the address and port of the server.
        listen(1..=usize::MAX) in SERVER => listens;
        /// Sets the names of the server.
        server_name(1..=usize::MAX) in SERVER => names;
    }
    slots {
        /// The sockets.
        listens: Vec<ListenLine>,
        /// The names.
        names: Option<Names>,
    }

    in MAIN | SERVER;

    /// Time for reading the head of a request.
    client_header_timeout: Milliseconds = "60s",
    /// Size of the buffer for reading the head of a request.
    client_header_buffer_size: Size = "1k",
    /// Number and size of the buffers for large heads.
    large_client_header_buffers: Buffers = "4 8k",
    /// Header fields allowed in one request.
    max_headers: Number = "1000",
    /// Whether header fields with invalid names are passed over.
    ignore_invalid_headers: bool = "on",
    /// Whether header names may have underscores.
    underscores_in_headers: bool = "off",
    /// Whether adjacent slashes in a path are one.
    merge_slashes: bool = "on",
}

/// Nothing hooks into a location.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}

impl Conf {
    /// The sockets.
    pub fn listens(&self) -> &[ListenLine] {
        &self.listens
    }

    /// The names, of which there is always one.
    pub fn names(&self) -> Vec<Name> {
        self.names.clone().unwrap_or_default().0
    }

    /// How requests are read.
    pub fn reading(&self) -> Reading {
        let Buffers { number, size } = self.large_client_header_buffers;
        let head = HeadLimits {
            client_header_buffer_size: self.client_header_buffer_size.0 as usize,
            large_client_header_buffers: (number as usize, size as usize),
            max_headers: self.max_headers.0 as usize,
            ignore_invalid_headers: self.ignore_invalid_headers,
            underscores_in_headers: self.underscores_in_headers,
            ..HeadLimits::default()
        };
        Reading {
            client_header_timeout_ms: self.client_header_timeout.0,
            head,
            merge_slashes: self.merge_slashes,
        }
    }
}
