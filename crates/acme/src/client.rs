//! Requests to an ACME server, by `fetch`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use fetch::{
    FetchLimits, FetchOrigin, FetchRequest, FetchSettings, Fetcher, tls_transport, trust_in,
};
use net::Address;
use net::accept::Transport;
use net::tls::ServerTrust;
use session::identity;
use upstream::address::{self, Endpoint};
use wire::Method;
use wire::acme::{AcmeInput, AcmeReply, AcmeRequest, REPLY_BYTES_MAX};

use crate::issuer::{AcmeIssuer, IssuerTrust};

/// Limits of questions that are answered with a status alone.
const STATUS_LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 32 * 1024,
    body_bytes_max: 64 * 1024,
    connect_ms: 5000,
    silence_ms: 10_000,
    total_ms: 10_000,
};
const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 32 * 1024,
    body_bytes_max: REPLY_BYTES_MAX,
    connect_ms: 10_000,
    silence_ms: 30_000,
    total_ms: 60_000,
};
/// Idle connections that are kept, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 4;
const IDLE_MS: u64 = 30_000;
/// The most redirects of one request.
const REDIRECTS_MAX: usize = 5;
/// The most hosts of one authority.
const HOSTS_MAX: usize = 16;

/// Sends requests for one issuer.
pub(crate) struct AcmeClient {
    issuer: Arc<AcmeIssuer>,
    fetcher: Fetcher,
    /// By host.
    transports: RefCell<HashMap<String, Arc<dyn Transport>>>,
    /// Addresses that the system has found, by host.
    found: RefCell<HashMap<String, Vec<Address>>>,
}

/// What a server has sent.
enum Fetched {
    Reply(AcmeReply),
    /// To this URL.
    Redirect(String),
}

/// A URL, split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcmeUrl {
    is_secure: bool,
    place: Endpoint,
    /// Host and port as they are written.
    host: String,
    /// Path and query.
    target: String,
}

impl AcmeUrl {
    /// The error is a reason.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (is_secure, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://"))
        {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err("invalid URL prefix"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        if host.contains('@') || target.contains('#') || !text.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err("invalid URL");
        }
        let place = address::parse(host.as_bytes(), if is_secure { 443 } else { 80 })?.place;
        if matches!(place, Endpoint::At(Address::Unix(_))) {
            return Err("invalid host");
        }
        let target = match target.starts_with('/') {
            true => target.to_owned(),
            false => format!("/{target}"),
        };
        Ok(Self { is_secure, place, host: host.to_owned(), target })
    }

    /// The URL that a `Location` names, which never leads from HTTPS to HTTP.
    fn redirect(&self, location: &[u8]) -> Option<String> {
        let location = std::str::from_utf8(location).ok()?;
        let scheme = if self.is_secure { "https" } else { "http" };
        let url = match location.starts_with('/') {
            true => format!("{scheme}://{}{location}", self.host),
            false => location.to_owned(),
        };
        let next = Self::parse(&url).ok()?;
        (next.is_secure || !self.is_secure).then_some(url)
    }

    /// The name in the server's certificate.
    fn server_name(&self) -> String {
        match &self.place {
            Endpoint::Named { host, .. } => String::from_utf8_lossy(host).into_owned(),
            Endpoint::At(Address::Ip(address)) => address.ip().to_string(),
            Endpoint::At(_) => String::new(),
        }
    }
}

impl AcmeClient {
    pub(crate) fn new(issuer: Arc<AcmeIssuer>) -> Self {
        let settings = FetchSettings {
            names: issuer.names.clone(),
            idle_connections_max: IDLE_CONNECTIONS_MAX,
            idle_ms: IDLE_MS,
        };
        let fetcher = Fetcher::new(settings);
        Self { issuer, fetcher, transports: RefCell::default(), found: RefCell::default() }
    }

