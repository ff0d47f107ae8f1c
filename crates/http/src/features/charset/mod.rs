//! `charset`: announces the charset of a text, and converts the text from the charset of its
//! source.

mod map;
mod recode;
#[cfg(test)]
mod tests;
mod utf8;

use std::borrow::Cow;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Value, Values, VariableId};
use observe::Level;

use crate::backend::ProxiesAnywhere;
use crate::exchange::{Exchange, FieldName, Filtered};
use crate::mime_types::MimeTypes;
use crate::site::LocationBuilder;
use map::{CharsetId, Charsets};
use recode::Recoder;

conf::directives! {
    declare {
        /// Maps the characters of one charset to those of another, as pairs of hexadecimal codes.
        ///
        /// Syntax: CHARSET1 CHARSET2
        charset_map(2..=2) {} in MAIN => map::declare;
    }

    in MAIN | SERVER | LOCATION;

    /// The charset in the field `Content-Type`. Responses are converted to it if `source_charset`
    /// differs.
    ///
    /// Syntax: CHARSET | $VARIABLE | off
    ///
    /// ```nginx
    /// charset utf-8;
    /// ```
    charset + IF_IN_LOCATION: Charset = "off",
    /// The original charset of responses.
    ///
    /// Syntax: CHARSET | $VARIABLE
    source_charset + IF_IN_LOCATION: Option<CharsetName>,
    /// Whether a backend's response is converted even if it names its charset.
    override_charset + IF_IN_LOCATION: bool = "off",
    /// The MIME types, besides `text/html`, that `charset` applies to. `*` means all.
    ///
    /// Syntax: TYPE...
    ///
    /// ```nginx
    /// charset_types text/css application/json;
    /// ```
    charset_types: MimeTypes =
        "text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
}

#[derive(Clone)]
enum Charset {
    Off,
    Is(CharsetName),
}

/// A charset's name, or the variable that contains it.
#[derive(Clone)]
enum CharsetName {
    Fixed(CharsetId),
    Variable(VariableId),
}

impl Value for Charset {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"off" => Ok(Self::Off),
            _ => CharsetName::parse(from, load).map(Self::Is),
        }
    }
}

impl Value for CharsetName {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        match word.text.strip_prefix(b"$") {
            Some(b"") => Err(from.error_at(word, "invalid variable name \"$\"")),
            Some(name) => Ok(Self::Variable(load.names.number(name, Some(word.span)))),
            None => Ok(Self::Fixed(Charsets::of(load).add(&word.text))),
        }
    }
}

/// The compiled settings of a location.
pub(crate) struct Setup {
    conf: Arc<Conf>,
    /// `None` if only a backend chooses the charset.
    target: Option<CharsetName>,
    charsets: Arc<Charsets>,
}

/// Adds the filter if `charset` is on, or if any location has a backend, because a backend's reply
/// can set the charset and redirect to this location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let target = match &conf.charset {
        Charset::Is(target) => Some(target),
        Charset::Off if location.load.registry.of::<ProxiesAnywhere>().0 => None,
        Charset::Off => return Ok(()),
    };
    let charsets = Charsets::shared(location.load);
    if let (Some(CharsetName::Fixed(source)), Some(CharsetName::Fixed(target))) =
        (&conf.source_charset, target)
        && source != target
        && charsets.recoding(*source, *target).is_none()
    {
        let (source, target) = (charsets.name(*source), charsets.name(*target));
        return Err(Error::bare(no_map(source, target)));
    }
    let setup = Arc::new(Setup { conf: conf.clone(), target: target.cloned(), charsets });
    location.core.own.add(setup.clone());
    location.main_filter(move |x| filter(&setup, x));
    Ok(())
}

/// Whether pages of this location are announced as UTF-8, so that columns are characters.
pub(crate) fn is_utf8(x: &mut Exchange) -> bool {
    let generation = x.generation.clone();
    let own = &generation.location(x.location).core.own;
    let Some(setup) = own.find::<Arc<Setup>>() else { return false };
    let target = setup.target.as_ref().and_then(|target| setup.find(target, x));
    target.is_some_and(|target| target.name.eq_ignore_ascii_case(b"utf-8"))
}

