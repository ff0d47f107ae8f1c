//! Input: hands the events of the frame machine to their streams.

use std::rc::Rc;

use net::buffers;
use observe::Level;
use wire::http2::{Http2Code, Http2Event, Received, StreamKey};

use super::connection::Http2Connection;
use super::stream_link::StreamLink;
use super::totals;

impl<F: Future<Output = ()>> Http2Connection<F> {
    /// Processes the input, as far as the task's share goes, but at least one event. A protocol
    /// error ends the connection.
    pub(super) fn take_input<R>(&mut self, run: &R)
    where
        R: Fn(Rc<StreamLink>, bool) -> F,
    {
        self.lend_output();
        let input = std::mem::take(&mut self.input);
        while let Some((consumed, event)) = self.receive(&input[self.taken..]) {
            let rest = &input[self.taken..];
            self.taken += consumed;
            self.take_event(event, rest, run);
            if !net::has_share() {
                self.input = input;
                return;
            }
        }
        self.taken = 0;
        buffers::give_back(input);
    }

    /// The next event; `None`: all input is processed, or the client has broken the protocol.
    fn receive(&mut self, input: &[u8]) -> Option<(usize, Http2Event)> {
        let mut endpoint = self.shared.endpoint.borrow_mut();
        let received = endpoint.receive(input);
        net::spend(endpoint.take_work());
        drop(endpoint);
        match received {
            Ok(Received { consumed, event }) => event.map(|event| (consumed, event)),
            Err(error) => {
                error.limit.into_iter().for_each(totals::note_exceeded);
                self.log(Level::Info, format_args!("client {}", error.what));
                self.stop_streams();
                None
            }
        }
    }

    /// Makes sure that the output has a buffer before answers and replies are written.
    fn lend_output(&self) {
        let mut endpoint = self.shared.endpoint.borrow_mut();
        if !endpoint.has_buffer()
            && let Some(unneeded) = endpoint.give_buffer(buffers::lend())
        {
            buffers::give_back(unneeded);
        }
    }

    fn take_event<R>(&mut self, event: Http2Event, input: &[u8], run: &R)
    where
        R: Fn(Rc<StreamLink>, bool) -> F,
    {
        match event {
            Http2Event::Head { stream, end_stream } => self.begin_stream(stream, end_stream, run),
            Http2Event::Data { stream, range, end_stream } => {
                if let Some(link) = self.streams.link(stream) {
                    link.take_data(&input[range], end_stream);
                }
            }
            Http2Event::Trailers { stream } => {
                if let Some(link) = self.streams.link(stream) {
                    link.take_trailers(self.shared.endpoint.borrow().fields());
                    link.take_data(&[], true);
                }
            }
            Http2Event::Malformed { stream, what } => {
                if let Some(link) = self.streams.link(stream) {
                    link.fail(what);
                }
            }
            Http2Event::Reset { stream, code } => self.end_stream(stream, code, true),
            Http2Event::Provoked { stream, code } => self.end_stream(stream, code, false),
            Http2Event::Writable { stream: Some(stream) } => {
                self.streams.link(stream).into_iter().for_each(|link| unblock(link));
            }
            Http2Event::Writable { stream: None } => {
                self.streams.links().for_each(|link| unblock(link));
            }
            Http2Event::Interim { .. }
            | Http2Event::SettingsAcked
            | Http2Event::Pong { .. }
            | Http2Event::GoAway { .. } => {}
        }
    }

    fn begin_stream<R>(&mut self, stream: StreamKey, end_stream: bool, run: &R)
    where
        R: Fn(Rc<StreamLink>, bool) -> F,
    {
        self.waiting = None;
        self.timers.note_stream();
        let client = &self.client;
        client.requests.set(client.requests.get() + 1);
        let admits = self.policy(|location| location.core.keepalive.admits_connection(client));
        if !admits {
            self.go_away(Http2Code::NO_ERROR);
        }
        let begun = (self.context.generation().number, end_stream);
        self.streams.start(&self.shared, stream, begun, |link| run(link, end_stream));
    }

    /// A stream was reset, by the client or because of what it sent.
    fn end_stream(&mut self, stream: StreamKey, code: Http2Code, by_client: bool) {
        let id = stream.id;
        match (by_client, code) {
            (true, Http2Code::CANCEL) => {
                self.log(Level::Info, format_args!("client canceled stream {id}"));
            }
            (true, Http2Code::INTERNAL_ERROR) => {
                let why = "due to internal error";
                self.log(Level::Info, format_args!("client terminated stream {id} {why}"));
            }
            (true, Http2Code(code)) => {
                let message = format_args!("client terminated stream {id} with status {code}");
                self.log(Level::Info, message);
            }
            (false, Http2Code(code)) => {
                let message = format_args!("client made stream {id} end with status {code}");
                self.log(Level::Info, message);
            }
        }
        if let Some(link) = self.streams.link(stream) {
            link.lose_client();
        }
    }
}

/// Makes a stream ready that waited for a window.
fn unblock(link: &StreamLink) {
    if link.is_blocked.replace(false) {
        link.waker.make_ready();
    }
}
