//! From the head of a backend's reply to the head of ours.

use conf::units;
use observe::{Level, Text};
use wire::http1::response::{ReplyField, ReplyName};
use wire::{Method, Slice};

use super::Conf;
use super::values::Ignored;
use crate::exchange::{Exchange, Flow, Jump};

/// What a location does with the fields of replies.
pub(crate) struct Passed {
    /// Well-known names that are not passed on.
    hidden: u32,
    /// Others, in lower case.
    hidden_others: Vec<Box<[u8]>>,
}

/// What is not passed on unless the configuration says so.
const HIDDEN: [ReplyName; 8] = [
    ReplyName::Date,
    ReplyName::Server,
    ReplyName::XPad,
    ReplyName::XAccelExpires,
    ReplyName::XAccelRedirect,
    ReplyName::XAccelLimitRate,
    ReplyName::XAccelBuffering,
    ReplyName::XAccelCharset,
];

/// What is never passed on: it is about this connection, or said anew.
const NEVER: u32 = ReplyName::ContentLength.bit()
    | ReplyName::Connection.bit()
    | ReplyName::KeepAlive.bit()
    | ReplyName::TransferEncoding.bit();

/// Rewrites a value that names the backend's own addresses, in place; false: it stays.
pub(crate) trait Rewrite {
    /// `Location`
    fn location(&self, x: &mut Exchange, value: &[u8]) -> Option<Vec<u8>>;
    /// `Refresh`
    fn refresh(&self, x: &mut Exchange, value: &[u8]) -> Option<Vec<u8>>;
    /// `Set-Cookie`
    fn cookie(&self, x: &mut Exchange, value: &[u8]) -> Option<Vec<u8>>;
}

impl Passed {
    pub(crate) fn new(conf: &Conf) -> Self {
        let mut passed = Self {
            hidden: HIDDEN.iter().fold(0, |set, name| set | name.bit()),
            hidden_others: vec![],
        };
        for name in &conf.hide_header {
            match ReplyName::of(&name.0) {
                ReplyName::Other => passed.hidden_others.push(name.0.to_ascii_lowercase().into()),
                known => passed.hidden |= known.bit(),
            }
        }
        for name in &conf.pass_header {
            match ReplyName::of(&name.0) {
                ReplyName::Other => {
                    passed.hidden_others.retain(|other| !other.eq_ignore_ascii_case(&name.0));
                }
                known => passed.hidden &= !known.bit(),
            }
        }
        passed
    }

    fn hides(&self, field: &ReplyField, name: &[u8]) -> bool {
        match field.id {
            ReplyName::Other => {
                self.hidden_others.iter().any(|other| other.eq_ignore_ascii_case(name))
            }
            known => (self.hidden | NEVER) & known.bit() != 0,
        }
    }
}

/// Copies the head into the exchange's reply.
pub(super) fn copy(x: &mut Exchange, conf: &Conf, passed: &Passed, rewrite: &dyn Rewrite) {
    let (mut head, text) =
        (std::mem::take(&mut x.backends.head), std::mem::take(&mut x.backends.head_text));
    x.reply.status = head.status;
    x.reply.reason.clear();
    x.reply.reason.extend_from_slice(head.status_line.of(&text));
    let fields = std::mem::take(&mut head.fields);
    for field in &fields {
        let (name, value) = (field.name.of(&text), field.value.of(&text));
        if !passed.hides(field, name) {
            copy_field(x, conf, rewrite, field, name, value);
        }
    }
    head.fields = fields;
    (x.backends.head, x.backends.head_text) = (head, text);
}

fn copy_field(
    x: &mut Exchange,
    conf: &Conf,
    rewrite: &dyn Rewrite,
    field: &ReplyField,
    name: &[u8],
    value: &[u8],
) {
    let rewritten = match field.id {
        ReplyName::ContentType => return copy_content_type(x, value),
        ReplyName::LastModified => {
            x.reply.last_modified = wire::date::parse(value);
            None
        }
        ReplyName::AcceptRanges if conf.force_ranges => return,
        ReplyName::Upgrade if x.reply.status != 101 => return,
        ReplyName::Location => rewrite.location(x, value),
        ReplyName::Refresh => rewrite.refresh(x, value),
        ReplyName::SetCookie => rewrite.cookie(x, value),
        ReplyName::Server => {
            x.reply.has_server = true;
            None
        }
        ReplyName::Date => {
            x.reply.has_date = true;
            None
        }
        _ => None,
    };
    x.reply.fields.append(name, rewritten.as_deref().unwrap_or(value));
}

