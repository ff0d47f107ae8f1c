//! A TLS session under a stream: rustls does the handshake, then its keys move to our own records.
//!
//! ```text
//! Handshaking (rustls) --finished--> EstablishedTls (record keys, KernelConnection for new keys)
//!         |                               |
//!         +----------- error -------------+--> Failed: only an alert is left to send
//! ```
//!
//! A waiting session holds no buffer: received bytes are in a lent one until they are taken, sealed
//! records until the socket has accepted them.

use std::io::{self, IoSlice, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustls::unbuffered::{ConnectionState, UnbufferedStatus, WriteTraffic};

use super::details::TlsDetails;
use super::established::EstablishedTls;
use super::input::TlsInput;
use super::output::TlsOutput;
use super::record::PLAINTEXT_MAX;
use super::side::TlsSide;
use crate::{SecureSession, SessionInput, buffers};

/// Records that AES-GCM seals with one key before TLS 1.3 changes it (RFC 8446 section 5.5).
const KEY_RECORDS_MAX: u64 = 1 << 24;

/// A session of either side.
pub(crate) struct TlsSession<S: TlsSide> {
    phase: TlsPhase<S>,
    input: TlsInput,
    /// Plaintext opened by rustls: early data, and data that came with the last flight.
    early: Vec<u8>,
    output: TlsOutput,
    /// Maximum number of bytes of plaintext in a record.
    record_max: usize,
    /// Details of the handshake. With early data they are known before the handshake is over.
    details: Option<Arc<TlsDetails>>,
    /// Whether the bytes received before the session are still unprocessed.
    is_new: bool,
    is_ended: bool,
    is_closed: bool,
    ignores_cut: bool,
}

enum TlsPhase<S: TlsSide> {
    Handshaking(Box<S>),
    EstablishedTls(Box<EstablishedTls<S>>),
    Failed,
}

impl<S: TlsSide> TlsSession<S> {
    /// A session before its handshake. `received` are the bytes received so far.
    pub(crate) fn new(side: S, record_max: usize, received: &[u8]) -> Self {
        let mut input = TlsInput::default();
        if !received.is_empty() {
            input.bytes = buffers::lend_large();
            input.bytes.extend_from_slice(received);
        }
        Self {
            phase: TlsPhase::Handshaking(Box::new(side)),
            input,
            early: Vec::new(),
            output: TlsOutput::default(),
            record_max: record_max.clamp(1, PLAINTEXT_MAX),
            details: None,
            is_new: true,
            is_ended: false,
            is_closed: false,
            ignores_cut: false,
        }
    }

    /// Sets whether an end without close_notify counts as a proper end.
    pub(crate) fn ignoring_cut(mut self, ignores_cut: bool) -> Self {
        self.ignores_cut = ignores_cut;
        self
    }

    /// Continues the handshake with the bytes received.
    fn advance(&mut self) -> io::Result<()> {
        let TlsPhase::Handshaking(side) = &mut self.phase else { return Ok(()) };
        let mut step = HandshakeStep {
            input: &mut self.input,
            early: &mut self.early,
            output: &mut self.output,
            is_ended: &mut self.is_ended,
        };
        match step.run(&mut **side) {
            Ok(()) if side.is_handshaking() => {
                if !self.early.is_empty() && self.details.is_none() {
                    let details = side.details();
                    details.is_early.store(true, Ordering::Relaxed);
                    self.details = Some(Arc::new(details));
                }
                Ok(())
            }
            Ok(()) => self.establish(),
            Err(error) => {
                // rustls may have an alert for the peer.
                let _ = step.drain(&mut **side);
                self.fail();
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Takes over the keys from rustls.
    fn establish(&mut self) -> io::Result<()> {
        let TlsPhase::Handshaking(side) = mem::replace(&mut self.phase, TlsPhase::Failed) else {
            return Ok(());
        };
        match &self.details {
            Some(early) => early.is_early.store(false, Ordering::Relaxed),
            None => self.details = Some(Arc::new(side.details())),
        }
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let (secrets, kernel) = side.into_keys().map_err(invalid)?;
        let established = EstablishedTls::new(secrets, kernel).ok_or(io::ErrorKind::Unsupported)?;
        self.phase = TlsPhase::EstablishedTls(Box::new(established));
        self.open_next()
    }

    /// Opens complete records until one has plaintext.
    fn open_next(&mut self) -> io::Result<()> {
        let TlsPhase::EstablishedTls(established) = &mut self.phase else { return Ok(()) };
        let opened = established.open_next(&mut self.input, &mut self.output, &mut self.is_ended);
        if let Err(fault) = opened {
            established.say_why(&fault, &mut self.output);
            self.fail();
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault.text));
        }
        self.input.release();
        Ok(())
    }

    fn fail(&mut self) {
        self.phase = TlsPhase::Failed;
        self.input.clear();
        (self.is_ended, self.is_closed) = (true, true);
    }
}

/// Sends data before the client's part of the handshake is over; `false`: sending is not permitted
/// yet. rustls also processes received bytes, and must not be called again after an error.
fn send_early<S: TlsSide>(
    side: &mut S,
    input: &mut TlsInput,
    send: impl FnOnce(&mut WriteTraffic<'_, S::Data>),
) -> Result<bool, rustls::Error> {
    let UnbufferedStatus { discard, state } = side.process(&mut input.bytes[input.next..]);
    let sent = match state? {
        ConnectionState::WriteTraffic(mut traffic) => {
            send(&mut traffic);
            true
        }
        _ => false,
    };
    input.next += discard;
    Ok(sent)
}

/// The parts of a session that a step of the handshake needs.
struct HandshakeStep<'s> {
    input: &'s mut TlsInput,
    early: &'s mut Vec<u8>,
    output: &'s mut TlsOutput,
    is_ended: &'s mut bool,
}

impl HandshakeStep<'_> {
    fn run<S: TlsSide>(&mut self, side: &mut S) -> Result<(), rustls::Error> {
        while side.is_handshaking() && self.once(side)? {}
        self.drain(side)?;
        self.input.release();
        Ok(())
    }

    /// Takes only the output of rustls: after an error or the end of the handshake it must not
    /// process the input again, whose records it has opened and whose offsets it has kept.
    fn drain<S: TlsSide>(&mut self, side: &mut S) -> Result<(), rustls::Error> {
        while side.wants_write() {
            self.once(side)?;
        }
        Ok(())
    }

    /// Whether there is more to do. After the handshake, records are left to our own code.
    fn once<S: TlsSide>(&mut self, side: &mut S) -> Result<bool, rustls::Error> {
        let takes_input = side.is_handshaking() && !side.wants_write();
        let waiting =
            if takes_input { &mut self.input.bytes[self.input.next..] } else { &mut [][..] };
        let UnbufferedStatus { discard, state } = side.process(waiting);
        self.input.next += discard;
        let state = state?;
        let goes_on = match state {
            ConnectionState::EncodeTlsData(mut data) => {
                let records = self.output.append_with(|out| data.encode(out));
                side.note_sent(records);
                true
            }
            ConnectionState::TransmitTlsData(sent) => {
                sent.done();
                true
            }
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    self.early.extend_from_slice(record?.payload);
                }
                true
            }
            ConnectionState::ReadEarlyData(data) => {
                S::read_early(data, self.early)?;
                true
            }
            ConnectionState::PeerClosed => {
                *self.is_ended = true;
                true
            }
            _ => false,
        };
        Ok(goes_on)
    }
}

