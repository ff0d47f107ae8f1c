//! The argument of `proxy_pass`: the group of servers, and the URI.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::upstream::Group;
use ::upstream::address::{self, Endpoint};
use ::upstream::named::{self, ByName, GroupHost};
use conf::{Directive, Error, Inherited, Load, Result, Template, Value, Word};
use net::Address;
use observe::{Level, Text};
use session::backend::resolve;

use crate::backend::ProxiesAnywhere;
use crate::exchange::{Exchange, Flow, TimedPhase};
use crate::header_text::{self, FORBIDDEN};
use crate::site::{BlockContext, ParsedSoFar};

#[derive(Clone, Debug)]
pub enum ProxyPass {
    /// One backend for all requests.
    Fixed(Url),
    /// The backend that this template yields.
    Computed(Template),
}

/// A parsed `http://host:port/uri`.
#[derive(Clone, Debug)]
pub struct Url {
    text: Box<[u8]>,
    host: GroupHost,
    /// Whether it begins with `https://`.
    is_tls: bool,
    port_said: bool,
    /// The part after host and port; `None` if the URL ends there.
    uri: Option<Box<[u8]>>,
}

/// The `proxy_pass` of the block that is being read.
pub(super) enum PassLine {
    /// A backend without variables, in the location with that name.
    Fixed { url: Url, location: Box<[u8]> },
    /// A backend with variables.
    Computed,
}

pub(crate) struct ProxyTarget {
    pub(crate) group: Arc<Group>,
    /// `$proxy_host`, and the field `Host` unless it is set.
    pub(crate) host: Arc<[u8]>,
    pub(crate) port: Arc<[u8]>,
    /// The replacement of the location's name in the path; `None`: the path is unchanged.
    pub(crate) uri: Option<Arc<[u8]>>,
    /// Whether `uri` is the whole URI, because it has variables.
    pub(crate) uri_is_whole: bool,
    pub(crate) is_tls: bool,
}

const SCHEMA: &[u8] = b"http://";
const PORT: u16 = 80;
const TLS_SCHEMA: &[u8] = b"https://";
const TLS_PORT: u16 = 443;

impl Value for ProxyPass {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        load.registry.of::<ProxiesAnywhere>().0 = true;
        let template = Template::compile(word, from, load)?;
        if template.as_fixed().is_none() {
            load.registry
                .of::<ParsedSoFar>()
                .0
                .of::<Option<PassLine>>()
                .replace(PassLine::Computed);
            return Ok(Self::Computed(template));
        }
        let parsed = Url::parse(&word.text);
        let url = parsed.map_err(|refusal| refusal.into_error(&word.text, word, from))?;
        let location = match load.registry.of::<BlockContext>() {
            BlockContext::Prefix(name) => name.clone(),
            _ if url.uri.is_some() => return Err(from.error_at(word, URI_PART)),
            _ => Box::default(),
        };
        url.host.declare(from, word, load);
        let line = PassLine::Fixed { url: url.clone(), location };
        load.registry.of::<ParsedSoFar>().0.of::<Option<PassLine>>().replace(line);
        Ok(Self::Fixed(url))
    }
}

const URI_PART: &str = "\"proxy_pass\" cannot have URI part in location given by regular \
    expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" \
    block";

fn prefix_missing(from: &Directive, word: &Word) -> Error {
    let error = from.error_at(word, "invalid URL prefix");
    match word.text.windows(3).any(|three| three == b"://") {
        true => error,
        false => error.guess(Some(format!("http://{word}"))),
    }
}

enum Refusal {
    Prefix,
    Address(&'static str),
}

impl Refusal {
    fn into_error(self, text: &[u8], word: &Word, from: &Directive) -> Error {
        match self {
            Self::Prefix => prefix_missing(from, word),
            Self::Address(why) => {
                let rest = String::from_utf8_lossy(after_schema(text)).into_owned();
                from.error_at(word, format!("{why} in upstream \"{rest}\""))
            }
        }
    }
}

impl Url {
    fn parse(text: &[u8]) -> std::result::Result<Self, Refusal> {
        let begins = |schema: &[u8]| {
            text.get(..schema.len()).is_some_and(|start| start.eq_ignore_ascii_case(schema))
        };
        let is_tls = begins(TLS_SCHEMA);
        if !is_tls && !begins(SCHEMA) {
            return Err(Refusal::Prefix);
        }
        let (host, uri) = split(after_schema(text));
        let port = if is_tls { TLS_PORT } else { PORT };
        let parsed = address::parse(host, port).map_err(Refusal::Address)?;
        Ok(Self {
            text: text.into(),
            host: GroupHost { text: host.into(), place: parsed.place },
            is_tls,
            port_said: parsed.port_said,
            uri: (!uri.is_empty()).then(|| uri.into()),
        })
    }

    /// The text in the configuration.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether it has a URI part.
    pub(super) fn has_uri(&self) -> bool {
        self.uri.is_some()
    }

