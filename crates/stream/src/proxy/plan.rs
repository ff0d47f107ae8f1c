//! The compiled settings of `proxy_pass`.

use std::net::SocketAddr;
use std::sync::Arc;

use ::session::Session as _;
use ::session::backend::{Bind, LocalAddress, NoGroup, find_group};
use ::tls::backend::SecuredBackend;
use ::upstream::named::{ByName, GroupHost};
use ::upstream::{Group, ResolverPolicy};
use conf::{SizeTemplate, Template, units};
use net::Connect;
use net::tls::{ClientCertificateFault, TlsDetails};
use observe::{Level, Text};
use wire::proxy_protocol::{self, TlsValues};
use wire::x509::X509;

use crate::session::StreamSession;

/// The target and the settings of a server's sessions.
pub(crate) struct ProxyPlan {
    pub(crate) target: SessionTarget,
    pub(crate) names: ResolverPolicy,
    pub(crate) bind: Option<Bind>,
    pub(crate) socket: BackendSocket,
    /// TLS with servers; `None` for none.
    pub(crate) tls: Option<SecuredBackend>,
    pub(crate) connect_timeout_ms: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) buffer_size: usize,
    pub(crate) upload_rate: SizeTemplate,
    pub(crate) download_rate: SizeTemplate,
    pub(crate) next: NextServer,
    pub(crate) header: SentHeader,
    pub(crate) half_close: bool,
    pub(crate) datagrams: DatagramCounts,
}

/// The number of datagrams that end a session over UDP.
pub(crate) struct DatagramCounts {
    /// Datagrams of the client; 0: no limit.
    pub(crate) requests: u64,
    /// Datagrams of the server for each of the client's; `None`: no limit.
    pub(crate) responses: Option<u64>,
}

/// The group of servers.
pub(crate) enum SessionTarget {
    Fixed(Arc<Group>),
    /// A template, and the groups that it may name.
    Computed(Template, Arc<ByName>),
}

/// Options of sockets to servers.
pub(crate) struct BackendSocket {
    pub(crate) keepalive: bool,
    pub(crate) nodelay: bool,
    pub(crate) rcvbuf: Option<usize>,
    pub(crate) sndbuf: Option<usize>,
}

/// When another server is tried.
pub(crate) struct NextServer {
    pub(crate) enabled: bool,
    /// 0: no limit.
    pub(crate) tries_max: u64,
    /// 0: no limit.
    pub(crate) timeout_ms: u64,
}

conf::words! {
    /// The PROXY protocol header that a server is sent first.
    pub enum SentHeader {
        /// None.
        Off = "off",
        /// Version 1.
        V1 = "on",
        /// Version 2.
        V2 = "v2",
    }
}

impl ProxyPlan {
    /// The local address of connections to servers, if `proxy_bind` sets one. `Err` if its
    /// variables give an invalid one.
    pub(crate) fn local_address(
        &self,
        x: &mut StreamSession,
    ) -> std::result::Result<Option<SocketAddr>, Vec<u8>> {
        match self.bind.as_ref().map(|bind| bind.address(x)) {
            None | Some(LocalAddress::Any) => Ok(None),
            Some(LocalAddress::At(address)) => Ok(Some(address)),
            Some(LocalAddress::Invalid(text)) => Err(text),
        }
    }

    /// The options of connections to servers.
    pub(crate) fn connect_options(&self, from: Option<SocketAddr>) -> Connect {
        let socket = &self.socket;
        Connect {
            from,
            transparent: self.bind.as_ref().is_some_and(Bind::is_transparent),
            rcvbuf: socket.rcvbuf,
            sndbuf: socket.sndbuf,
            keepalive: socket.keepalive,
            transport: None,
        }
    }

    /// Appends the PROXY header for a server, if the settings have one.
    pub(crate) fn write_header(&self, x: &StreamSession, out: &mut Vec<u8>) {
        let (source, destination) = (x.client.peer, x.client.local());
        match self.header {
            SentHeader::Off => {}
            SentHeader::V1 => proxy_protocol::write_v1(source, destination, out),
            SentHeader::V2 if x.client.is_udp => {
                proxy_protocol::write_v2_datagram(source, destination, out);
            }
            SentHeader::V2 => match x.client.tls.get() {
                Some(tls) => write_with_tls(x, tls, out),
                None => proxy_protocol::write_v2(source, destination, None, out),
            },
        }
    }
}

/// Appends a header with details of the client's TLS.
fn write_with_tls(x: &StreamSession, tls: &TlsDetails, out: &mut Vec<u8>) {
    let (mut cipher, mut common_name) = (Vec::new(), Vec::new());
    tls.write_cipher(&mut cipher);
    let shown = tls.client_certificate.as_deref();
    if let Some(certificate) = shown.and_then(|shown| X509::parse(shown.leaf()).ok()) {
        certificate.subject.write_common_name(&mut common_name);
    }
    let values = TlsValues {
        authority: tls.offered.server_name.as_deref().unwrap_or_default(),
        alpn: tls.protocol.as_deref().unwrap_or_default(),
        version: tls.version.as_bytes(),
        cipher: &cipher,
        verification: shown.map(|shown| verification(shown.verify(x.client_trust()))),
        common_name: &common_name,
        is_resumed: tls.is_resumed,
    };
    proxy_protocol::write_v2(x.client.peer, x.client.local(), Some(&values), out);
}

/// OpenSSL's number. As in nginx, a certificate that no responder confirms counts as revoked.
fn verification(result: Result<(), ClientCertificateFault>) -> u32 {
    const REVOKED: u32 = 23;
    match result {
        Ok(()) => 0,
        Err(ClientCertificateFault::Chain(fault)) => fault.code().into(),
        Err(ClientCertificateFault::Ocsp(_)) => REVOKED,
    }
}

impl SessionTarget {
    /// The group of this session. Failures are logged.
    pub(super) async fn group(
        &self,
        x: &mut StreamSession,
        names: &ResolverPolicy,
    ) -> Result<Arc<Group>, NoGroup> {
        let (template, groups) = match self {
            Self::Fixed(group) => return Ok(group.clone()),
            Self::Computed(template, groups) => (template, groups),
        };
        let mut text = Vec::new();
        template.render(x, &mut text);
        let host = GroupHost::parse(&text).map_err(|why| {
            x.log(Level::Error, format_args!("{why} in upstream \"{}\"", Text(&text)));
            NoGroup::Invalid
        })?;
        Box::pin(find_group(x, &host, groups, names)).await
    }
}

/// Bytes per second; 0: no limit. As in nginx, an invalid size from variables means no limit.
pub(super) fn rate(size: &SizeTemplate, x: &mut StreamSession) -> u64 {
    let template = match size {
        SizeTemplate::Fixed(rate) => return *rate,
        SizeTemplate::Computed(template) => template,
    };
    let mut text = Vec::new();
    template.render(x, &mut text);
    units::size(&text).unwrap_or_else(|| {
        x.log(Level::Error, format_args!("invalid size \"{}\"", Text(&text)));
        0
    })
}
