//! `proxy_cookie_domain`, `proxy_cookie_path` and `proxy_cookie_flags`: rewrite the attributes of a
//! backend's cookies.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template};
use observe::Text;

use super::rules::{RewriteRule, RuleLine, RuleLines, with_text};
use crate::exchange::Exchange;
use crate::regex::Pattern;

/// A line of `proxy_cookie_domain`.
#[derive(Clone)]
pub struct Domain(RewriteRule);

impl RuleLine for Domain {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        RewriteRule::of_domain(from, load).map(Self)
    }
}

/// A line of `proxy_cookie_path`.
#[derive(Clone)]
pub struct Path(RewriteRule);

impl RuleLine for Path {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        RewriteRule::of_start(from, load).map(Self)
    }
}

/// A line of `proxy_cookie_flags`.
#[derive(Clone)]
pub struct CookieFlags {
    cookie: CookieMatch,
    flags: Vec<Template>,
}

/// The cookies that a line applies to.
#[derive(Clone)]
enum CookieMatch {
    Is(Template),
    Pattern(Arc<Pattern>),
}

impl RuleLine for CookieFlags {
    const ARGS: RangeInclusive<usize> = 1..=4;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let cookie = match &*word.text {
            [b'~', text @ ..] => {
                CookieMatch::Pattern(Arc::new(Pattern::compile(text, true, word, from, load)?))
            }
            _ => CookieMatch::Is(Template::compile(word, from, load)?),
        };
        let flags = from.args[1..].iter().map(|word| Template::compile(word, from, load));
        Ok(Self { cookie, flags: flags.collect::<Result<_>>()? })
    }
}

impl CookieFlags {
    fn is_about(&self, name: &[u8], x: &mut Exchange) -> bool {
        match &self.cookie {
            CookieMatch::Is(template) => {
                with_text(template, x, |text| name.eq_ignore_ascii_case(text))
            }
            CookieMatch::Pattern(pattern) => pattern.matches(name, x).unwrap_or(false),
        }
    }

    fn edits(&self, x: &mut Exchange) -> u8 {
        let mut edits = 0;
        for template in &self.flags {
            let edit = with_text(template, x, |flag| {
                let known = EDITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(flag));
                known.map(|(_, edit)| *edit).ok_or_else(|| flag.to_vec())
            });
            match edit {
                Ok(edit) => edits |= edit,
                Err(flag) if flag.is_empty() => {}
                Err(flag) => {
                    x.debug(format_args!("invalid proxy_cookie_flags flag \"{}\"", Text(&flag)));
                }
            }
        }
        edits
    }
}

/// The changes to the attributes of a cookie.
const EDITS: [(&[u8], u8); 8] = [
    (b"secure", SECURE),
    (b"nosecure", NO_SECURE),
    (b"httponly", HTTP_ONLY),
    (b"nohttponly", NO_HTTP_ONLY),
    (b"samesite=strict", STRICT),
    (b"samesite=lax", LAX),
    (b"samesite=none", NONE),
    (b"nosamesite", NO_SAME_SITE),
];

const SECURE: u8 = 1;
const NO_SECURE: u8 = 2;
const HTTP_ONLY: u8 = 4;
const NO_HTTP_ONLY: u8 = 8;
const STRICT: u8 = 16;
const LAX: u8 = 32;
const NONE: u8 = 64;
const NO_SAME_SITE: u8 = 128;

const SAME_SITE: [(u8, &[u8]); 3] = [(STRICT, b"Strict"), (LAX, b"Lax"), (NONE, b"None")];

/// The lines of a location.
pub(super) struct Cookies {
    domains: Vec<Domain>,
    paths: Vec<Path>,
    flags: Vec<CookieFlags>,
}

/// `name=value` or `name`: the cookie itself, or an attribute of it.
#[derive(Clone, Copy)]
struct CookieAttribute<'v> {
    name: &'v [u8],
    value: Option<&'v [u8]>,
}

