//! A server whose frames a test writes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use net::testing::settle;
use wire::http2::counts::Http2Count;
use wire::http2::frame::{self, END_HEADERS, END_STREAM, HEADERS};
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey};

use super::{sockets, stream};
use crate::{Http2Client, Http2ClientLimits};

pub(super) struct ScriptedServer {
    socket: UnixStream,
    pub(super) endpoint: Http2Endpoint,
    /// The received events, data as its length.
    pub(super) events: Vec<Http2Event>,
    pub(super) data: usize,
    /// Whether the client has closed the connection.
    pub(super) is_closed: bool,
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, kind, flags, stream, payload);
    out
}

/// HEADERS with these fields.
pub(super) fn fields(stream: u32, end_stream: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &block)
}

impl ScriptedServer {
    /// A client and its server, whose settings it knows.
    pub(super) async fn connect(limits: Http2ClientLimits) -> (Http2Client, Self) {
        // Streams that end without the endpoint stay open for it.
        let config = Http2Config { max_concurrent_streams: 10_000, ..Http2Config::default() };
        let (client, mut server) = Self::silent(limits, config);
        server.turn().await;
        assert!(server.events.contains(&Http2Event::SettingsAcked));
        server.events.clear();
        (client, server)
    }

    /// A client and a server that has neither read nor written.
    pub(super) fn silent(limits: Http2ClientLimits, config: Http2Config) -> (Http2Client, Self) {
        let (near, socket) = sockets();
        let endpoint = Http2Endpoint::new(Http2Role::Server, config);
        let server = Self { socket, endpoint, events: Vec::new(), data: 0, is_closed: false };
        (Http2Client::start(stream(near), limits), server)
    }

    /// Exchanges all pending bytes.
    pub(super) async fn turn(&mut self) {
        for _ in 0..3 {
            let output = self.endpoint.output().to_vec();
            self.endpoint.advance_output(output.len());
            self.write(&output);
            settle().await;
            self.read();
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        // A client that is gone receives nothing.
        let _ = self.socket.write_all(bytes);
    }

    /// Reads to the end and discards the bytes.
    pub(super) fn drain(&mut self) {
        let end = self.socket.read_to_end(&mut Vec::new());
        self.is_closed = end.is_ok_and(|count| count > 0);
    }

    fn read(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => return self.is_closed = true,
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.is_closed = true,
            }
        }
    }

    fn take(&mut self, mut input: &[u8]) {
        loop {
            let received = self.endpoint.receive(input).unwrap();
            input = &input[received.consumed..];
            match received.event {
                None => return,
                Some(Http2Event::Data { range, .. }) => self.data += range.len(),
                Some(event) => self.events.push(event),
            }
        }
    }

    /// The streams that the client has opened.
    pub(super) fn opened(&self) -> Vec<StreamKey> {
        let opened = |event: &Http2Event| match event {
            Http2Event::Head { stream, .. } => Some(*stream),
            _ => None,
        };
        self.events.iter().filter_map(opened).collect()
    }

    /// The streams that the client has reset.
    pub(super) fn resets(&self) -> Vec<(u32, Http2Code)> {
        let reset = |event: &Http2Event| match event {
            Http2Event::Reset { stream, code } => Some((stream.id, *code)),
            _ => None,
        };
        self.events.iter().filter_map(reset).collect()
    }

    /// The number of PINGs that the client has sent.
    pub(super) fn pings(&self) -> u64 {
        self.endpoint.counts().get(Http2Count::Pings)
    }

    /// Whether the client has sent GOAWAY.
    pub(super) fn has_goaway(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Http2Event::GoAway { .. }))
    }
}
