//! Backends given by an address: the argument of `fastcgi_pass`, `scgi_pass`, `uwsgi_pass`,
//! `grpc_pass` and `memcached_pass`. URLs are in `features::proxy`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::upstream::named::{self, ByName, GroupHost};
use ::upstream::{Group, address};
use conf::{Directive, Inherited, Load, Result, Template, Value, Word};
use observe::{Level, Text};
use session::backend::{NoGroup, find_group};

use super::ProxiesAnywhere;
use crate::exchange::{Exchange, Flow, TimedPhase};

/// The argument of `fastcgi_pass`, `memcached_pass` and the like.
#[derive(Clone, Debug)]
pub enum PassTo {
    /// One backend for all requests.
    Fixed {
        host: GroupHost,
        /// Whether its scheme means TLS.
        is_tls: bool,
    },
    /// The backend that this template yields.
    Computed(Template),
}

/// The schemes that may precede an address; empty: none.
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
    /// The text after the scheme, and whether the scheme means TLS.
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
    /// Parses an address with an optional scheme.
    pub(crate) fn of(
        word: &Word,
        schemes: AddressSchemes,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        load.registry.of::<ProxiesAnywhere>().0 = true;
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

    pub(crate) fn is_never_tls(&self) -> bool {
        matches!(self, Self::Fixed { is_tls: false, .. })
    }

    /// The group, or the groups that it may name.
    pub(crate) fn compile(&self, load: &mut Load<'_>) -> Result<TargetGroup> {
        let groups = named::all(load)?;
        Ok(match self {
            Self::Fixed { host, is_tls } => {
                let group = host.find(&groups).expect("every line declares its host");
                let (group, host) = (group.clone(), host.text.clone());
                TargetGroup::Fixed { group, host, is_tls: *is_tls }
            }
            Self::Computed(template) => TargetGroup::Computed(template.clone(), groups),
        })
    }
}

/// The backends of a location, found when it is compiled.
pub(crate) enum TargetGroup {
    /// This group, perhaps over TLS.
    Fixed {
        group: Arc<Group>,
        /// The group as the line names it.
        host: Box<[u8]>,
        is_tls: bool,
    },
    /// Depends on the request; the groups it may name.
    Computed(Template, Arc<ByName>),
}

impl TargetGroup {
    /// The group; `None` if it depends on the request.
    pub(crate) fn fixed(&self) -> Option<&Arc<Group>> {
        match self {
            Self::Fixed { group, .. } => Some(group),
            Self::Computed(..) => None,
        }
    }

    /// The backend of this request, not resolved yet: nginx rejects an invalid one before it reads
    /// the body. A failure has been logged.
    pub(crate) fn evaluate(
        &self,
        x: &mut Exchange,
        schemes: AddressSchemes,
    ) -> std::result::Result<RequestTarget<'_>, Flow> {
        let (template, groups) = match self {
            Self::Fixed { group, host, is_tls } => {
                let name = TargetName::Group(group, host);
                return Ok(RequestTarget { is_tls: *is_tls, name });
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

pub(crate) struct RequestTarget<'a> {
    pub(crate) is_tls: bool,
    name: TargetName<'a>,
}

enum TargetName<'a> {
    /// A group, and how the line names it.
    Group(&'a Arc<Group>, &'a [u8]),
    /// A group's name, or a host to be resolved.
    Host(GroupHost, &'a ByName),
}

impl RequestTarget<'_> {
    /// The text that names it, with its port if it has one.
    pub(crate) fn host(&self) -> &[u8] {
        match &self.name {
            TargetName::Group(_, host) => host,
            TargetName::Host(host, _) => &host.text,
        }
    }

    /// Its group. A failure has been logged.
    pub(crate) async fn group(self, x: &mut Exchange) -> std::result::Result<Arc<Group>, Flow> {
        let (host, groups) = match self.name {
            TargetName::Group(group, _) => return Ok(group.clone()),
            TargetName::Host(host, groups) => (host, groups),
        };
        x.waits_for(TimedPhase::Resolve);
        let names = &x.location().core.names;
        find_group(x, &host, groups, names).await.map_err(|no| match no {
            NoGroup::Invalid => Flow::Status(500),
            NoGroup::Unresolved => Flow::Status(502),
        })
    }
}