fn no_map(source: &[u8], target: &[u8]) -> String {
    let [source, target] = [source, target].map(String::from_utf8_lossy);
    format!("no \"charset_map\" between the charsets \"{source}\" and \"{target}\"")
}

fn filter(setup: &Setup, x: &mut Exchange) -> Filtered {
    let target = match setup.overriding(x) {
        Some(target) => target,
        None => {
            let Some(target) = setup.target.as_ref().filter(|_| applies(&setup.conf, x)) else {
                return Filtered::Pass;
            };
            let Some(target) = setup.find(target, x) else { return Filtered::Drop };
            target
        }
    };
    let source = match (&x.reply.charset[..], &setup.conf.source_charset) {
        (b"", None) => None,
        (b"", Some(name)) => match setup.find(name, x) {
            Some(source) => Some(source),
            None => return Filtered::Drop,
        },
        (own, _) => Some(setup.known(own.to_vec())),
    };
    match source {
        Some(source) => setup.recode(&source, &target, x),
        None => set_charset(&target.name, x),
    }
    Filtered::Pass
}

fn applies(conf: &Conf, x: &Exchange) -> bool {
    let reply = &x.reply;
    if !reply.override_charset.is_empty() {
        return false;
    }
    match (&reply.content_type[..], &reply.charset[..]) {
        (b"", _) => false,
        (content_type, b"") => conf.charset_types.has(content_type),
        _ => conf.override_charset,
    }
}

/// A charset by name, and by number if the configuration contains it.
struct ResolvedCharset<'s> {
    id: Option<CharsetId>,
    name: Cow<'s, [u8]>,
}

impl Setup {
    /// `None` if the variable has no value.
    fn find(&self, name: &CharsetName, x: &mut Exchange) -> Option<ResolvedCharset<'_>> {
        match name {
            CharsetName::Fixed(id) => Some(ResolvedCharset {
                id: Some(*id),
                name: Cow::Borrowed(self.charsets.name(*id)),
            }),
            CharsetName::Variable(variable) => {
                let mut value = Vec::new();
                x.variable(*variable, &mut value).then(|| self.known(value))
            }
        }
    }

    /// The charset that a backend sets, if it is known.
    fn overriding(&self, x: &Exchange) -> Option<ResolvedCharset<'_>> {
        let name = &x.reply.override_charset;
        if name.is_empty() || x.reply.content_type.is_empty() {
            return None;
        }
        let found = self.known(name.clone());
        if found.id.is_none() {
            let name = observe::Text(name);
            x.log(Level::Error, format_args!("unknown charset \"{name}\" to override"));
            return None;
        }
        Some(found)
    }

    fn known(&self, name: Vec<u8>) -> ResolvedCharset<'_> {
        ResolvedCharset { id: self.charsets.find(&name), name: Cow::Owned(name) }
    }

    fn recode(&self, source: &ResolvedCharset<'_>, target: &ResolvedCharset<'_>, x: &mut Exchange) {
        let recoding = match (source.id, target.id) {
            (None, None) if source.name.eq_ignore_ascii_case(&target.name) => {
                return set_charset(&target.name, x);
            }
            (source, to) if source.is_some() && source == to => {
                return set_charset(&target.name, x);
            }
            (Some(_), Some(_)) if x.reply.fields.known(FieldName::ContentEncoding).is_some() => {
                return;
            }
            (Some(source), Some(target)) => self.charsets.recoding(source, target),
            _ => None,
        };
        let Some(recoding) = recoding else {
            return x.log(Level::Error, format_args!("{}", no_map(&source.name, &target.name)));
        };
        set_charset(&target.name, x);
        if recoding.changes_length() {
            x.reply.content_length = None;
        }
        x.reply.filter_body(Recoder::new(recoding.clone()));
    }
}

/// Sets the charset. Redirects have none, because old browsers applied it to the target page.
fn set_charset(name: &[u8], x: &mut Exchange) {
    x.reply.charset.clear();
    x.reply.parameters.clear();
    if !matches!(x.reply.status, 301 | 302) {
        x.reply.charset.extend_from_slice(name);
    }
}