impl Cookies {
    /// `None`: cookies are passed on unchanged.
    pub(super) fn new(
        domains: Option<&RuleLines<Domain>>,
        paths: Option<&RuleLines<Path>>,
        flags: Option<&RuleLines<CookieFlags>>,
    ) -> Option<Self> {
        let (domains, paths, flags) =
            (RuleLines::of(domains), RuleLines::of(paths), RuleLines::of(flags));
        let is_empty = domains.is_empty() && paths.is_empty() && flags.is_empty();
        (!is_empty).then_some(Self { domains, paths, flags })
    }

    /// The changed cookie; `None` if it is unchanged.
    pub(super) fn rewritten(&self, x: &mut Exchange, cookie: &[u8]) -> Option<Vec<u8>> {
        let CookieAttribute { name, value: Some(_) } = attributes(cookie).next()? else {
            return None;
        };
        let mut values = Vec::new();
        for (at, attribute) in attributes(cookie).enumerate().skip(1) {
            let value = attribute.value.and_then(|value| self.value(x, attribute.name, value));
            values.extend(value.map(|value| (at, value)));
        }
        let line = self.flags.iter().find(|line| line.is_about(name, x));
        let edits = line.map_or(0, |line| line.edits(x));
        if values.is_empty() && edits == 0 {
            return None;
        }
        Some(write(cookie, &values, edits))
    }

    fn value(&self, x: &mut Exchange, name: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        if name.eq_ignore_ascii_case(b"domain") {
            return self.domains.iter().find_map(|Domain(rule)| rule.rewritten(x, value, 0));
        }
        if name.eq_ignore_ascii_case(b"path") {
            return self.paths.iter().find_map(|Path(rule)| rule.rewritten(x, value, 0));
        }
        None
    }
}

fn attributes(cookie: &[u8]) -> impl Iterator<Item = CookieAttribute<'_>> {
    cookie.split(|&byte| byte == b';').map(|text| match memchr::memchr(b'=', text) {
        None => CookieAttribute { name: trim(text), value: None },
        Some(at) => CookieAttribute { name: trim(&text[..at]), value: Some(trim(&text[at + 1..])) },
    })
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

/// The cookie with replaced values of attributes, by their index, and with edited attributes.
fn write(cookie: &[u8], values: &[(usize, Vec<u8>)], mut edits: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, mut attribute) in attributes(cookie).enumerate() {
        if let Some((_, value)) = values.iter().find(|(place, _)| *place == at) {
            attribute.value = Some(value);
        }
        match at {
            0 => attribute.write(&mut out),
            _ => attribute.edited(&mut edits).into_iter().for_each(|attribute| {
                out.extend_from_slice(b"; ");
                attribute.write(&mut out);
            }),
        }
    }
    if edits & SECURE != 0 {
        out.extend_from_slice(b"; Secure");
    }
    if edits & HTTP_ONLY != 0 {
        out.extend_from_slice(b"; HttpOnly");
    }
    if let Some((_, value)) = SAME_SITE.iter().find(|(edit, _)| edits & edit != 0) {
        out.extend_from_slice(b"; SameSite=");
        out.extend_from_slice(value);
    }
    out
}

impl<'v> CookieAttribute<'v> {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        if let Some(value) = self.value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }

    /// The attribute after the edits. Removes edits that it already fulfils.
    fn edited(self, edits: &mut u8) -> Option<Self> {
        let stays = if self.name.eq_ignore_ascii_case(b"secure") {
            take(edits, SECURE) || *edits & NO_SECURE == 0
        } else if self.name.eq_ignore_ascii_case(b"httponly") {
            take(edits, HTTP_ONLY) || *edits & NO_HTTP_ONLY == 0
        } else if self.name.eq_ignore_ascii_case(b"samesite") {
            if let Some((_, value)) = SAME_SITE.iter().find(|(edit, _)| take(edits, *edit)) {
                let is_same = self.value.is_some_and(|own| own.eq_ignore_ascii_case(value));
                let changed = Self { name: b"SameSite", value: Some(value) };
                return Some(if is_same { self } else { changed });
            }
            *edits & NO_SAME_SITE == 0
        } else {
            true
        };
        stays.then_some(self)
    }
}

/// Removes that edit. Whether it was there.
fn take(edits: &mut u8, edit: u8) -> bool {
    let wanted = *edits & edit != 0;
    *edits &= !edit;
    wanted
}
