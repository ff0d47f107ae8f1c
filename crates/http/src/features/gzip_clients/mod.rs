//! Which clients may receive gzip: shared by `gzip`, `gunzip` and `gzip_static`.
//!
//! As in nginx, the decision is made once per request, by the first feature that needs it, because
//! it may match regular expressions.

mod proxied;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};
use wire::accept_encoding::accepts_gzip;
use wire::{Known, Version};

use crate::exchange::{Exchange, FeatureState};
use crate::regex::Pattern;
use crate::site::LocationBuilder;
use crate::site::policy::is_msie6;
use proxied::Proxied;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether responses that may be compressed have the field `Vary: Accept-Encoding`.
    ///
    /// ```nginx
    /// gzip_vary on;
    /// ```
    gzip_vary: bool = "off",
    /// The lowest HTTP version of clients for which responses are compressed.
    ///
    /// ```nginx
    /// gzip_http_version 1.0;
    /// ```
    gzip_http_version: MinHttpVersion = "1.1",
    /// Which responses are compressed if the request has the field `Via`, because it came through a
    /// proxy: none, all, or those that meet one of the conditions. These are `expired`, `no-cache`,
    /// `no-store`, `private`, `no_last_modified`, `no_etag` and `auth`.
    ///
    /// Syntax: off | any | CONDITION...
    ///
    /// ```nginx
    /// gzip_proxied any;
    /// ```
    gzip_proxied: Proxied = "off",
    /// Clients whose responses are not compressed: regular expressions for the field `User-Agent`,
    /// and `msie6` for old versions of Internet Explorer.
    ///
    /// Syntax: msie6 | REGEX ...
    ///
    /// ```nginx
    /// gzip_disable msie6;
    /// ```
    gzip_disable: Option<Disabled>,
}

conf::words! {
    /// A version of HTTP.
    pub enum MinHttpVersion {
        /// 1.0
        Http10 = "1.0",
        /// 1.1
        Http11 = "1.1",
    }
}

/// `gzip_disable`
#[derive(Clone, Default)]
struct Disabled {
    msie6: bool,
    /// Patterns that ignore case.
    agents: Vec<Arc<Pattern>>,
}

impl Value for Disabled {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut disabled = Self::default();
        disabled.repeat(from, load)?;
        Ok(disabled)
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        for word in &from.args {
            if &*word.text == b"msie6" {
                self.msie6 = true;
            } else {
                let pattern = Pattern::compile_alone(&word.text, true, word, from)?;
                self.agents.push(Arc::new(pattern));
            }
        }
        Ok(())
    }
    /// Expressions replace those of the outer level; `msie6` is added to them.
    fn complete(&mut self, outer: &Self) {
        self.msie6 |= outer.msie6;
    }
}

impl Disabled {
    /// An expression whose match fails counts as matching.
    fn has(&self, agent: &[u8], x: &Exchange) -> bool {
        self.msie6 && is_msie6(agent)
            || self.agents.iter().any(|pattern| pattern.is_match(agent, x).unwrap_or(true))
    }
}

/// The compiled settings of a location.
struct GzipClients {
    version_min: Version,
    proxied: Proxied,
    disabled: Option<Disabled>,
}

/// The decision, once it was made.
#[derive(Default)]
struct GzipDecision(Option<bool>);

impl FeatureState for GzipDecision {
    fn clear(&mut self) {
        self.0 = None;
    }

    fn redirected(&mut self) {
        self.0 = None;
    }
}

/// Stores the settings for the other features.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.gzip_vary = conf.gzip_vary;
    location.core.own.add(GzipClients {
        version_min: match conf.gzip_http_version {
            MinHttpVersion::Http10 => Version::HTTP_10,
            MinHttpVersion::Http11 => Version::HTTP_11,
        },
        proxied: conf.gzip_proxied,
        disabled: conf.gzip_disable.clone(),
    });
    Ok(())
}

/// Whether the client may receive gzip, as it was decided first.
pub(crate) fn allows(x: &mut Exchange) -> bool {
    match x.states.find::<GzipDecision>() {
        Some(GzipDecision(Some(allowed))) => *allowed,
        _ => decide(x),
    }
}

/// Decides again, by the current reply.
pub(crate) fn decide(x: &mut Exchange) -> bool {
    let settings = x.location().core.own.find::<GzipClients>();
    let allowed = !x.is_subrequest() && settings.is_some_and(|settings| settings.allow(x));
    x.states.of::<GzipDecision>().0 = Some(allowed);
    allowed
}

impl GzipClients {
    fn allow(&self, x: &Exchange) -> bool {
        let accepted = x.request.field(Known::AcceptEncoding).is_some_and(accepts_gzip);
        accepted
            && x.request.head.version >= self.version_min
            && (x.request.field(Known::Via).is_none() || self.proxied.allows(x))
            && !self.disables(x)
    }

    fn disables(&self, x: &Exchange) -> bool {
        let Some(disabled) = &self.disabled else { return false };
        x.request.field(Known::UserAgent).is_some_and(|agent| disabled.has(agent, x))
    }
}
