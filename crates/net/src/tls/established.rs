//! The records of an established session: plaintext, alerts, and handshake messages that may follow
//! the handshake.
//!
//! In TLS 1.3 a key update must be the last message of its record, messages are not interleaved
//! with other records, and a peer may send only a few without any data (RFC 8446 sections 4.6.3 and
//! 5.1).

use std::mem;

use rustls::ExtractedSecrets;
use rustls::kernel::KernelConnection;

use super::input::{HANDSHAKE_MAX, TlsInput};
use super::output::TlsOutput;
use super::record::{self, ContentType, RecordFault, RecordKey};
use super::side::TlsSide;
use crate::event_loop::spend;

/// Records and messages without application data accepted in a row: empty ones, warnings, parts.
const DATALESS_MAX: u32 = 32;
/// Work of deriving a key, as a number of bytes read.
const COST_OF_KEY: usize = 4096;

const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const BAD_CERTIFICATE: u8 = 42;
const CERTIFICATE_UNKNOWN: u8 = 46;
const UNKNOWN_CA: u8 = 48;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;
const CERTIFICATE_REQUIRED: u8 = 116;

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const KEY_UPDATE: u8 = 24;
/// Type and length of a message.
const MESSAGE_HEAD: usize = 4;

pub(super) struct EstablishedTls<S: TlsSide> {
    pub(super) seal: RecordKey,
    open: RecordKey,
    /// Derives new keys; `None` in TLS 1.2, where keys do not change.
    kernel: Option<KernelConnection<S::Data>>,
    /// The beginning of an incomplete handshake message.
    message: Vec<u8>,
    dataless: u32,
    /// Whether the peer has requested a new key of ours, which must be used from our next data on.
    owes_key: bool,
}

/// An error that ends a session: our message, and the alert for the peer.
pub(super) struct TlsFault {
    alert: u8,
    pub(super) text: &'static str,
}

impl<S: TlsSide> EstablishedTls<S> {
    /// Continues with the keys of a handshake; `None`: the cipher suite is not supported here.
    pub(super) fn new(
        secrets: ExtractedSecrets,
        kernel: KernelConnection<S::Data>,
    ) -> Option<Self> {
        let is_tls13 = kernel.protocol_version() == rustls::ProtocolVersion::TLSv1_3;
        Some(Self {
            seal: RecordKey::new(secrets.tx, is_tls13)?,
            open: RecordKey::new(secrets.rx, is_tls13)?,
            kernel: is_tls13.then_some(kernel),
            message: Vec::new(),
            dataless: 0,
            owes_key: false,
        })
    }