    /// `$proxy_host` and `$proxy_port`: the default port is not part of the host.
    fn host_field(&self) -> (Arc<[u8]>, Arc<[u8]>) {
        let host = &self.host.text;
        if host.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:")) {
            return (b"localhost"[..].into(), b""[..].into());
        }
        let default: &[u8] = if self.is_tls { b"443" } else { b"80" };
        if !self.port_said {
            return (host.clone().into(), default.into());
        }
        let colon = host.iter().rposition(|&byte| byte == b':').unwrap_or(host.len());
        let port = &host[(colon + 1).min(host.len())..];
        match port == default {
            true => (host[..colon].into(), port.into()),
            false => (host.clone().into(), port.into()),
        }
    }

    fn target(&self, group: Arc<Group>) -> ProxyTarget {
        let (host, port) = self.host_field();
        let uri = self.uri.as_deref().map(Arc::from);
        ProxyTarget { group, host, port, uri, uri_is_whole: false, is_tls: self.is_tls }
    }

    /// The target for a URL with variables.
    fn whole_target(&self, group: Arc<Group>) -> ProxyTarget {
        let mut target = self.target(group);
        if let Some(uri) = &target.uri {
            target.uri_is_whole = true;
            if uri.first() == Some(&b'?') {
                target.uri = Some([b"/", &**uri].concat().into());
            }
        }
        target
    }

    /// The target with a group for one request.
    fn passing(&self, addresses: Vec<Address>) -> ProxyTarget {
        self.whole_target(Group::passing(&self.host.text, addresses))
    }

    /// The target with the group that the host names, with or without an `upstream` block.
    fn compile(&self, load: &mut Load<'_>) -> Result<ProxyTarget> {
        let groups = named::all(load)?;
        let group = self.host.find(&groups).expect("every line declares its host");
        Ok(self.target(group.clone()))
    }
}

/// The text after `http://` or `https://`.
fn after_schema(text: &[u8]) -> &[u8] {
    let start = text.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    &text[start..]
}

/// Splits host and URI: a Unix socket's path ends at a colon.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:")) {
        return match text[5..].iter().position(|&byte| byte == b':') {
            Some(colon) => (&text[..5 + colon], &text[5 + colon + 1..]),
            None => (text, &[]),
        };
    }
    let end = text.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(text.len());
    text.split_at(end)
}

/// The backends of a location, found when it is compiled.
pub(crate) enum ProxyBackend {
    Fixed(ProxyTarget),
    /// Depends on the request; the groups it may name.
    Computed(Template, Arc<ByName>),
}

impl ProxyBackend {
    pub(super) fn compile(pass: &ProxyPass, load: &mut Load<'_>) -> Result<Self> {
        Ok(match pass {
            ProxyPass::Fixed(url) => Self::Fixed(url.compile(load)?),
            ProxyPass::Computed(template) => Self::Computed(template.clone(), named::all(load)?),
        })
    }

    pub(super) fn is_never_tls(&self) -> bool {
        matches!(self, Self::Fixed(target) if !target.is_tls)
    }

    /// The group; `None` if it depends on the request.
    pub(super) fn fixed_group(&self) -> Option<&Arc<Group>> {
        match self {
            Self::Fixed(target) => Some(&target.group),
            Self::Computed(..) => None,
        }
    }
}

/// The result of a backend with variables.
pub(crate) enum ComputedTarget {
    Target(ProxyTarget),
    /// A name to be resolved first.
    Unresolved(Unresolved),
}

/// A backend whose addresses are not known yet.
pub(crate) struct Unresolved {
    url: Url,
    host: Box<[u8]>,
    port: u16,
}

impl ComputedTarget {
    /// The values of `$proxy_host` and `$proxy_port`.
    pub(super) fn host_field(&self) -> (Arc<[u8]>, Arc<[u8]>) {
        match self {
            Self::Target(target) => (target.host.clone(), target.port.clone()),
            Self::Unresolved(unresolved) => unresolved.url.host_field(),
        }
    }
}

impl Unresolved {
    /// Resolves the name; a failure has been logged.
    pub(super) async fn resolve(self, x: &mut Exchange) -> std::result::Result<ProxyTarget, Flow> {
        x.waits_for(TimedPhase::Resolve);
        let names = &x.location().core.names;
        let addresses = resolve(x, &self.host, self.port, names).await;
        let addresses = addresses.map_err(|_| Flow::Status(502))?;
        Ok(self.url.passing(addresses))
    }
}

/// Parses an evaluated URL; an error is logged.
pub(crate) fn evaluate(text: &[u8], groups: &ByName, x: &Exchange) -> Option<ComputedTarget> {
    if !header_text::is_clean(text) {
        let text = Text(text);
        x.log(Level::Error, format_args!("upstream \"{text}\" {FORBIDDEN}"));
        return None;
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(Refusal::Prefix) => {
            x.log(Level::Error, format_args!("invalid URL prefix in \"{}\"", Text(text)));
            return None;
        }
        Err(Refusal::Address(why)) => {
            let rest = Text(after_schema(text));
            x.log(Level::Error, format_args!("{why} in upstream \"{rest}\""));
            return None;
        }
    };
    if let Some(group) = url.host.find(groups) {
        return Some(ComputedTarget::Target(url.whole_target(group.clone())));
    }
    Some(match &url.host.place {
        Endpoint::At(address) => ComputedTarget::Target(url.passing(vec![address.clone()])),
        Endpoint::Named { host, port } => {
            let (host, port) = (host.clone(), *port);
            ComputedTarget::Unresolved(Unresolved { url, host, port })
        }
    })
}
