//! Passes the server's frames to the streams.

use wire::http2::{Http2Code, Http2Event, StreamKey};

use crate::StreamFailure;
use crate::limits::INTERIM_REPLIES_MAX;
use crate::state::Http2ClientState;
use crate::stream_state::{ClientHead, SendWait};

impl Http2ClientState {
    /// Processes an event of the endpoint. `input` is the endpoint's input.
    pub(crate) fn take_event(&mut self, event: Http2Event, input: &[u8]) {
        match event {
            Http2Event::Head { stream, end_stream } => self.take_head(stream, end_stream),
            Http2Event::Interim { stream } => self.take_head(stream, false),
            Http2Event::Data { stream, range, end_stream } => {
                self.take_data(stream, &input[range], end_stream);
            }
            Http2Event::Trailers { stream } => self.take_trailers(stream),
            Http2Event::Malformed { stream, what } => {
                self.fail_open(stream, StreamFailure::Malformed(what));
            }
            Http2Event::Reset { stream, code } => self.take_reset(stream, code),
            Http2Event::Provoked { stream, code } => {
                self.fail_open(stream, StreamFailure::of_provoked(code));
            }
            Http2Event::Writable { stream: Some(key) } => {
                if let Some(stream) = self.stream(key) {
                    stream.borrow_mut().wake_sender();
                }
            }
            Http2Event::Writable { stream: None } => self.wake_senders(SendWait::Window),
            Http2Event::GoAway { last_stream, code } => self.take_go_away(last_stream, code),
            Http2Event::SettingsAcked | Http2Event::Pong { .. } => {}
        }
    }

    fn take_head(&mut self, key: StreamKey, end_stream: bool) {
        self.pings = 0;
        let Some(shared) = self.stream(key) else { return };
        if self.has_too_large_fields() {
            return self.fail(&shared, StreamFailure::Malformed("sent too large header"));
        }
        let reply = self.endpoint.reply();
        let is_interim = reply.is_interim();
        if is_interim && shared.borrow().interim_replies == INTERIM_REPLIES_MAX {
            return self.fail(&shared, StreamFailure::Malformed("sent too many interim replies"));
        }
        let fields = self.endpoint.fields().clone();
        let mut stream = shared.borrow_mut();
        stream.add_head(ClientHead { status: reply.status, fields, is_interim, end_stream });
        self.release_over(&stream);
    }

    fn take_data(&mut self, key: StreamKey, data: &[u8], is_last: bool) {
        self.pings = 0;
        let Some(shared) = self.stream(key) else { return };
        let mut stream = shared.borrow_mut();
        stream.add_data(data, is_last);
        // Padding uses up the window, too, but is never read.
        self.open_window(&mut stream);
        self.release_over(&stream);
    }

    fn take_trailers(&mut self, key: StreamKey) {
        let Some(shared) = self.stream(key) else { return };
        if self.has_too_large_fields() {
            return self.fail(&shared, StreamFailure::Malformed("sent too large header"));
        }
        let mut stream = shared.borrow_mut();
        stream.trailers = Some(self.endpoint.fields().clone());
        stream.add_data(&[], true);
        self.release_over(&stream);
    }

    fn has_too_large_fields(&self) -> bool {
        let lengths = self.endpoint.fields().iter().map(|(name, value)| name.len() + value.len());
        lengths.sum::<usize>() > self.limits.head_bytes_max as usize
    }

    fn take_reset(&mut self, key: StreamKey, code: Http2Code) {
        let Some(shared) = self.stream(key) else { return };
        let has_reply = shared.borrow().has_reply;
        self.fail(&shared, StreamFailure::of_reset(code, has_reply));
    }

    /// Fails later streams, which the server will not process. The others continue. A server that
    /// ends in good order sends a first GOAWAY that excludes none.
    fn take_go_away(&mut self, last_stream: u32, code: Http2Code) {
        let failure = match code {
            Http2Code::NO_ERROR => StreamFailure::GoneAway,
            _ => StreamFailure::Unprocessed,
        };
        for shared in self.streams() {
            if shared.borrow().key.id > last_stream {
                self.fail_unprocessed(&shared, failure.clone());
            }
        }
    }

    fn fail_open(&mut self, key: StreamKey, failure: StreamFailure) {
        if let Some(shared) = self.stream(key) {
            self.fail(&shared, failure);
        }
    }
}
