//! Requests to an OCSP responder: HTTP with the request in the path (RFC 6960, appendix A.1).
//!
//! As in nginx, each request has a connection of its own, and an address that fails is followed by
//! the next one.

use std::fmt;
use std::net::SocketAddr;

use ::upstream::ResolverPolicy;
use ::upstream::address::{self, Endpoint};
use ::upstream::resolver::ResolveError;
use fetch::{
    FetchError, FetchFault, FetchLimits, FetchOrigin, FetchRequest, FetchResponse, FetchSettings,
    Fetcher,
};
use net::{Address, Timer};
use observe::{Level, Text};
use wire::base64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OcspResponderUrl {
    /// Host and port as they were written.
    pub(super) host: Vec<u8>,
    path: Vec<u8>,
    place: Endpoint,
    /// Where it was when the configuration was read; empty: nobody has looked it up.
    addresses: Vec<Address>,
}

#[derive(Debug)]
pub(super) enum ResponderFailure {
    /// There is no `resolver` to look up this host.
    NoResolver(Box<[u8]>),
    /// The host could not be looked up.
    Unresolved(ResolveError),
    /// The request could not be sent, or the connection failed.
    Request(FetchFault),
    /// Time ran out.
    TimedOut,
    /// The reply is not a response, or larger than the [`LIMITS`].
    InvalidReply,
}

/// How long a request may take with all addresses of a responder, as in nginx.
const FETCH_MAX_MS: u64 = 60_000;

/// The limits of one address.
const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 64 * 1024,
    body_bytes_max: 64 * 1024,
    connect_ms: FETCH_MAX_MS,
    silence_ms: FETCH_MAX_MS,
    total_ms: FETCH_MAX_MS,
};

const CONTENT_TYPE: &[u8] = b"application/ocsp-response";

impl OcspResponderUrl {
    /// Reads a URL and looks up its host, as is done when the configuration is read; the error
    /// says what is wrong, in nginx's words.
    pub(super) fn read(url: &[u8]) -> Result<Self, &'static str> {
        let mut read = Self::parse(url)?;
        read.addresses = read.place.addresses();
        if read.addresses.is_empty() { Err("host not found") } else { Ok(read) }
    }

    /// Reads a URL whose host is looked up when it is needed.
    pub(super) fn parse(url: &[u8]) -> Result<Self, &'static str> {
        let is_http = url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http://"));
        if !is_http {
            return Err("invalid URL prefix");
        }
        let rest = &url[7..];
        let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(slash);
        let place = address::parse(host, 80)?.place;
        let addresses = match &place {
            Endpoint::At(Address::Unix(_)) => return Err("invalid host"),
            Endpoint::At(address) => vec![address.clone()],
            Endpoint::Named { .. } => Vec::new(),
        };
        Ok(Self { host: host.to_vec(), path: path.to_vec(), place, addresses })
    }

    /// Asks the responder. Its addresses are tried in turn.
    pub(super) async fn fetch(
        &self,
        request: &[u8],
        names: &ResolverPolicy,
    ) -> Result<Vec<u8>, ResponderFailure> {
        let resolved = self.resolve(names).await?;
        let addresses = resolved.as_ref().unwrap_or(&self.addresses);
        let timer = Timer::new();
        timer.set(FETCH_MAX_MS);
        let asking = self.ask(addresses, self.target(request));
        timer.limit(asking).await.unwrap_or(Err(ResponderFailure::TimedOut))
    }

    async fn ask(
        &self,
        addresses: &[Address],
        target: Vec<u8>,
    ) -> Result<Vec<u8>, ResponderFailure> {
        let fetcher = Fetcher::new(FetchSettings::default());
        let mut failure = ResponderFailure::InvalidReply;
        for address in addresses {
            let (place, host) = (Endpoint::At(address.clone()), self.host.clone());
            let origin = FetchOrigin { place, host, transport: None };
            let request = FetchRequest::get(origin, target.clone());
            match fetcher.send(&request, &LIMITS).await {
                Ok(reply) => return body(reply).ok_or(ResponderFailure::InvalidReply),
                Err(error) => failure = error.into(),
            }
        }
        Err(failure)
    }

    /// The addresses that `resolver` finds; `None`: those known before are used, because the host
    /// is an address or there is no resolver.
    async fn resolve(
        &self,
        names: &ResolverPolicy,
    ) -> Result<Option<Vec<Address>>, ResponderFailure> {
        let Endpoint::Named { host, port } = &self.place else { return Ok(None) };
        let Some(resolver) = names.resolver() else {
            if self.addresses.is_empty() {
                return Err(ResponderFailure::NoResolver(host.clone()));
            }
            let host = Text(host);
            observe::log(Level::Warn, format_args!("no resolver defined to resolve {host}"));
            return Ok(None);
        };
        let found = resolver.addresses(host).await.map_err(ResponderFailure::Unresolved)?;
        let at_port = |ip| Address::Ip(SocketAddr::new(ip, *port));
        Ok(Some(found.addresses.into_iter().map(at_port).collect()))
    }

    /// The path, with the request in it.
    fn target(&self, request: &[u8]) -> Vec<u8> {
        let mut digits = Vec::new();
        base64::encode(request, &mut digits);
        let mut target = self.path.clone();
        if !target.ends_with(b"/") {
            target.push(b'/');
        }
        for digit in digits {
            match digit {
                b'+' => target.extend_from_slice(b"%2B"),
                b'/' => target.extend_from_slice(b"%2F"),
                b'=' => target.extend_from_slice(b"%3D"),
                other => target.push(other),
            }
        }
        target
    }
}

impl From<FetchError> for ResponderFailure {
    fn from(error: FetchError) -> Self {
        match error.fault {
            fault if fault.is_timeout() => Self::TimedOut,
            fault @ (FetchFault::InvalidRequest(_) | FetchFault::Connection(_)) => {
                Self::Request(fault)
            }
            _ => Self::InvalidReply,
        }
    }
}

impl fmt::Display for ResponderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResolver(host) => write!(f, "no resolver defined to resolve {}", Text(host)),
            Self::Unresolved(error) => error.fmt(f),
            Self::Request(FetchFault::Connection(error)) => {
                write!(f, "OCSP responder failed ({error})")
            }
            Self::Request(fault) => write!(f, "OCSP responder failed ({fault})"),
            Self::TimedOut => f.write_str("OCSP responder timed out"),
            Self::InvalidReply => f.write_str("OCSP responder sent invalid response"),
        }
    }
}

/// The body of a reply that has what was asked for.
fn body(reply: FetchResponse) -> Option<Vec<u8>> {
    let content_type = reply.field("Content-Type");
    let has_type = content_type.is_some_and(|value| value.eq_ignore_ascii_case(CONTENT_TYPE));
    (reply.status() == 200 && has_type).then_some(reply.body)
}

#[cfg(test)]
mod tests;