    /// Sends a request; what comes of it is for the machine. As in nginx-acme, redirects are
    /// followed; signed requests are for one URL, and have none.
    pub(crate) async fn send(&self, request: AcmeRequest) -> AcmeInput {
        let mut url = request.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            match self.fetch(&request, &url).await {
                Ok(Fetched::Reply(reply)) => return AcmeInput::Reply(reply),
                Ok(Fetched::Redirect(next)) => url = next,
                Err(reason) => return AcmeInput::Failed(reason),
            }
        }
        AcmeInput::Failed(format!("more than {REDIRECTS_MAX} redirects of {}", request.url))
    }

    /// The status of a page. Redirects are not followed.
    pub(crate) async fn status(&self, url: &str) -> Result<u16, String> {
        let url = AcmeUrl::parse(url).map_err(|why| format!("{why}: {url}"))?;
        let request = FetchRequest {
            origin: self.origin(&url).await?,
            method: Method::Get,
            target: url.target.clone().into_bytes(),
            fields: vec![(b"User-Agent".to_vec(), identity::token().as_bytes().to_vec())],
            body: Vec::new(),
        };
        let sent = self.fetcher.send(&request, &STATUS_LIMITS).await;
        sent.map(|reply| reply.status()).map_err(|error| {
            self.found.borrow_mut().remove(&url.host);
            error.to_string()
        })
    }

    async fn origin(&self, url: &AcmeUrl) -> Result<FetchOrigin, String> {
        let transport = match url.is_secure {
            true => Some(self.transport(url)?),
            false => None,
        };
        let place = self.place(url).await?;
        Ok(FetchOrigin { place, host: url.host.clone().into_bytes(), transport })
    }

    async fn fetch(&self, request: &AcmeRequest, url: &str) -> Result<Fetched, String> {
        let url = AcmeUrl::parse(url).map_err(|why| format!("{why}: {url}"))?;
        let mut fields = vec![(b"User-Agent".to_vec(), identity::token().as_bytes().to_vec())];
        fields.extend(request.content_type.map(|kind| (b"Content-Type".to_vec(), kind.into())));
        let request = FetchRequest {
            origin: self.origin(&url).await?,
            method: request.method,
            target: url.target.clone().into_bytes(),
            fields,
            body: request.body.clone(),
        };
        let sent = self.fetcher.send(&request, &LIMITS).await.map_err(|error| {
            self.found.borrow_mut().remove(&url.host);
            error.to_string()
        })?;
        let status = sent.status();
        if matches!(status, 301..=303 | 307 | 308) && request.body.is_empty() {
            let location = sent.field("Location").unwrap_or_default();
            return url
                .redirect(location)
                .map(Fetched::Redirect)
                .ok_or_else(|| format!("redirected to an invalid URL by {}", url.host));
        }
        let fields: Vec<_> =
            sent.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
        Ok(Fetched::Reply(AcmeReply::new(status, fields, sent.body)))
    }

    /// Where the host is. Without name servers the system looks it up, on another thread.
    async fn place(&self, url: &AcmeUrl) -> Result<Endpoint, String> {
        if matches!(url.place, Endpoint::At(_)) || self.issuer.names.servers.is_some() {
            return Ok(url.place.clone());
        }
        let known = self.found.borrow().get(&url.host).and_then(|found| found.first().cloned());
        if let Some(address) = known {
            return Ok(Endpoint::At(address));
        }
        let asked = url.place.clone();
        let found = net::offload(move || asked.addresses()).await;
        let Some(first) = found.first().cloned() else {
            return Err(format!("host not found: {}", url.place));
        };
        let mut known = self.found.borrow_mut();
        if known.len() < HOSTS_MAX {
            known.insert(url.host.clone(), found);
        }
        Ok(Endpoint::At(first))
    }

    fn transport(&self, url: &AcmeUrl) -> Result<Arc<dyn Transport>, String> {
        if let Some(known) = self.transports.borrow().get(&url.host) {
            return Ok(known.clone());
        }
        let name = url.server_name();
        let trust = match &self.issuer.trust {
            IssuerTrust::Any => ServerTrust::Any,
            IssuerTrust::Authorities(text) => trust_in(text, &name)
                .map_err(|error| format!("invalid trusted certificates: {error}"))?,
        };
        let transport = tls_transport(&name, trust, None)?;
        let mut known = self.transports.borrow_mut();
        if known.len() < HOSTS_MAX {
            known.insert(url.host.clone(), transport.clone());
        }
        Ok(transport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        let url = AcmeUrl::parse("https://acme.test/directory?a=b").unwrap();
        assert_eq!(
            (url.is_secure, &*url.host, &*url.target),
            (true, "acme.test", "/directory?a=b")
        );
        assert_eq!(
            (url.place.to_string(), url.server_name()),
            ("acme.test:443".into(), "acme.test".into())
        );
        let url = AcmeUrl::parse("http://[::1]:14000").unwrap();
        assert_eq!((url.is_secure, &*url.host, &*url.target), (false, "[::1]:14000", "/"));
        assert_eq!(url.server_name(), "::1");
    }

    #[test]
    fn a_redirect_stays_at_https() {
        let url = AcmeUrl::parse("https://acme.test:1/a").unwrap();
        assert_eq!(url.redirect(b"/dir").as_deref(), Some("https://acme.test:1/dir"));
        assert_eq!(url.redirect(b"https://b.test/").as_deref(), Some("https://b.test/"));
        assert_eq!((url.redirect(b"http://b.test/"), url.redirect(b"dir")), (None, None));
    }

    #[test]
    fn other_urls_are_refused() {
        for text in [
            "ftp://a/",
            "acme.test/dir",
            "https://",
            "https://a b/",
            "https://a@b/",
            "https://unix:/a",
        ] {
            assert!(AcmeUrl::parse(text).is_err(), "{text}");
        }
    }
}