    /// Opens complete records until one has plaintext.
    pub(super) fn open_next(
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
            if kind == ContentType::APPLICATION_DATA && !self.message.is_empty() && self.is_tls13()
            {
                return Err(UNEXPECTED);
            }
            match kind {
                ContentType::APPLICATION_DATA if !text.is_empty() => {
                    self.dataless = 0;
                    input.plain = text;
                }
                ContentType::APPLICATION_DATA => self.count_dataless()?,
                ContentType::ALERT => {
                    self.count_dataless()?;
                    *is_ended = is_end(&input.bytes[text])?;
                }
                ContentType::HANDSHAKE => self.take_handshake(&input.bytes[text], output)?,
                _ => return Err(UNEXPECTED),
            }
        }
        Ok(())
    }

    fn is_tls13(&self) -> bool {
        self.seal.is_tls13()
    }

    fn count_dataless(&mut self) -> Result<(), TlsFault> {
        self.dataless += 1;
        if self.dataless > DATALESS_MAX { Err(UNEXPECTED) } else { Ok(()) }
    }

    /// Processes a record with handshake messages, or with a part of one.
    fn take_handshake(&mut self, text: &[u8], output: &mut TlsOutput) -> Result<(), TlsFault> {
        let mut messages = mem::take(&mut self.message);
        messages.extend_from_slice(text);
        let mut rest = &messages[..];
        loop {
            self.count_dataless()?;
            let Some((head, body)) = rest.split_first_chunk::<MESSAGE_HEAD>() else { break };
            let [kind, a, b, c] = *head;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > HANDSHAKE_MAX {
                return Err(UNEXPECTED);
            }
            let Some((body, behind)) = body.split_at_checked(length) else { break };
            self.obey(kind, body, behind.is_empty(), output)?;
            if behind.is_empty() {
                return Ok(());
            }
            rest = behind;
        }
        self.message = rest.to_vec();
        Ok(())
    }

    /// `ends_record`: the message is the last one of its record.
    fn obey(
        &mut self,
        kind: u8,
        body: &[u8],
        ends_record: bool,
        output: &mut TlsOutput,
    ) -> Result<(), TlsFault> {
        match (&mut self.kernel, kind) {
            (Some(kernel), KEY_UPDATE) if ends_record => {
                match body {
                    [0] => {}
                    [1] => self.owes_key = true,
                    _ => return Err(UNEXPECTED),
                }
                spend(COST_OF_KEY);
                let secrets = kernel.update_rx_secret().map_err(|_| UNEXPECTED)?;
                self.open = RecordKey::new(secrets, true).ok_or(UNEXPECTED)?;
                Ok(())
            }
            (Some(_), KEY_UPDATE) => Err(UNEXPECTED),
            (Some(kernel), kind) => {
                S::after_handshake(kernel, kind, body).then_some(()).ok_or(UNEXPECTED)
            }
            // A request to renegotiate (TLS 1.2) is declined; the session continues.
            (None, CLIENT_HELLO | HELLO_REQUEST) if output.is_overfull() => Ok(()),
            (None, CLIENT_HELLO | HELLO_REQUEST) => {
                self.alert(WARNING, NO_RENEGOTIATION, output).map_err(TlsFault::from)
            }
            (None, _) => Err(UNEXPECTED),
        }
    }

    /// Whether the next data needs a new key: the peer has requested one, or the key has reached
    /// its limit.
    pub(super) fn needs_key(&self, records_max: u64) -> bool {
        self.is_tls13() && (self.owes_key || self.seal.sequence() >= records_max)
    }

    /// Announces and installs a new sending key.
    pub(super) fn update_key(&mut self, output: &mut TlsOutput) -> Result<(), TlsFault> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        spend(COST_OF_KEY);
        let message = [KEY_UPDATE, 0, 0, 1, 0];
        output.seal(&mut self.seal, ContentType::HANDSHAKE, &[&message])?;
        let secrets = kernel.update_tx_secret().map_err(|_| UNEXPECTED)?;
        self.seal = RecordKey::new(secrets, true).ok_or(UNEXPECTED)?;
        self.owes_key = false;
        Ok(())
    }

    /// Sends the alert of a fault. Errors are ignored.
    pub(super) fn say_why(&mut self, fault: &TlsFault, output: &mut TlsOutput) {
        let _ = self.alert(FATAL, fault.alert, output);
    }

    /// Announces the end of our data.
    pub(super) fn say_end(&mut self, output: &mut TlsOutput) -> Result<(), RecordFault> {
        self.alert(WARNING, CLOSE_NOTIFY, output)
    }

    fn alert(&mut self, level: u8, alert: u8, output: &mut TlsOutput) -> Result<(), RecordFault> {
        output.seal(&mut self.seal, ContentType::ALERT, &[&[level, alert]])
    }
}

/// Whether an alert announces the end of data.
fn is_end(alert: &[u8]) -> Result<bool, TlsFault> {
    match alert {
        [_, CLOSE_NOTIFY] => Ok(true),
        [_, USER_CANCELED] | [WARNING, NO_RENEGOTIATION] => Ok(false),
        [_, alert] => Err(TlsFault { alert: CLOSE_NOTIFY, text: alert_text(*alert) }),
        _ => Err(TlsFault { alert: CLOSE_NOTIFY, text: "the peer sent an alert" }),
    }
}

/// In TLS 1.3, a client learns after its handshake what the server says to its certificate.
fn alert_text(alert: u8) -> &'static str {
    match alert {
        BAD_CERTIFICATE..=CERTIFICATE_UNKNOWN | UNKNOWN_CA => "the peer refuses the certificate",
        CERTIFICATE_REQUIRED => "the peer requires a certificate",
        _ => "the peer sent an alert",
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
