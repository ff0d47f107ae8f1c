//! TLS with the servers of one request or session: under which name, with which certificate, and
//! offering which protocols.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;

use conf::{Template, Values};
use net::accept::Transport;
use net::tls::{CertificateFault, Credential};
use net::{Address, Timer};
use observe::{Errno, Level, Text};
use upstream::Group;
use upstream::pool::{CertificateNames, PoolOrigin, PoolProtocol, SecuredAs};

use session::backend::ConnectTrouble;

use crate::client::{BackendTls, TlsServer, without_port};

/// What log lines name after `while` during the handshake with a server.
pub const SECURING: &str = "SSL handshaking to upstream";

/// How connections to the servers of one `proxy_pass` are secured.
pub struct SecuredBackend {
    tls: Arc<BackendTls>,
    /// How all connections are made, if that does not depend on the request.
    fixed: Option<Arc<PoolOrigin>>,
    /// The application protocols to offer (ALPN), best first.
    protocols: Vec<Template>,
}

/// How the connections of one request or session are secured.
pub struct SecuredConnections<'a> {
    tls: &'a BackendTls,
    /// Has no local address, and says how connections are secured.
    origin: Arc<PoolOrigin>,
    group: &'a Group,
}

impl SecuredBackend {
    /// `group` is the servers' group, if it does not depend on the request.
    pub fn new(tls: Arc<BackendTls>, group: Option<&Group>) -> Self {
        let name = if tls.computed().is_none() { fixed_name(&tls, group) } else { None };
        let fixed = name.map(|name| origin(&tls, name, None));
        Self { tls, fixed, protocols: Vec::new() }
    }

    /// The same, offering these application protocols. Connections must not be shared between
    /// requests, since a pool does not tell them apart by protocol.
    pub fn offering(self, protocols: Vec<Template>) -> Self {
        Self { protocols, ..self }
    }

    /// How the connections of `x` to a group are secured.
    pub fn connections<'a>(
        &'a self,
        group: &'a Group,
        x: &mut impl Values,
    ) -> SecuredConnections<'a> {
        let origin = match &self.fixed {
            Some(fixed) => fixed.clone(),
            None => self.computed(group, x),
        };
        SecuredConnections { tls: &self.tls, origin, group }
    }

    fn computed(&self, group: &Group, x: &mut impl Values) -> Arc<PoolOrigin> {
        let certificate = self.tls.computed().and_then(|computed| {
            let certificate = rendered(&computed.certificate, x);
            (!certificate.is_empty()).then(|| CertificateNames {
                certificate: certificate.into(),
                key: rendered(&computed.key, x).into(),
            })
        });
        match fixed_name(&self.tls, Some(group)) {
            Some(name) => origin(&self.tls, name, certificate),
            None => {
                let name = self.tls.name().map(|name| rendered(name, x)).unwrap_or_default();
                origin(&self.tls, &name, certificate)
            }
        }
    }

    /// The application protocols to offer. As in nginx, names that variables leave empty or make
    /// too long are not offered.
    pub fn protocols(&self, x: &mut impl Values) -> Vec<Box<[u8]>> {
        let protocols = self.protocols.iter().map(|template| rendered(template, x));
        let offered = protocols.filter(|name| (1..=PROTOCOL_MAX).contains(&name.len()));
        offered.map(Vec::into_boxed_slice).collect()
    }
}

/// Bytes of the name of an application protocol (RFC 7301 section 3.1).
pub const PROTOCOL_MAX: usize = 255;

fn rendered(template: &Template, x: &mut impl Values) -> Vec<u8> {
    let mut text = Vec::new();
    template.render(x, &mut text);
    text
}

/// The name that the servers of a group have for all requests.
fn fixed_name<'a>(tls: &'a BackendTls, group: Option<&'a Group>) -> Option<&'a [u8]> {
    match (tls.needs_name(), tls.name()) {
        (false, _) => Some(b""),
        (true, Some(template)) => template.as_fixed(),
        (true, None) => group.map(Group::name),
    }
}

/// How connections are made to a server with that name.
fn origin(tls: &BackendTls, name: &[u8], certificate: Option<CertificateNames>) -> Arc<PoolOrigin> {
    let name = without_port(name).into();
    let secured = SecuredAs { settings: tls.number(), name, certificate };
    let protocol = PoolProtocol::Exclusive;
    Arc::new(PoolOrigin { from: None, secured: Some(secured), location: None, protocol })
}

impl SecuredConnections<'_> {
    /// What sets these connections apart from others in a pool.
    pub fn origin(&self) -> &Arc<PoolOrigin> {
        &self.origin
    }

    fn name(&self) -> &[u8] {
        self.origin.secured.as_ref().map_or(b"", |secured| &secured.name)
    }

    /// How the connection to a server is secured, offering these application protocols. A
    /// certificate that depends on the request is read before the timer expires. Failures are
    /// logged.
    pub async fn transport(
        &self,
        to: &Address,
        protocols: &[Box<[u8]>],
        timer: &Timer,
        log: impl FnOnce(Level, fmt::Arguments<'_>),
    ) -> Result<Arc<dyn Transport>, ConnectTrouble> {
        let credential = match self.credential(timer).await {
            Ok(credential) => credential,
            Err(reason) => {
                log(Level::Error, format_args!("{reason}"));
                return Err(ConnectTrouble::Internal);
            }
        };
        let server = TlsServer { group: self.group.name(), address: to, name: self.name() };
        self.tls.transport(server, credential, protocols).ok_or_else(|| {
            let name = Text(self.name());
            log(Level::Error, format_args!("SSL_set_tlsext_host_name(\"{name}\") failed"));
            ConnectTrouble::Internal
        })
    }

    /// The certificate that depends on the request; the error is a line for the log.
    async fn credential(&self, timer: &Timer) -> Result<Option<Credential>, String> {
        let names = self.origin.secured.as_ref().and_then(|secured| secured.certificate.as_ref());
        let Some((computed, names)) = self.tls.computed().zip(names) else { return Ok(None) };
        // Boxed, so that requests without such a certificate do not have room for it.
        let mut read = Box::pin(computed.named(names).read());
        let read = poll_fn(|cx| match read.as_mut().poll(cx) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => timer.poll(cx).map(|()| None),
        });
        match read.await {
            Some(read) => Ok(read?.pop()),
            None => {
                Err(format!("cannot load certificate \"{}\" in time", Text(&names.certificate)))
            }
        }
    }

    /// Logs a handshake that failed, in nginx's words.
    pub fn log_failed(&self, error: &io::Error, log: impl FnOnce(Level, fmt::Arguments<'_>)) {
        let level = Level::Error;
        match CertificateFault::of(error) {
            Some(CertificateFault::Chain(fault)) => log(
                level,
                format_args!("upstream SSL certificate verify error: ({}:{fault})", fault.code()),
            ),
            Some(CertificateFault::OtherName) => {
                let name = Text(self.name());
                log(level, format_args!("upstream SSL certificate does not match \"{name}\""));
            }
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                log(level, format_args!("peer closed connection in SSL handshake"));
            }
            None if error.raw_os_error().is_some() => {
                log(level, format_args!("SSL_do_handshake() failed{}", Errno(error)));
            }
            None => log(level, format_args!("SSL_do_handshake() failed (SSL: {error})")),
        }
    }
}
