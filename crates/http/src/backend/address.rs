//! A backend that is named by its address alone: what `fastcgi_pass`, `scgi_pass`, `uwsgi_pass` and
//! `memcached_pass` say. A URL is `features::proxy`'s.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::upstream::named::{self, ByName, GroupHost};
use ::upstream::{Group, address};
use conf::{Directive, Inherited, Load, Result, Template, Value, Word};
use observe::{Level, Text};
use session::backend::{NoGroup, find_group};

use super::AnyBackend;
use crate::exchange::{Exchange, Flow};

/// A backend as a line says it.
#[derive(Clone, Debug)]
pub enum PassTo {
    /// The same for all requests.
    Fixed {
        /// The host.
        host: GroupHost,
        /// Whether the scheme before it is the one of TLS.
        is_tls: bool,
    },
    /// What this renders to.
    Computed(Template),
}

/// The schemes that may stand before an address; empty: there is none.
#[derive(Clone, Copy, Default)]
pub(crate) struct AddressSchemes {
    pub(crate) plain: &'static str,
    pub(crate) tls: &'static str,
}

impl Value for PassTo {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Self::of(from.arg(0), AddressSchemes::default(), from, load)
    }
}

impl AddressSchemes {
    /// What follows the scheme, and whether that is the one of TLS.
    fn split<'a>(&self, text: &'a [u8]) -> (&'a [u8], bool) {
        let after = |scheme: &str| {
            let (start, rest) = text.split_at_checked(scheme.len())?;
            let begins = !scheme.is_empty() && start.eq_ignore_ascii_case(scheme.as_bytes());
            begins.then_some(rest)
        };
        match after(self.tls) {
            Some(rest) => (rest, true),
            None => (after(self.plain).unwrap_or(text), false),
        }
    }
}

impl PassTo {
    /// Reads an address that may have a scheme.
    pub(crate) fn of(
        word: &Word,
        schemes: AddressSchemes,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        load.registry.of::<AnyBackend>().0 = true;
        let template = Template::compile(word, from, load)?;
        if template.as_fixed().is_none() {
            return Ok(Self::Computed(template));
        }
        let (text, is_tls) = schemes.split(&word.text);
        let host = GroupHost::parse(text).map_err(|why| {
            let meant = address::meant(text);
            let text = String::from_utf8_lossy(text);
            from.error_at(word, format!("{why} in upstream \"{text}\"")).guess(meant)
        })?;
        host.declare(from, word, load);
        Ok(Self::Fixed { host, is_tls })
    }

    /// Whether no request is passed on over TLS.
    pub(crate) fn is_never_tls(&self) -> bool {
        matches!(self, Self::Fixed { is_tls: false, .. })
    }

    /// The group it names, or the groups it may name.
    pub(crate) fn compile(&self, load: &mut Load<'_>) -> Result<TargetGroup> {
        let groups = named::all(load)?;
        Ok(match self {
            Self::Fixed { host, is_tls } => {
                let group = host.find(&groups).expect("every line declares its host");
                TargetGroup::Fixed { group: group.clone(), is_tls: *is_tls }
            }
            Self::Computed(template) => TargetGroup::Computed(template.clone(), groups),
        })
    }
}

/// The backends of a location, found when it is compiled.
pub(crate) enum TargetGroup {
    /// This one, perhaps over TLS.
    Fixed { group: Arc<Group>, is_tls: bool },
    /// Depends on the request; the groups it may name.
    Computed(Template, Arc<ByName>),
}

impl TargetGroup {
    /// The group, unless it depends on the request.
    pub(crate) fn fixed(&self) -> Option<&Arc<Group>> {
        match self {
            Self::Fixed { group, .. } => Some(group),
            Self::Computed(..) => None,
        }
    }

    /// The backend of this request, its name not resolved yet: nginx refuses a bad one before it
    /// reads the body. A failure has been logged.
    pub(crate) fn evaluate(
        &self,
        x: &mut Exchange,
        schemes: AddressSchemes,
    ) -> std::result::Result<RequestTarget<'_>, Flow> {
        let (template, groups) = match self {
            Self::Fixed { group, is_tls } => {
                return Ok(RequestTarget { is_tls: *is_tls, name: TargetName::Group(group) });
            }
            Self::Computed(template, groups) => (template, groups),
        };
        let text = x.render(template);
        let (text, is_tls) = schemes.split(&text);
        let host = GroupHost::parse(text).map_err(|why| {
            x.log(Level::Error, format_args!("{why} in upstream \"{}\"", Text(text)));
            Flow::Status(500)
        })?;
        Ok(RequestTarget { is_tls, name: TargetName::Host(host, groups) })
    }
}

/// The backend of one request.
pub(crate) struct RequestTarget<'a> {
    /// Whether the scheme before its name is the one of TLS.
    pub(crate) is_tls: bool,
    name: TargetName<'a>,
}

enum TargetName<'a> {
    Group(&'a Arc<Group>),
    /// A group's name, or a host that is yet to be resolved.
    Host(GroupHost, &'a ByName),
}

impl RequestTarget<'_> {
    /// Its group. A failure has been logged.
    pub(crate) async fn group(self, x: &mut Exchange) -> std::result::Result<Arc<Group>, Flow> {
        let (host, groups) = match self.name {
            TargetName::Group(group) => return Ok(group.clone()),
            TargetName::Host(host, groups) => (host, groups),
        };
        let names = &x.location().core.names;
        find_group(x, &host, groups, names).await.map_err(|no| match no {
            NoGroup::Invalid => Flow::Status(500),
            NoGroup::Unresolved => Flow::Status(502),
        })
    }
}
