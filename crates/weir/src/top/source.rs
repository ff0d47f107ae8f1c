//! Where data come from: a URL, the paths below it that answer JSON, and one kept connection.

use std::sync::Arc;

use fetch::{FetchLimits, FetchOrigin, FetchRequest, FetchSettings, Fetcher, tls_transport};
use load::target::{LoadTarget, TargetScheme};
use net::accept::Transport;
use net::tls::{ServerTrust, TrustedRoots};
use serde_json::Value;
use upstream::address::Endpoint;
use wire::base64;

use super::arguments::TopArguments;
use super::plus;

/// A server with thousands of upstream servers has tens of megabytes.
const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 32 * 1024,
    body_bytes_max: 64 * 1024 * 1024,
    connect_ms: 5_000,
    silence_ms: 5_000,
    total_ms: 10_000,
};

pub(super) struct TopSource {
    pub(super) url: String,
    /// The path of the URL, which ends in a slash, and its query.
    path: String,
    query: String,
    origin: FetchOrigin,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    fetcher: Fetcher,
    kind: Option<SourceKind>,
}

/// What was found at the URL.
enum SourceKind {
    /// One object with everything.
    Tree(String),
    /// NGINX Plus's API, an object at each of many paths.
    Plus(String),
}

impl TopSource {
    pub(super) fn new(arguments: &TopArguments) -> Result<Self, String> {
        let target = LoadTarget::parse(&with_scheme(&arguments.url))?;
        if target.scheme.is_echo() {
            return Err(format!("\"{}\" is not the URL of an HTTP server", target.url));
        }
        let (path, query) = target.path.split_once('?').unwrap_or((&target.path, ""));
        let address = target.reachable()?;
        let origin = FetchOrigin {
            place: Endpoint::At(address),
            host: target.authority().into_bytes(),
            transport: transport(&target, arguments.authorities.as_deref())?,
        };
        let settings =
            FetchSettings { idle_connections_max: 1, idle_ms: 60_000, ..Default::default() };
        Ok(Self {
            path: format!("{}/", path.trim_end_matches('/')),
            query: query.to_owned(),
            origin,
            fields: authorization(&target.credentials).into_iter().collect(),
            fetcher: Fetcher::new(settings),
            kind: None,
            url: target.url,
        })
    }

    /// The tree as it is now.
    pub(super) async fn fetch(&mut self) -> Result<Value, String> {
        if self.kind.is_none() {
            return self.find().await;
        }
        match &self.kind {
            Some(SourceKind::Plus(root)) => self.fetch_plus(root).await,
            Some(SourceKind::Tree(path)) => self.json(path).await,
            None => unreachable!("it was found"),
        }
    }

    /// Finds out what the URL has: a dashboard, a status tree or NGINX Plus's API.
    async fn find(&mut self) -> Result<Value, String> {
        let Self { path, query, .. } = &*self;
        let own = if query.is_empty() { "extended" } else { query };
        let mut why = String::new();
        for place in [format!("{path}data"), format!("{path}?{own}"), path[..path.len() - 1].into()]
        {
            if place.is_empty() {
                continue;
            }
            match self.json(&place).await {
                Ok(tree @ Value::Object(_)) => {
                    self.kind = Some(SourceKind::Tree(place));
                    return Ok(tree);
                }
                Ok(Value::Array(names)) => return self.find_plus(&names).await,
                Ok(_) => why = format!("{place} is not an object"),
                // A failed connection fails everywhere.
                Err(other) if !other.starts_with('/') => return Err(other),
                Err(other) if why.is_empty() => why = other,
                Err(_) => {}
            }
        }
        Err(format!("no data at {}: {why}", self.url))
    }

    /// The list at the root of NGINX Plus's API has the versions; at the root of a version, names.
    async fn find_plus(&mut self, names: &[Value]) -> Result<Value, String> {
        let newest = names.iter().filter_map(Value::as_u64).max();
        let root = match newest {
            Some(version) => format!("{}{version}/", self.path),
            None => self.path.clone(),
        };
        let tree = self.fetch_plus(&root).await?;
        self.kind = Some(SourceKind::Plus(root));
        Ok(tree)
    }

    async fn fetch_plus(&self, root: &str) -> Result<Value, String> {
        let mut parts = Vec::new();
        let mut refusal = None;
        for path in plus::PATHS {
            match self.json(&format!("{root}{path}")).await {
                Ok(part) => parts.push((path, part)),
                // Not every server has everything.
                Err(why) => drop(refusal.get_or_insert(why)),
            }
        }
        match (parts.is_empty(), refusal) {
            (true, Some(why)) => Err(why),
            _ => Ok(plus::tree(parts)),
        }
    }

    async fn json(&self, path: &str) -> Result<Value, String> {
        let mut request = FetchRequest::get(self.origin.clone(), path);
        request.fields = self.fields.clone();
        let reply = self.fetcher.send(&request, &LIMITS).await.map_err(|e| e.to_string())?;
        if reply.status() != 200 {
            return Err(format!("{path} answers {}", reply.status()));
        }
        serde_json::from_slice(&reply.body).map_err(|_| format!("{path} is not JSON"))
    }
}

/// `http://` may be left out.
fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

fn transport(
    target: &LoadTarget,
    authorities: Option<&str>,
) -> Result<Option<Arc<dyn Transport>>, String> {
    if target.scheme != TargetScheme::Https {
        return Ok(None);
    }
    let trust = match authorities {
        None => ServerTrust::Any,
        Some(file) => {
            let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            let roots = TrustedRoots::read(&text).map_err(|error| format!("{file}: {error}"))?;
            ServerTrust::Roots(roots)
        }
    };
    tls_transport(&target.host, trust, None).map(Some)
}

fn authorization(credentials: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if credentials.is_empty() {
        return None;
    }
    let mut value = b"Basic ".to_vec();
    base64::encode(credentials, &mut value);
    Some((b"Authorization".into(), value))
}
