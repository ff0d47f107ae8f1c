//! Requests to an OCSP responder: HTTP with the request in the path (RFC 6960, appendix A.1).

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Poll, ready};

use ::upstream::ResolverPolicy;
use ::upstream::address::{self, Endpoint};
use ::upstream::resolver::ResolveError;
use net::{Address, Connect, Stream, Timer};
use observe::{Level, Text};
use wire::base64;
use wire::http1::response::ResponseHeadParser;
use wire::reply::ReplyHead;

/// Where a responder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OcspResponderUrl {
    /// Host and port as they were written.
    pub(super) host: Vec<u8>,
    path: Vec<u8>,
    place: Endpoint,
    /// Where it was when the configuration was read; empty: nobody has looked it up.
    addresses: Vec<Address>,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum FetchFailure {
    /// There is no `resolver` to look up this host.
    NoResolver(Box<[u8]>),
    /// The host could not be looked up.
    Unresolved(ResolveError),
    /// The responder could not be reached, or the connection failed.
    Connection(io::Error),
    /// Time ran out.
    TimedOut,
    /// The reply is not a response, or larger than [`RESPONSE_MAX`].
    InvalidReply,
}

/// How long a request may take with all addresses of a responder, as in nginx.
const FETCH_MAX_MS: u64 = 60_000;

/// Bytes of a reply, at most, its head included.
const RESPONSE_MAX: usize = 64 * 1024;

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
    ) -> Result<Vec<u8>, FetchFailure> {
        let resolved = self.resolve(names).await?;
        let addresses = resolved.as_ref().unwrap_or(&self.addresses);
        let timer = Timer::new();
        timer.set(FETCH_MAX_MS);
        let text = self.http_request(request);
        let mut failure = FetchFailure::InvalidReply;
        for address in addresses {
            let fetched = match connect(address, &timer).await {
                Ok(mut stream) => exchange(&mut stream, &text, &timer).await,
                Err(failure) => Err(failure),
            };
            match fetched {
                Ok(reply) => return body(reply).ok_or(FetchFailure::InvalidReply),
                Err(FetchFailure::TimedOut) => return Err(FetchFailure::TimedOut),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// The addresses that `resolver` finds; `None`: those known before are used, because the host
    /// is an address or there is no resolver.
    async fn resolve(&self, names: &ResolverPolicy) -> Result<Option<Vec<Address>>, FetchFailure> {
        let Endpoint::Named { host, port } = &self.place else { return Ok(None) };
        let Some(resolver) = names.resolver() else {
            if self.addresses.is_empty() {
                return Err(FetchFailure::NoResolver(host.clone()));
            }
            let host = Text(host);
            observe::log(Level::Warn, format_args!("no resolver defined to resolve {host}"));
            return Ok(None);
        };
        let found = resolver.addresses(host).await.map_err(FetchFailure::Unresolved)?;
        let at_port = |ip| Address::Ip(SocketAddr::new(ip, *port));
        Ok(Some(found.addresses.into_iter().map(at_port).collect()))
    }

    /// In HTTP/1.0 the reply ends with the connection.
    fn http_request(&self, request: &[u8]) -> Vec<u8> {
        let mut digits = Vec::new();
        base64::encode(request, &mut digits);
        let mut text = [b"GET ", &self.path[..]].concat();
        if !text.ends_with(b"/") {
            text.push(b'/');
        }
        for digit in digits {
            match digit {
                b'+' => text.extend_from_slice(b"%2B"),
                b'/' => text.extend_from_slice(b"%2F"),
                b'=' => text.extend_from_slice(b"%3D"),
                other => text.push(other),
            }
        }
        text.extend_from_slice(b" HTTP/1.0\r\nHost: ");
        text.extend_from_slice(&self.host);
        text.extend_from_slice(b"\r\n\r\n");
        text
    }
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResolver(host) => write!(f, "no resolver defined to resolve {}", Text(host)),
            Self::Unresolved(error) => error.fmt(f),
            Self::Connection(error) => write!(f, "OCSP responder failed ({error})"),
            Self::TimedOut => f.write_str("OCSP responder timed out"),
            Self::InvalidReply => f.write_str("OCSP responder sent invalid response"),
        }
    }
}

async fn connect(address: &Address, timer: &Timer) -> Result<Stream, FetchFailure> {
    let begun = Connect::default().begin(address);
    let mut connecting = begun.map_err(|(_, error)| FetchFailure::Connection(error))?;
    poll_fn(|cx| match connecting.poll(cx) {
        Poll::Ready(connected) => Poll::Ready(connected.map_err(FetchFailure::Connection)),
        Poll::Pending => timer.poll(cx).map(|()| Err(FetchFailure::TimedOut)),
    })
    .await
}

/// Sends a request and reads until the responder closes the connection.
async fn exchange(
    stream: &mut Stream,
    request: &[u8],
    timer: &Timer,
) -> Result<Vec<u8>, FetchFailure> {
    let (mut sent, mut reply) = (0, Vec::new());
    poll_fn(|cx| {
        while sent < request.len() {
            match stream.poll_write(cx, &[IoSlice::new(&request[sent..])]) {
                Poll::Ready(Ok(count)) => sent += count,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(FetchFailure::Connection(error)));
                }
                Poll::Pending => return timer.poll(cx).map(|()| Err(FetchFailure::TimedOut)),
            }
        }
        loop {
            reply.reserve(4096);
            match stream.poll_read(cx, &mut reply) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) if reply.len() > RESPONSE_MAX => {
                    return Poll::Ready(Err(FetchFailure::InvalidReply));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(FetchFailure::Connection(error)));
                }
                Poll::Pending => {
                    ready!(timer.poll(cx));
                    return Poll::Ready(Err(FetchFailure::TimedOut));
                }
            }
        }
    })
    .await?;
    Ok(reply)
}

/// What follows the head of a reply that has what was asked for.
fn body(mut reply: Vec<u8>) -> Option<Vec<u8>> {
    const CONTENT_TYPE: &[u8] = b"application/ocsp-response";
    let mut head = ReplyHead::default();
    let length = ResponseHeadParser::default().parse(&mut head, &reply).ok()??;
    let has_type = head.fields.iter().any(|field| {
        field.name.of(&reply).eq_ignore_ascii_case(b"Content-Type")
            && field.value.of(&reply).eq_ignore_ascii_case(CONTENT_TYPE)
    });
    if head.status != 200 || !has_type {
        return None;
    }
    reply.drain(..length);
    Some(reply)
}

#[cfg(test)]
mod tests;
