//! Makes the head of the client's reply from the head of a backend's reply.

use conf::units;
use observe::{Level, Text};
use wire::reply::{ReplyField, ReplyName};
use wire::{Method, Slice};

use super::Conf;
use super::values::IgnoredFields;
use crate::exchange::Backends;
use crate::exchange::{Exchange, Fields, Flow, Jump, JumpArgs};

/// Which fields of replies a location passes on.
#[derive(Default)]
pub(crate) struct HeaderFilter {
    /// Well-known names that are not passed on.
    hidden: u32,
    /// Other names, in lower case.
    hidden_others: Vec<Box<[u8]>>,
    /// See [`ReplyFields`].
    own_are_optional: bool,
}

/// A family's defaults for the fields of replies.
pub(crate) struct ReplyFields {
    /// Fields that are not passed on.
    pub(crate) hidden: &'static [ReplyName],
    /// Whether a reply without `Server` or `Date` stays without them if the backend's are passed
    /// on. Otherwise this server adds its own.
    pub(crate) own_are_optional: bool,
}

/// Fields that are never passed on: they concern one connection, or are written anew.
const NEVER: u32 = ReplyName::ContentLength.bit()
    | ReplyName::Connection.bit()
    | ReplyName::KeepAlive.bit()
    | ReplyName::TransferEncoding.bit();