impl<S: TlsSide> SecureSession for TlsSession<S> {
    /// False as soon as there is early data, which is served before the handshake is over.
    fn is_handshaking(&self) -> bool {
        matches!(self.phase, TlsPhase::Handshaking(_)) && self.details.is_none()
    }

    fn is_early(&self) -> bool {
        matches!(self.phase, TlsPhase::Handshaking(_)) && self.details.is_some()
    }

    fn proceed(&mut self) -> io::Result<()> {
        if mem::take(&mut self.is_new) { self.advance() } else { Ok(()) }
    }

    fn receive(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize> {
        if matches!(self.phase, TlsPhase::Failed) {
            return Ok(0);
        }
        let count = self.input.read(socket)?;
        match &self.phase {
            // rustls must get no more input after our close_notify.
            TlsPhase::Handshaking(_) if self.is_closed => self.input.clear(),
            TlsPhase::Handshaking(_) => self.advance()?,
            _ => self.open_next()?,
        }
        Ok(count)
    }

    fn has_plaintext(&self) -> bool {
        !self.early.is_empty() || !self.input.plain.is_empty()
    }

    fn take_plaintext(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize {
        if !self.early.is_empty() {
            let count = self.early.len().min(most);
            buffer.extend(self.early.drain(..count));
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            return count;
        }
        let count = self.input.plain.len().min(most);
        let start = self.input.plain.start;
        buffer.extend_from_slice(&self.input.bytes[start..start + count]);
        self.input.plain.start += count;
        if self.input.plain.is_empty() {
            // A fault in a later record ends the session after the plaintext taken here.
            let _ = self.open_next();
        }
        count
    }

    fn is_ended(&self) -> bool {
        self.is_ended && !self.has_plaintext()
    }

    fn is_cut(&self) -> bool {
        let is_whole = self.is_ended() && !matches!(self.phase, TlsPhase::Failed);
        !is_whole && !self.ignores_cut
    }

    fn send(&mut self, plaintext: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let established = match &mut self.phase {
            TlsPhase::EstablishedTls(established) => established,
            TlsPhase::Handshaking(side) => {
                let Some(slice) = plaintext.iter().find(|slice| !slice.is_empty()) else {
                    return Ok(0);
                };
                let piece = &slice[..slice.len().min(self.record_max)];
                let sent = send_early(&mut **side, &mut self.input, |traffic| {
                    self.output.append_with(|out| traffic.encrypt(piece, out));
                });
                if sent.is_err() {
                    self.fail();
                }
                return match sent {
                    Ok(true) => Ok(piece.len()),
                    _ => Err(io::ErrorKind::BrokenPipe.into()),
                };
            }
            TlsPhase::Failed => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        if established.needs_key(KEY_RECORDS_MAX) {
            established.update_key(&mut self.output).map_err(|_| invalid())?;
        }
        self.output
            .seal_data(&mut established.seal, plaintext, self.record_max)
            .map_err(|_| invalid())
    }

    fn close(&mut self) {
        if mem::replace(&mut self.is_closed, true) {
            return;
        }
        match &mut self.phase {
            TlsPhase::EstablishedTls(established) => {
                // Errors are ignored.
                let _ = established.say_end(&mut self.output);
            }
            TlsPhase::Handshaking(side) => {
                let sent = send_early(&mut **side, &mut self.input, |traffic| {
                    self.output.append_with(|out| traffic.queue_close_notify(out));
                });
                if sent.is_err() {
                    self.fail();
                }
            }
            TlsPhase::Failed => {}
        }
    }

    fn wants_flush(&self) -> bool {
        !self.output.is_empty()
    }

    fn flush(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        self.output.flush(socket)
    }

    fn details(&self) -> Option<&Arc<TlsDetails>> {
        self.details.as_ref()
    }
}

impl<S: TlsSide> Drop for TlsSession<S> {
    fn drop(&mut self) {
        self.input.clear();
    }
}
