//! `sticky` and its three kinds.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Template, Value, VariableId, Word, units};
use zones::{TwoProcesses, ZoneState, Zones};

use super::method::GroupReading;
use crate::sticky::{Cookie, CookieExpires, Learn, Sessions, Sticky, is_samesite};

const TIMEOUT_MS: u64 = 600_000;
/// The least size that nginx accepts: eight pages.
const ZONE_SIZE_MIN: u64 = 8 * 4096;

impl Value for Sticky {
    const ARGS: RangeInclusive<usize> = 2..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let kind = from.arg(0);
        match &*kind.text {
            b"cookie" => cookie(from, load).map(Self::Cookie),
            b"route" => {
                let variables = from.args[1..].iter().map(|word| route(word, from, load));
                variables.collect::<Result<_>>().map(Self::Route)
            }
            b"learn" => learn(from, load).map(Self::Learn),
            _ => Err(from.error_at(kind, format!("unknown parameter \"{kind}\""))),
        }
    }
}

fn route(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<VariableId> {
    match word.text.strip_prefix(b"$") {
        Some(name) if !name.is_empty() => Ok(load.names.number(name, Some(word.span))),
        _ => Err(from.error_at(word, format!("invalid variable name \"{word}\""))),
    }
}

fn cookie(from: &Directive, load: &mut Load<'_>) -> Result<Cookie> {
    let name = from.arg(1);
    if name.text.is_empty() {
        return Err(from.refuse("empty cookie name").marked(name.span));
    }
    let variable = [b"cookie_", &*name.text].concat();
    let mut cookie = Cookie {
        name: name.text.clone(),
        variable: load.names.number(&variable, Some(name.span)),
        domain: None,
        path: None,
        expires: None,
        samesite: None,
        httponly: false,
        secure: false,
    };
    for word in &from.args[2..] {
        attribute(&mut cookie, word, from, load)?;
    }
    Ok(cookie)
}

fn attribute(
    cookie: &mut Cookie,
    word: &Word,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<()> {
    let (name, value) = split(&word.text);
    let once = |is_said: bool, name: &str| match is_said {
        false => Ok(()),
        true => Err(refuse(from, word, &format!("parameter \"{name}\" is duplicate"))),
    };
    let some = |name: &str| match value.is_empty() {
        false => Ok(()),
        true => Err(refuse(from, word, &format!("no value for \"{name}\""))),
    };
    match name {
        b"domain=" => {
            once(cookie.domain.is_some(), "domain")?;
            some("domain")?;
            cookie.domain = Some(Template::from_bytes(value, word, from, load)?);
        }
        b"path=" => {
            once(cookie.path.is_some(), "path")?;
            some("path")?;
            cookie.path = Some(value.into());
        }
        b"expires=" => {
            once(cookie.expires.is_some(), "expires")?;
            let invalid = || refuse(from, word, "invalid \"expires\" parameter value");
            cookie.expires = Some(match value {
                b"max" => CookieExpires::Max,
                _ => CookieExpires::After(units::seconds(value).ok_or_else(invalid)?),
            });
        }
        b"httponly" => {
            once(cookie.httponly, "httponly")?;
            cookie.httponly = true;
        }
        b"secure" => {
            once(cookie.secure, "secure")?;
            cookie.secure = true;
        }
        b"samesite=" => {
            once(cookie.samesite.is_some(), "samesite")?;
            let template = Template::from_bytes(value, word, from, load)?;
            if template.as_fixed().is_some_and(|text| !is_samesite(text)) {
                return Err(refuse(from, word, "invalid \"samesite\" parameter value"));
            }
            cookie.samesite = Some(template);
        }
        _ => return Err(from.error_at(word, format!("unknown parameter \"{word}\""))),
    }
    Ok(())
}

/// The parsed arguments of `sticky learn`.
#[derive(Default)]
struct LearnArguments {
    create: Vec<VariableId>,
    lookup: Vec<VariableId>,
    zone: Option<(Box<[u8]>, u64)>,
    timeout_ms: Option<u64>,
    from_header: bool,
}

fn learn(from: &Directive, load: &mut Load<'_>) -> Result<Learn> {
    let mut said = LearnArguments::default();
    for word in &from.args[1..] {
        said.parameter(word, from, load)?;
    }
    let missing = |name: &str| from.refuse(format!("\"{name}\" parameter is not specified"));
    if said.lookup.is_empty() {
        return Err(missing("lookup"));
    }
    if said.create.is_empty() {
        return Err(missing("create"));
    }
    let (zone, size) = said.zone.ok_or_else(|| missing("zone"))?;
    Ok(Learn {
        create: said.create,
        lookup: said.lookup,
        from_header: said.from_header,
        timeout_ms: said.timeout_ms.unwrap_or(TIMEOUT_MS),
        sessions: sessions(&zone, size, from, load)?,
    })
}

impl LearnArguments {
    fn parameter(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let (name, value) = split(&word.text);
        let mut variable = |name: &str| match value.strip_prefix(b"$") {
            Some(variable) => Ok(load.names.number(variable, Some(word.span))),
            None => {
                let why = format!("missing variable in the \"{name}\" parameter");
                Err(refuse(from, word, &why))
            }
        };
        match name {
            b"create=" => self.create.push(variable("create")?),
            b"lookup=" => self.lookup.push(variable("lookup")?),
            b"zone=" if self.zone.is_some() => return Err(refuse(from, word, "duplicate zone")),
            b"zone=" => self.zone = Some(zone(value).map_err(|why| refuse(from, word, why))?),
            b"timeout=" if self.timeout_ms.is_some() => {
                return Err(refuse(from, word, "duplicate timeout"));
            }
            b"timeout=" => {
                let timeout_ms = units::milliseconds(value).filter(|timeout_ms| *timeout_ms > 0);
                let invalid = || refuse(from, word, "invalid timeout");
                self.timeout_ms = Some(timeout_ms.ok_or_else(invalid)?);
            }
            b"header" => self.from_header = true,
            _ => return Err(from.error_at(word, format!("unknown parameter \"{word}\""))),
        }
        Ok(())
    }
}

/// `name:size`
fn zone(text: &[u8]) -> Result<(Box<[u8]>, u64), &'static str> {
    let colon = text.iter().position(|&byte| byte == b':').ok_or("zone size is not specified")?;
    let (name, size) = (&text[..colon], &text[colon + 1..]);
    if name.is_empty() {
        return Err("zone name is not specified");
    }
    match units::size(size).ok_or("invalid zone size")? {
        size if size < ZONE_SIZE_MIN => Err("zone is too small"),
        size => Ok((name.into(), size)),
    }
}

/// The zones of sessions of this configuration, each with its group.
#[derive(Default)]
struct ClaimedZones(HashMap<Box<[u8]>, Box<[u8]>>);

impl ZoneState for Sessions {
    const DIRECTIVES: &'static [&'static str] = &["sticky"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

/// The sessions of a zone, which is for one group only.
fn sessions(
    zone: &[u8],
    size: u64,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<Arc<Sessions>> {
    let shown = String::from_utf8_lossy(zone);
    let group = load.own.of::<GroupReading>().group.clone();
    Zones::of(load).mention::<Sessions>(zone, Some(size), from)?;
    if let Some(group) = load.registry.of::<ClaimedZones>().0.insert(zone.into(), group.clone()) {
        let group = String::from_utf8_lossy(&group);
        let message = format!("sticky zone \"{shown}\" is already used in upstream \"{group}\"");
        return Err(from.error(message));
    }
    Zones::of(load).open(zone, |before: Option<Arc<Sessions>>| match before {
        None => Ok(Arc::new(Sessions::new(&group, size))),
        Some(sessions) if sessions.group() == &*group => Ok(sessions),
        Some(sessions) => {
            let (now, then) =
                (String::from_utf8_lossy(&group), String::from_utf8_lossy(sessions.group()));
            Err(Error::bare(format!(
                "sticky zone \"{shown}\" is used in upstream \"{now}\" while previously it was \
                 used in upstream \"{then}\""
            )))
        }
    })
}

fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => text.split_at(at + 1),
        None => (text, b""),
    }
}

fn refuse(from: &Directive, word: &Word, why: &str) -> Error {
    from.refuse(why).marked(word.span)
}
