//! The differences between the client's and the server's side of a handshake.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ReadEarlyData, UnbufferedConnectionCommon, UnbufferedStatus};
use rustls::{CommonState, Error, ExtractedSecrets};

use super::client_trust::{self, ClientCertificate, ClientTrust};
use super::details::{OfferedByClient, SessionId, TlsDetails};
use super::record::HEADER;
use super::server_credentials::ServerCredentials;

/// One side of a handshake.
pub(crate) trait TlsSide: Deref<Target = CommonState> + Send + 'static {
    /// rustls's type for the side.
    type Data: Send + 'static;

    /// Processes received bytes.
    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Takes early data.
    fn read_early(data: ReadEarlyData<'_, '_, Self::Data>, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Inspects records that are sent.
    fn note_sent(&mut self, _records: &[u8]) {}

    /// The keys of the established connection, and the state that derives new ones.
    fn into_keys(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error>;

    /// The result of the handshake.
    fn details(&self) -> TlsDetails;

    /// Processes a message after the handshake other than a key update; `false`: it is not
    /// permitted.
    fn after_handshake(kernel: &mut KernelConnection<Self::Data>, kind: u8, body: &[u8]) -> bool;
}

/// The accepting side.
pub(crate) struct ServerSide {
    pub(crate) connection: UnbufferedServerConnection,
    pub(crate) offered: OfferedByClient,
    pub(crate) credentials: Arc<ServerCredentials>,
    /// The server's first message.
    pub(crate) hello: ServerHello,
    /// How client certificates are verified, if they are requested.
    pub(crate) trust: Option<Arc<ClientTrust>>,
    /// The scheme of the client's signature, once it is verified.
    pub(crate) signed_with: u16,
}

/// The parts of a server's first message (RFC 8446 section 4.1.3) that `$ssl_session_id` needs.
#[derive(Default)]
pub(crate) struct ServerHello {
    random: [u8; 32],
    session_id: SessionId,
}

impl ServerHello {
    /// Reads the first message of a record that we send; `None`: it is another message.
    fn read(record: &[u8]) -> Option<Self> {
        const HANDSHAKE: u8 = 22;
        const SERVER_HELLO: u8 = 2;
        /// Type and length of the message, and its version.
        const BEFORE_RANDOM: usize = 4 + 2;
        let ([kind, ..], message) = record.split_first_chunk::<HEADER>()?;
        if *kind != HANDSHAKE || message.first() != Some(&SERVER_HELLO) {
            return None;
        }
        let (random, rest) = message.get(BEFORE_RANDOM..)?.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let session_id = SessionId::of(rest.get(..usize::from(*length))?);
        Some(Self { random: *random, session_id })
    }
}

impl Deref for ServerSide {
    type Target = CommonState;
    fn deref(&self) -> &CommonState {
        let common: &UnbufferedConnectionCommon<ServerConnectionData> = &self.connection;
        common
    }
}

impl TlsSide for ServerSide {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        let Self { connection, signed_with, .. } = self;
        let status = connection.deref_mut().process_tls_records(bytes);
        if let Some(scheme) = client_trust::take_signature_scheme() {
            *signed_with = scheme;
        }
        status
    }

    fn read_early(
        mut data: ReadEarlyData<'_, '_, Self::Data>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        while let Some(record) = data.next_record() {
            out.extend_from_slice(record?.payload);
        }
        Ok(())
    }

    fn into_keys(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error> {
        self.connection.dangerous_into_kernel_connection()
    }

    fn note_sent(&mut self, records: &[u8]) {
        if let Some(hello) = ServerHello::read(records) {
            self.hello = hello;
        }
    }

    fn details(&self) -> TlsDetails {
        let mut details = TlsDetails::new(self, self.offered.clone());
        // A session of TLS 1.3 has no id; the random bytes of its handshake are equally unique.
        details.session_id = match details.is_tls13() {
            true => SessionId::of(&self.hello.random),
            false => self.hello.session_id,
        };
        if !details.is_resumed {
            let schemes = details.usable_schemes();
            let scheme = self.credentials.signed_with(&schemes);
            details.signature_scheme = scheme.map_or(0, u16::from);
        }
        let trust = self.trust.as_ref();
        details.client_certificate =
            trust.and_then(|trust| ClientCertificate::of(self, trust, self.signed_with));
        details
    }

    fn after_handshake(_: &mut KernelConnection<Self::Data>, _: u8, _: &[u8]) -> bool {
        false
    }
}

/// The connecting side.
pub(crate) struct ClientSide(pub(crate) UnbufferedClientConnection);

/// A server's ticket for another session (RFC 8446 section 4.6.1).
const NEW_SESSION_TICKET: u8 = 4;

impl Deref for ClientSide {
    type Target = CommonState;
    fn deref(&self) -> &CommonState {
        let common: &UnbufferedConnectionCommon<ClientConnectionData> = &self.0;
        common
    }
}

impl TlsSide for ClientSide {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.0.deref_mut().process_tls_records(bytes)
    }

    /// Servers send no early data.
    fn read_early(_: ReadEarlyData<'_, '_, Self::Data>, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }

    fn into_keys(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error> {
        self.0.dangerous_into_kernel_connection()
    }

    fn details(&self) -> TlsDetails {
        TlsDetails::new(self, OfferedByClient::default())
    }

    fn after_handshake(kernel: &mut KernelConnection<Self::Data>, kind: u8, body: &[u8]) -> bool {
        kind == NEW_SESSION_TICKET && kernel.handle_new_session_ticket(body).is_ok()
    }
}
