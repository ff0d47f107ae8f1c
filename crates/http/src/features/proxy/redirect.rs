//! `proxy_redirect`: rewrites the targets of a backend's redirects.
//!
//! By default, the URL of a location's `proxy_pass` is replaced by the location's name.

use conf::{Directive, Load, Result};

use super::pass::{PassLine, ProxyPass, Url};
use super::rules::{RewriteRule, RuleLine, RuleLines};
use crate::exchange::Exchange;
use crate::site::ParsedSoFar;

/// A line of `proxy_redirect`.
#[derive(Clone)]
pub struct RedirectRule(RewriteRule);

impl RuleLine for RedirectRule {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        RewriteRule::of_start(from, load).map(Self)
    }

    fn parse_word(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        if &*word.text != b"default" {
            return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
        }
        match load.registry.of::<ParsedSoFar>().0.of::<Option<PassLine>>() {
            Some(PassLine::Fixed { url, location }) => Ok(Self::implied(url, location)),
            Some(PassLine::Computed) => Err(from.error(
                "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with \
                 variables",
            )),
            None => Err(from.error(
                "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
            )),
        }
    }
}

impl RedirectRule {
    /// Replaces the URL of the backend by the location.
    fn implied(url: &Url, location: &[u8]) -> Self {
        Self(match url.has_uri() {
            true => RewriteRule::fixed(url.text(), location),
            false => RewriteRule::fixed(&[url.text(), b"/"].concat(), b"/"),
        })
    }
}

/// The lines of a location.
pub(super) struct Redirects(Vec<RedirectRule>);

impl Redirects {
    pub(super) fn new(
        lines: Option<&RuleLines<RedirectRule>>,
        pass: &ProxyPass,
        location: &[u8],
    ) -> Self {
        match (lines, pass) {
            (None, ProxyPass::Fixed(url)) => Self(vec![RedirectRule::implied(url, location)]),
            (lines, _) => Self(RuleLines::of(lines)),
        }
    }

    /// The value as rewritten, from that byte on, by the first line that matches.
    pub(super) fn rewritten(&self, x: &mut Exchange, value: &[u8], at: usize) -> Option<Vec<u8>> {
        self.0.iter().find_map(|RedirectRule(rule)| rule.rewritten(x, value, at))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The start of the URL in a value of `Refresh`.
pub(super) fn url_in(refresh: &[u8]) -> Option<usize> {
    let is_url = |text: &[u8]| text.eq_ignore_ascii_case(b"url=");
    refresh.windows(4).position(is_url).map(|at| at + 4)
}