/// Rewrites values that contain the backend's own addresses; `None`: the value is unchanged.
/// `value` is a slice of the head of the backend's reply.
pub(crate) trait ReplyRewriter {
    fn location(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>>;
    fn refresh(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>>;
    /// `Set-Cookie`
    fn cookie(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>>;
}

impl ReplyRewriter for () {
    fn location(&self, _: &mut Exchange, _: Slice) -> Option<Vec<u8>> {
        None
    }

    fn refresh(&self, _: &mut Exchange, _: Slice) -> Option<Vec<u8>> {
        None
    }

    fn cookie(&self, _: &mut Exchange, _: Slice) -> Option<Vec<u8>> {
        None
    }
}

impl HeaderFilter {
    pub(crate) fn new(conf: &Conf, family: &ReplyFields) -> Self {
        let mut filter = Self {
            hidden: family.hidden.iter().fold(0, |set, name| set | name.bit()),
            hidden_others: vec![],
            own_are_optional: family.own_are_optional,
        };
        for name in &conf.hide_header {
            match ReplyName::of(&name.0) {
                ReplyName::Other => filter.hidden_others.push(name.0.to_ascii_lowercase().into()),
                known => filter.hidden |= known.bit(),
            }
        }
        for name in &conf.pass_header {
            match ReplyName::of(&name.0) {
                ReplyName::Other => {
                    filter.hidden_others.retain(|other| !other.eq_ignore_ascii_case(&name.0));
                }
                known => filter.hidden &= !known.bit(),
            }
        }
        filter
    }

    /// Hides further fields, in lower case, unless the configuration passes them on.
    pub(crate) fn hiding(mut self, names: Vec<Box<[u8]>>, conf: &Conf) -> Self {
        let is_passed =
            |name: &[u8]| conf.pass_header.iter().any(|own| own.0.eq_ignore_ascii_case(name));
        self.hidden_others.extend(names.into_iter().filter(|name| !is_passed(name)));
        self
    }

    /// Whether a field with that name is passed on.
    pub(super) fn shows(&self, name: &[u8]) -> bool {
        match ReplyName::of(name) {
            ReplyName::Other => {
                !self.hidden_others.iter().any(|other| other.eq_ignore_ascii_case(name))
            }
            known => (self.hidden | NEVER) & known.bit() == 0,
        }
    }

    fn hides(&self, field: &ReplyField, name: &[u8]) -> bool {
        match field.id {
            ReplyName::Other => {
                self.hidden_others.iter().any(|other| other.eq_ignore_ascii_case(name))
            }
            known => self.hides_known(known),
        }
    }

    fn hides_known(&self, name: ReplyName) -> bool {
        (self.hidden | NEVER) & name.bit() != 0
    }

    /// Whether a field that this server would add is left to the backend.
    fn leaves(&self, name: ReplyName, x: &Exchange) -> bool {
        let is_there = || x.backends.head.field(name).is_some();
        !self.hides_known(name) && (self.own_are_optional || is_there())
    }
}

/// Fields that a reply may have once: repetitions are ignored, as in nginx.
const SINGLE: u32 = ReplyName::Status.bit()
    | ReplyName::ContentType.bit()
    | ReplyName::Date.bit()
    | ReplyName::LastModified.bit()
    | ReplyName::ETag.bit()
    | ReplyName::Server.bit()
    | ReplyName::Location.bit()
    | ReplyName::Refresh.bit()
    | ReplyName::Expires.bit()
    | ReplyName::XAccelExpires.bit()
    | ReplyName::XAccelRedirect.bit()
    | ReplyName::XAccelLimitRate.bit();

/// Removes and logs repetitions of fields that a reply may have once.
pub(super) fn drop_duplicates(x: &mut Exchange) {
    if !x.backends.head.fields.repeats_any(SINGLE) {
        return;
    }
    let fields = std::mem::take(&mut x.backends.head.fields);
    let is_first = |(at, field): &(usize, &ReplyField)| {
        let is_single = SINGLE & field.id.bit() != 0;
        let first = fields[..*at].iter().find(|first| is_single && first.id == field.id);
        if let Some(first) = first {
            log_duplicate(x, field, first);
        }
        first.is_none()
    };
    let kept = fields.iter().enumerate().filter(is_first).map(|(_, field)| *field).collect();
    x.backends.head.fields = kept;
}

fn log_duplicate(x: &Exchange, field: &ReplyField, first: &ReplyField) {
    let text = |slice: Slice| Text(slice.of(&x.backends.head_text));
    let (name, value) = (text(field.name), text(field.value));
    let (first_name, first_value) = (text(first.name), text(first.value));
    let line = format_args!("upstream sent duplicate header line: \"{name}: {value}\"");
    let previous = format_args!("previous value: \"{first_name}: {first_value}\"");
    x.log(Level::Warn, format_args!("{line}, {previous}, ignored"));
}

/// Where a reply comes from, as far as its conditions and ranges depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplySource {
    Backend,
    /// The backend, which was asked for the whole reply, because it is to be stored.
    Whole,
    Cache,
}

/// Copies the head into the exchange's reply.
pub(super) fn copy(
    x: &mut Exchange,
    conf: &Conf,
    filter: &HeaderFilter,
    rewriter: &dyn ReplyRewriter,
    source: ReplySource,
) {
    let Backends { head, head_text, .. } = &x.backends;
    x.reply.status = head.status;
    x.reply.reason.clear();
    x.reply.reason.extend_from_slice(head.status_line.of(head_text));
    x.reply.disable_not_modified = source == ReplySource::Backend;
    // The pieces of a reply that is being received come in order.
    let is_single = source != ReplySource::Cache;
    (x.reply.allow_ranges, x.reply.single_range) = (conf.force_ranges, is_single);
    x.reply.has_server = filter.leaves(ReplyName::Server, x);
    x.reply.has_date = filter.leaves(ReplyName::Date, x);
    for at in 0..x.backends.head.fields.len() {
        let field = x.backends.head.fields[at];
        if filter.hides(&field, field.name.of(&x.backends.head_text)) {
            continue;
        }
        if source != ReplySource::Backend && field.id == ReplyName::AcceptRanges {
            x.reply.allow_ranges = true;
            continue;
        }
        copy_field(x, conf, rewriter, &field);
    }
}

/// The length that the head announces.
pub(super) fn announced_length(x: &Exchange) -> Option<u64> {
    let field = x.backends.head.field(ReplyName::ContentLength)?;
    units::number(field.value.of(&x.backends.head_text))
}

fn copy_field(x: &mut Exchange, conf: &Conf, rewriter: &dyn ReplyRewriter, field: &ReplyField) {
    let rewritten = match field.id {
        ReplyName::AcceptRanges if conf.force_ranges => return,
        ReplyName::Location => rewriter.location(x, field.value),
        ReplyName::Refresh => rewriter.refresh(x, field.value),
        ReplyName::SetCookie => rewriter.cookie(x, field.value),
        _ => None,
    };
    let (reply, text) = (&mut x.reply, &x.backends.head_text);
    let (name, value) = (field.name.of(text), field.value.of(text));
    match (field.id, rewritten) {
        (ReplyName::ContentType, _) => return reply.parse_content_type(value),
        // A value that was rewritten to a path is completed like this server's own redirects.
        (ReplyName::Location, Some(path)) if path.first() == Some(&b'/') => {
            return reply.set_location(path);
        }
        (_, Some(rewritten)) => return reply.fields.append(name, &rewritten),
        (ReplyName::LastModified, _) => reply.last_modified = wire::date::parse(value),
        _ => {}
    }
    reply.fields.append(name, value);
}

/// Sends the server's early hints to the client as an interim reply.
pub(super) fn send_early_hints(x: &mut Exchange, filter: &HeaderFilter) {
    let generation = x.generation.clone();
    let wanted = &generation.location(x.location).core.early_hints;
    let Some(downstream) = x.downstream.clone().filter(|downstream| downstream.takes_interim())
    else {
        return;
    };
    if !wanted.as_ref().is_some_and(|w| w.any(x)) {
        return;
    }
    let mut fields = Fields::default();
    let text = &x.backends.head_text;
    for field in &x.backends.head.fields {
        let (name, value) = (field.name.of(text), field.value.of(text));
        if !filter.hides(field, name) {
            fields.append(name, value);
        }
    }
    if !fields.is_empty() {
        x.reply.bytes_sent += downstream.send_interim(103, &fields) as u64;
    }
}

/// The fields that [`apply_accel_fields`] obeys.
const ACCEL: u32 = ReplyName::XAccelLimitRate.bit()
    | ReplyName::XAccelBuffering.bit()
    | ReplyName::XAccelCharset.bit()
    | ReplyName::XAccelRedirect.bit();

/// Obeys the fields of a reply that are for this server. `Some`: another resource answers.
pub(super) fn apply_accel_fields(
    x: &mut Exchange,
    conf: &Conf,
    rewriter: &dyn ReplyRewriter,
    buffering: &mut bool,
) -> Option<Flow> {
    if !x.backends.head.fields.has_any(ACCEL) {
        return None;
    }
    let value = |x: &Exchange, name: ReplyName, ignored: u16| -> Option<Slice> {
        let mut fields = x.backends.head.fields.iter().rev();
        let field = fields.find(|field| field.id == name).filter(|_| !ignores(conf, ignored))?;
        Some(field.value)
    };
    if let Some(value) = value(x, ReplyName::XAccelLimitRate, IgnoredFields::LIMIT_RATE)
        && let Some(rate) = units::number(value.of(&x.backends.head_text))
    {
        x.reply.limit_rate = Some(rate);
    }
    if let Some(value) = value(x, ReplyName::XAccelBuffering, IgnoredFields::BUFFERING) {
        match &value.of(&x.backends.head_text).to_ascii_lowercase()[..] {
            b"yes" => *buffering = true,
            b"no" => *buffering = false,
            _ => {}
        }
    }
    if let Some(value) = value(x, ReplyName::XAccelCharset, IgnoredFields::CHARSET) {
        x.reply.override_charset.clear();
        x.reply.override_charset.extend_from_slice(value.of(&x.backends.head_text));
    }
    let target = value(x, ReplyName::XAccelRedirect, IgnoredFields::REDIRECT)?;
    let target = target.of(&x.backends.head_text).to_vec();
    keep_for_redirect(x, conf, rewriter);
    Some(redirect(x, target))
}

fn ignores(conf: &Conf, field: u16) -> bool {
    conf.ignore_headers.is_some_and(|ignored| ignored.has(field))
}

/// `X-Accel-Redirect`: keeps some of the backend's fields; another resource answers.
fn redirect(x: &mut Exchange, target: Vec<u8>) -> Flow {
    if target.first() == Some(&b'@') {
        return crate::answer::to_named(x, &target);
    }
    let mut uri = Vec::new();
    match wire::uri::parse_unsafe(&target, &mut uri) {
        Some(args) => {
            let args = match args.is_empty() {
                true => JumpArgs::None,
                false => JumpArgs::New(args.to_vec()),
            };
            // Only now, since an unsafe URI does not change `$request_method`.
            if x.request.head.method != Method::Head {
                x.request.head.method = Method::Get;
            }
            Flow::Jump(Jump::Internal { uri, args })
        }
        None => {
            x.log(Level::Error, format_args!("unsafe URI \"{}\" was detected", Text(&target)));
            Flow::Status(404)
        }
    }
}

/// Keeps some fields for the reply of another resource.
fn keep_for_redirect(x: &mut Exchange, conf: &Conf, rewriter: &dyn ReplyRewriter) {
    const KEPT: u32 = ReplyName::ContentType.bit()
        | ReplyName::SetCookie.bit()
        | ReplyName::CacheControl.bit()
        | ReplyName::Expires.bit()
        | ReplyName::AcceptRanges.bit();
    for at in 0..x.backends.head.fields.len() {
        let field = x.backends.head.fields[at];
        let stays = match field.id {
            ReplyName::Other => {
                let name = field.name.of(&x.backends.head_text);
                name.eq_ignore_ascii_case(b"Content-Disposition")
            }
            known => KEPT & known.bit() != 0,
        };
        if stays {
            copy_field(x, conf, rewriter, &field);
        }
    }
}
