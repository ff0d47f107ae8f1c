//! TLS with the servers of one request: under which name, and with which certificate.

use std::io;
use std::sync::Arc;

use ::session::tls::client::{BackendTls, without_port};
use ::upstream::Group;
use ::upstream::pool::{CertificateNames, PoolOrigin, SecuredAs};
use net::accept::Transport;
use net::tls::{CertificateFault, Credential};
use net::{Address, clock};
use observe::{Errno, Level, Text};

use super::call::Trouble;
use super::caller::Caller;
use crate::exchange::Exchange;

/// How the requests of a location are secured.
pub(crate) struct SecuredBackend {
    tls: Arc<BackendTls>,
    /// How all connections are made, if that does not depend on the request.
    fixed: Option<Arc<PoolOrigin>>,
}

/// How the connections of one request are secured.
pub(crate) struct SecuredRequest<'a> {
    tls: &'a BackendTls,
    /// Has no local address, and says how connections are secured.
    origin: Arc<PoolOrigin>,
}

impl SecuredBackend {
    /// `group` is the servers' group, if it does not depend on the request.
    pub(crate) fn new(tls: Arc<BackendTls>, group: Option<&Group>) -> Self {
        let name = if tls.computed().is_none() { fixed_name(&tls, group) } else { None };
        let fixed = name.map(|name| origin(&tls, name, None));
        Self { tls, fixed }
    }

    /// How a request to a group is secured.
    pub(crate) fn request(&self, group: &Group, x: &mut Exchange) -> SecuredRequest<'_> {
        let origin = match &self.fixed {
            Some(fixed) => fixed.clone(),
            None => self.computed(group, x),
        };
        SecuredRequest { tls: &self.tls, origin }
    }

    fn computed(&self, group: &Group, x: &mut Exchange) -> Arc<PoolOrigin> {
        let certificate = self.tls.computed().and_then(|computed| {
            let certificate = x.render(&computed.certificate);
            (!certificate.is_empty()).then(|| CertificateNames {
                certificate: certificate.into(),
                key: x.render(&computed.key).into(),
            })
        });
        match fixed_name(&self.tls, Some(group)) {
            Some(name) => origin(&self.tls, name, certificate),
            None => {
                let name = self.tls.name().map(|template| x.render(template)).unwrap_or_default();
                origin(&self.tls, &name, certificate)
            }
        }
    }
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
    Arc::new(PoolOrigin { from: None, secured: Some(secured) })
}

impl SecuredRequest<'_> {
    /// What sets its connections apart from others.
    pub(super) fn origin(&self) -> &Arc<PoolOrigin> {
        &self.origin
    }

    fn name(&self) -> &[u8] {
        self.origin.secured.as_ref().map_or(b"", |secured| &secured.name)
    }

    /// The certificate that depends on the request; a failure has been logged.
    fn credential(&self, caller: &mut impl Caller) -> Result<Option<Credential>, Trouble> {
        let names = self.origin.secured.as_ref().and_then(|secured| secured.certificate.as_ref());
        let Some((computed, names)) = self.tls.computed().zip(names) else { return Ok(None) };
        computed.load(&names.certificate, &names.key, clock::now_ms()).map(Some).map_err(|reason| {
            caller.log(Level::Error, format_args!("{reason}"));
            Trouble::Internal
        })
    }

    /// How the connection to a server becomes a secure one.
    pub(super) fn transport(
        &self,
        caller: &mut impl Caller,
        to: &Address,
    ) -> Result<Arc<dyn Transport>, Trouble> {
        let credential = self.credential(caller)?;
        self.tls.transport(to, self.name(), credential).ok_or_else(|| {
            let name = Text(self.name());
            caller.log(Level::Error, format_args!("SSL_set_tlsext_host_name(\"{name}\") failed"));
            Trouble::Internal
        })
    }

    /// A handshake that failed.
    pub(super) fn failed(&self, caller: &mut impl Caller, error: &io::Error) -> Trouble {
        let name = Text(self.name());
        match CertificateFault::of(error) {
            Some(CertificateFault::Chain(fault)) => caller.log(
                Level::Error,
                format_args!("upstream SSL certificate verify error: ({}:{fault})", fault.code()),
            ),
            Some(CertificateFault::OtherName) => caller.log(
                Level::Error,
                format_args!("upstream SSL certificate does not match \"{name}\""),
            ),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                caller.log(Level::Error, format_args!("peer closed connection in SSL handshake"));
            }
            None if error.raw_os_error().is_some() => {
                caller.log(Level::Error, format_args!("SSL_do_handshake() failed{}", Errno(error)));
            }
            None => {
                caller.log(Level::Error, format_args!("SSL_do_handshake() failed (SSL: {error})"));
            }
        }
        Trouble::Error
    }
}
