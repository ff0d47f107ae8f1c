//! A TLS session under a stream: rustls does the handshake, and its keys move to our own records
//! once it is over.
//!
//! ```text
//! Handshaking (rustls) --finished--> EstablishedTls (record keys, KernelConnection for new keys)
//!         |                               |
//!         +----------- error -------------+--> Failed: what is left to say is an alert
//! ```
//!
//! A session that waits holds no buffer: received bytes stand in a lent one as long as there are
//! any, sealed records as long as the socket has not taken them.

use std::io::{self, IoSlice, Write};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustls::kernel::KernelConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus, WriteTraffic};

use super::details::TlsDetails;
use super::output::TlsOutput;
use super::record::{self, ContentType, PLAINTEXT_MAX, RECORD_MAX, RecordFault, RecordKey};
use super::side::TlsSide;
use crate::{SecureSession, SessionInput, buffers};

/// Handshake bytes of one flight that wait for the rest, at most. rustls takes no longer message.
const HANDSHAKE_MAX: usize = 0xffff + RECORD_MAX;
/// Room for a read, at least.
const READ_MIN: usize = 4096;
/// Records without data that may follow each other: empty ones, warnings, key updates.
const DATALESS_MAX: u32 = 32;
/// Records that AES-GCM seals with one key before TLS 1.3 changes it (RFC 8446 section 5.5).
const KEY_RECORDS_MAX: u64 = 1 << 24;

const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const KEY_UPDATE: u8 = 24;

/// A session of either side.
pub(crate) struct TlsSession<S: TlsSide> {
    phase: TlsPhase<S>,
    input: TlsInput,
    /// Plaintext that rustls opened: early data, and what came together with the last flight.
    early: Vec<u8>,
    output: TlsOutput,
    /// Bytes of plaintext in a record, at most.
    record_max: usize,
    /// What was agreed on. Early data makes it known before the handshake is over.
    details: Option<Arc<TlsDetails>>,
    /// Whether nobody has looked yet at what came before there was a session.
    is_new: bool,
    is_ended: bool,
    is_closed: bool,
}

enum TlsPhase<S: TlsSide> {
    Handshaking(Box<S>),
    EstablishedTls(Box<EstablishedTls<S>>),
    Failed,
}

struct EstablishedTls<S: TlsSide> {
    seal: RecordKey,
    open: RecordKey,
    /// Makes new keys; `None` in TLS 1.2, where keys do not change.
    kernel: Option<KernelConnection<S::Data>>,
    /// A handshake message of which not all has come.
    message: Vec<u8>,
    dataless: u32,
}

/// Received bytes: a part that was opened, then records that wait.
#[derive(Default)]
struct TlsInput {
    bytes: Vec<u8>,
    /// Plaintext in the record that was opened last.
    plain: Range<usize>,
    /// Where the records begin that nobody has looked at.
    next: usize,
}

/// What ends a session: our message, and the alert that the peer is sent.
struct TlsFault {
    alert: u8,
    text: &'static str,
}

