//! Two-party scripts: frames in, events and frames out.

mod flood;
mod flow;
mod replies;
mod rest;
mod streams;

use alloc::vec::Vec;

use super::frame::{self, ACK, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, FrameHead, HEADERS};
use super::{
    Http2Code, Http2Config, Http2Endpoint, Http2Error, Http2Event, Http2Role, PREFACE, StreamKey,
};

/// A frame as bytes.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, kind, flags, stream, payload);
    out
}

/// A header block of literals without a table.
pub(super) fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "a short text");
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

pub(super) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

/// HEADERS of a request.
pub(super) fn request(stream: u32, end_stream: bool) -> Vec<u8> {
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &literals(&GET))
}

/// A connection whose input a test writes.
pub(super) struct Script {
    pub(super) endpoint: Http2Endpoint,
}

impl Script {
    /// A server whose client has sent its preface and its settings.
    pub(super) fn server(config: Http2Config) -> Self {
        let mut script = Self { endpoint: Http2Endpoint::new(Http2Role::Server, config) };
        let kinds: Vec<u8> = script.sent().iter().map(|sent| sent.0.kind).collect();
        assert_eq!(kinds, [frame::SETTINGS, frame::WINDOW_UPDATE]);
        let opening = [&PREFACE[..], &frame(frame::SETTINGS, 0, 0, &[])].concat();
        script.receives(&opening).unwrap();
        script.receives(&frame(frame::SETTINGS, ACK, 0, &[])).unwrap();
        script.sent();
        script
    }

    /// A client whose server has sent its settings.
    pub(super) fn client(config: Http2Config) -> Self {
        let mut script = Self { endpoint: Http2Endpoint::new(Http2Role::Client, config) };
        script.endpoint.advance_output(PREFACE.len());
        script.receives(&frame(frame::SETTINGS, 0, 0, &[])).unwrap();
        script.receives(&frame(frame::SETTINGS, ACK, 0, &[])).unwrap();
        script.sent();
        script
    }

    /// Opens a stream, as a client, with this method.
    pub(super) fn asks(&mut self, method: &str, end_stream: bool) -> StreamKey {
        let stream = self.endpoint.open().unwrap();
        let mut head = self.endpoint.begin_fields(stream).unwrap();
        head.field(b":method", method.as_bytes());
        GET[1..].iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        head.finish(end_stream);
        stream
    }

    /// Takes all of the input. Returns the events, with their data as bytes.
    pub(super) fn receives(&mut self, input: &[u8]) -> Result<Vec<Seen>, Http2Error> {
        let (mut seen, mut at) = (Vec::new(), 0);
        loop {
            let received = self.endpoint.receive(&input[at..])?;
            let taken = &input[at..];
            at += received.consumed;
            let Some(event) = received.event else { break };
            seen.push(match event {
                Http2Event::Data { stream, range, end_stream } => {
                    Seen::Data(stream.id, taken[range].to_vec(), end_stream)
                }
                other => Seen::Event(other),
            });
        }
        assert_eq!(at, input.len(), "all of the input is taken");
        Ok(seen)
    }

    /// Takes the frames from the output.
    pub(super) fn sent(&mut self) -> Vec<(FrameHead, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut output = self.endpoint.output();
        while let Some((head, rest)) = output.split_first_chunk::<FRAME_HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            let (payload, rest) = rest.split_at(head.length as usize);
            frames.push((head, payload.to_vec()));
            output = rest;
        }
        assert!(output.is_empty(), "frames are whole");
        self.endpoint.advance_output(self.endpoint.output().len());
        frames
    }

    /// Takes the output. Returns the streams that it resets, and the codes.
    pub(super) fn resets(&mut self) -> Vec<(u32, Http2Code)> {
        let sent = self.sent();
        let resets = sent.iter().filter(|sent| sent.0.kind == frame::RST_STREAM);
        resets.map(|(head, payload)| (head.stream, code(payload))).collect()
    }

    /// Opens a stream with a request.
    pub(super) fn opens(&mut self, id: u32, end_stream: bool) -> StreamKey {
        match self.receives(&request(id, end_stream)).unwrap()[..] {
            [Seen::Event(Http2Event::Head { stream, .. })] => stream,
            ref other => panic!("{other:?}"),
        }
    }

    /// Sends a reply without a body.
    pub(super) fn replies(&mut self, stream: StreamKey, end_stream: bool) {
        let mut head = self.endpoint.begin_fields(stream).unwrap();
        head.status(200);
        head.finish(end_stream);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Event(Http2Event),
    Data(u32, Vec<u8>, bool),
}

/// The code of RST_STREAM.
pub(super) fn code(payload: &[u8]) -> Http2Code {
    Http2Code(u32::from_be_bytes(payload.try_into().unwrap()))
}
