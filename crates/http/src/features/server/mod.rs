//! What makes a virtual server: its sockets, its names, and how its requests are read.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Buffers, Directive, Inherited, Load, Milliseconds, Number, Result, Size, Value};

use wire::http1::request::HeadLimits;

use crate::site::{ListenLine, Place, Reading};

conf::directives! {
    in MAIN | SERVER;

    /// Sets the address and port of the server.
    listen: Vec<ListenLine>,
    /// Sets the names of the server.
    server_name: Option<Names>,
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

/// The names of one server.
#[derive(Clone)]
pub struct Names(pub Vec<Box<[u8]>>);

impl Value for Names {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self(from.args.iter().map(|word| word.text.clone()).collect()))
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.0.append(&mut Self::parse(from, load)?.0);
        Ok(())
    }
}

/// Nothing hooks into a location.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}

impl Conf {
    /// The sockets.
    pub fn listens(&self) -> &[ListenLine] {
        &self.listen
    }

    /// The names.
    pub fn names(&self) -> &[Box<[u8]>] {
        self.server_name.as_ref().map_or(&[], |names| &names.0)
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