impl<S: TlsSide> TlsSession<S> {
    /// A session that has still to be agreed on. `received` is what has come of it.
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
        }
    }

    /// Goes on with the handshake as far as what was received leads.
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
                // rustls has an alert for the peer.
                let _ = step.drain(&mut **side);
                self.fail();
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Takes the keys over from rustls.
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
        let is_tls13 = kernel.protocol_version() == rustls::ProtocolVersion::TLSv1_3;
        let keys = RecordKey::new(secrets.tx, is_tls13).zip(RecordKey::new(secrets.rx, is_tls13));
        let Some((seal, open)) = keys else { return Err(io::ErrorKind::Unsupported.into()) };
        self.phase = TlsPhase::EstablishedTls(Box::new(EstablishedTls {
            seal,
            open,
            kernel: is_tls13.then_some(kernel),
            message: Vec::new(),
            dataless: 0,
        }));
        self.open_next()
    }

    /// Opens records until one has plaintext, as far as complete ones are there.
    fn open_next(&mut self) -> io::Result<()> {
        let TlsPhase::EstablishedTls(established) = &mut self.phase else { return Ok(()) };
        let opened = established.open_next(&mut self.input, &mut self.output, &mut self.is_ended);
        if let Err(fault) = opened {
            // Whether the alert can still be sealed is no matter.
            let _ = established.alert(FATAL, fault.alert, &mut self.output);
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

/// Sends something before the client's part of the handshake is over; `false`: it may not be sent
/// yet. rustls looks at what was received, too, and must not be called again after an error.
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

/// One step of a handshake: what rustls needs of the session.
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

    /// Takes what rustls has to send, and nothing else: after an error or the end of the handshake
    /// it must not look at the input again, where it has noted places and opened records.
    fn drain<S: TlsSide>(&mut self, side: &mut S) -> Result<(), rustls::Error> {
        while side.wants_write() {
            self.once(side)?;
        }
        Ok(())
    }

    /// Whether there is more to do. Once the handshake is over, what follows is left to our own
    /// records.
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

impl<S: TlsSide> EstablishedTls<S> {
    fn open_next(
        &mut self,
        input: &mut TlsInput,
        output: &mut TlsOutput,
        is_ended: &mut bool,
    ) -> Result<(), TlsFault> {
        while input.plain.is_empty() && !*is_ended {
            let Some(length) = record::complete(&input.bytes[input.next..])? else { break };
            let start = input.next;
            input.next += length;
            let record = &mut input.bytes[start..start + length];
            let (kind, text) = self.open.open(record)?;
            let text = start + text.start..start + text.end;
            match kind {
                ContentType::APPLICATION_DATA if !text.is_empty() => {
                    self.dataless = 0;
                    input.plain = text;
                    break;
                }
                ContentType::APPLICATION_DATA => {}
                ContentType::ALERT => *is_ended = is_end(&input.bytes[text])?,
                ContentType::HANDSHAKE => self.take_handshake(&input.bytes[text], output)?,
                _ => return Err(UNEXPECTED),
            }
            self.dataless += 1;
            if self.dataless > DATALESS_MAX {
                return Err(UNEXPECTED);
            }
        }
        Ok(())
    }

    /// Messages of the handshake protocol after the handshake.
    fn take_handshake(&mut self, text: &[u8], output: &mut TlsOutput) -> Result<(), TlsFault> {
        self.message.extend_from_slice(text);
        while let [kind, a, b, c, rest @ ..] = &*self.message {
            let (kind, length) = (*kind, u32::from_be_bytes([0, *a, *b, *c]) as usize);
            if length > HANDSHAKE_MAX {
                return Err(UNEXPECTED);
            }
            if rest.len() < length {
                break;
            }
            let mut message = mem::take(&mut self.message);
            self.obey(kind, &message[4..4 + length], output)?;
            message.drain(..4 + length);
            self.message = message;
        }
        if self.message.is_empty() {
            self.message = Vec::new();
        }
        Ok(())
    }

    fn obey(&mut self, kind: u8, body: &[u8], output: &mut TlsOutput) -> Result<(), TlsFault> {
        match (&mut self.kernel, kind) {
            (Some(kernel), KEY_UPDATE) => {
                let asks = match body {
                    [0] => false,
                    [1] => true,
                    _ => return Err(UNEXPECTED),
                };
                let secrets = kernel.update_rx_secret().map_err(|_| UNEXPECTED)?;
                self.open = RecordKey::new(secrets, true).ok_or(UNEXPECTED)?;
                if asks {
                    self.update_key(output)?;
                }
                Ok(())
            }
            (Some(kernel), kind) => {
                S::after_handshake(kernel, kind, body).then_some(()).ok_or(UNEXPECTED)
            }
            // Nobody agrees on new keys in TLS 1.2, but who asks may go on without.
            (None, CLIENT_HELLO | HELLO_REQUEST) => {
                self.alert(WARNING, NO_RENEGOTIATION, output).map_err(TlsFault::from)
            }
            (None, _) => Err(UNEXPECTED),
        }
    }

    /// Seals what follows with a new key, and says so.
    fn update_key(&mut self, output: &mut TlsOutput) -> Result<(), TlsFault> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        let message = [KEY_UPDATE, 0, 0, 1, 0];
        output.seal(&mut self.seal, ContentType::HANDSHAKE, &[&message])?;
        let secrets = kernel.update_tx_secret().map_err(|_| UNEXPECTED)?;
        self.seal = RecordKey::new(secrets, true).ok_or(UNEXPECTED)?;
        Ok(())
    }

    fn alert(&mut self, level: u8, alert: u8, output: &mut TlsOutput) -> Result<(), RecordFault> {
        output.seal(&mut self.seal, ContentType::ALERT, &[&[level, alert]])
    }
}

/// Whether an alert says that nothing more comes.
fn is_end(alert: &[u8]) -> Result<bool, TlsFault> {
    match alert {
        [_, CLOSE_NOTIFY] => Ok(true),
        [_, USER_CANCELED] | [WARNING, NO_RENEGOTIATION] => Ok(false),
        _ => Err(TlsFault { alert: CLOSE_NOTIFY, text: "the peer sent an alert" }),
    }
}

const UNEXPECTED: TlsFault = TlsFault { alert: UNEXPECTED_MESSAGE, text: "unexpected message" };

impl From<RecordFault> for TlsFault {
    fn from(error: RecordFault) -> Self {
        match error {
            RecordFault::TooLong => Self { alert: RECORD_OVERFLOW, text: "record too long" },
            RecordFault::NotAuthentic => Self { alert: BAD_RECORD_MAC, text: "bad record mac" },
            RecordFault::Untyped => UNEXPECTED,
        }
    }
}

impl<S: TlsSide> SecureSession for TlsSession<S> {
    /// Early data is served before the handshake is over.
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
            // rustls must not be given anything once it has said that we close.
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
            // A fault in what follows ends the session behind what was taken.
            let _ = self.open_next();
        }
        count
    }

    fn is_ended(&self) -> bool {
        self.is_ended && !self.has_plaintext()
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
        if established.seal.is_tls13() && established.seal.sequence() >= KEY_RECORDS_MAX {
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
                // Nobody is told where it cannot be.
                let _ = established.alert(WARNING, CLOSE_NOTIFY, &mut self.output);
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

impl TlsInput {
    /// Reads behind what there is.
    fn read(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize> {
        self.make_room()?;
        let read = socket.read_into(&mut self.bytes);
        if read.is_err() {
            self.release();
        }
        read
    }

    /// Makes room for more: moves what is left to the front, and grows during a handshake whose
    /// messages are longer than a buffer.
    fn make_room(&mut self) -> io::Result<()> {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers::lend_large();
        }
        if self.bytes.capacity() - self.bytes.len() < READ_MIN {
            self.bytes.drain(..self.next);
            self.next = 0;
            if self.bytes.len() > HANDSHAKE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.bytes.reserve(READ_MIN);
        }
        Ok(())
    }

    /// Gives the buffer back if nothing is left in it.
    fn release(&mut self) {
        if self.plain.is_empty() && self.next >= self.bytes.len() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        buffers::give_back(mem::take(&mut self.bytes));
        (self.plain, self.next) = (0..0, 0);
    }
}

impl<S: TlsSide> Drop for TlsSession<S> {
    fn drop(&mut self) {
        self.input.clear();
    }
}