/// The charset is kept apart from the type, as filters expect it.
fn copy_content_type(x: &mut Exchange, value: &[u8]) {
    x.reply.set_content_type(value);
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b';', &value[at..]) {
        let semicolon = at + offset;
        let rest = &value[semicolon + 1..];
        let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
        let parameter = &rest[spaces..];
        if parameter.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"charset=")) {
            let charset = &parameter[8..];
            let charset = charset.strip_prefix(b"\"").unwrap_or(charset);
            let charset = charset.strip_suffix(b"\"").unwrap_or(charset);
            x.reply.content_type.truncate(semicolon);
            x.reply.charset.clear();
            x.reply.charset.extend_from_slice(charset);
            return;
        }
        at = semicolon + 1;
    }
}

/// What a reply asks of us, not of the client. `Some`: another resource is to answer.
pub(super) fn obey(x: &mut Exchange, conf: &Conf, buffering: &mut bool) -> Option<Flow> {
    let value = |x: &Exchange, name: ReplyName, ignored: u16| -> Option<Slice> {
        let field = x.backends.head.field(name).filter(|_| !ignores(conf, ignored))?;
        Some(field.value)
    };
    if let Some(value) = value(x, ReplyName::XAccelLimitRate, Ignored::LIMIT_RATE)
        && let Some(rate) = units::number(value.of(&x.backends.head_text))
    {
        x.reply.limit_rate = Some(rate);
    }
    if let Some(value) = value(x, ReplyName::XAccelBuffering, Ignored::BUFFERING) {
        match &value.of(&x.backends.head_text).to_ascii_lowercase()[..] {
            b"yes" => *buffering = true,
            b"no" => *buffering = false,
            _ => {}
        }
    }
    let target = value(x, ReplyName::XAccelRedirect, Ignored::REDIRECT)?;
    let target = target.of(&x.backends.head_text).to_vec();
    Some(redirect(x, target))
}

fn ignores(conf: &Conf, field: u16) -> bool {
    conf.ignore_headers.is_some_and(|ignored| ignored.has(field))
}

/// `X-Accel-Redirect`: some of the backend's fields stay, the rest is another resource's.
fn redirect(x: &mut Exchange, target: Vec<u8>) -> Flow {
    keep_for_redirect(x);
    if x.request.head.method != Method::Head {
        x.request.head.method = Method::Get;
    }
    if target.first() == Some(&b'@') {
        return crate::features::error_page::to_named(x, &target);
    }
    let mut uri = Vec::new();
    match wire::uri::parse_unsafe(&target, &mut uri) {
        Some(args) => Flow::Jump(Jump::Internal { uri, args: Some(args.to_vec()) }),
        None => {
            x.log(Level::Error, format_args!("unsafe URI \"{}\" was detected", Text(&target)));
            Flow::Status(404)
        }
    }
}

/// The fields that stay although another resource answers.
fn keep_for_redirect(x: &mut Exchange) {
    const KEPT: u32 = ReplyName::ContentType.bit()
        | ReplyName::SetCookie.bit()
        | ReplyName::CacheControl.bit()
        | ReplyName::Expires.bit()
        | ReplyName::AcceptRanges.bit();
    let (head, text) =
        (std::mem::take(&mut x.backends.head), std::mem::take(&mut x.backends.head_text));
    for field in head.fields.iter().filter(|field| KEPT & field.id.bit() != 0) {
        let value = field.value.of(&text);
        match field.id {
            ReplyName::ContentType => copy_content_type(x, value),
            _ => x.reply.fields.append(field.name.of(&text), value),
        }
    }
    let disposition =
        |field: &&ReplyField| field.name.of(&text).eq_ignore_ascii_case(b"Content-Disposition");
    if let Some(field) = head.fields.iter().find(disposition) {
        x.reply.fields.append(field.name.of(&text), field.value.of(&text));
    }
    (x.backends.head, x.backends.head_text) = (head, text);
}
