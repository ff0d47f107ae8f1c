//! The header fields of a request to a backend: those that are set, and those passed on.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value};
use observe::{Level, Text};
use wire::Known;
use wire::request::Field;

use crate::exchange::Exchange;
use crate::header_text::{self, FORBIDDEN, Forbidden};

/// `proxy_set_header NAME VALUE`, and the same of `grpc_`.
#[derive(Clone, Debug)]
pub struct SetHeader {
    name: Box<[u8]>,
    value: Template,
    /// Whether the evaluated value may be invalid in a line.
    is_checked: bool,
}

impl Value for SetHeader {
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let value = Template::compile(from.arg(1), from, load)?;
        let is_checked = !value.as_fixed().is_some_and(header_text::is_clean);
        Ok(Self { name: from.arg(0).text.clone(), value, is_checked })
    }
}

impl SetHeader {
    /// Whether both set the same field.
    pub(crate) fn is_named_like(&self, other: &Self) -> bool {
        self.is_named(&other.name)
    }

    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Appends the value. `None`, with a line in the log: it is invalid.
    fn render(&self, x: &mut Exchange, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        self.value.render(x, out);
        if !self.is_checked || header_text::is_clean(&out[start..]) {
            return Some(());
        }
        let unfolded = header_text::unfold(out, start);
        unfolded
            .inspect_err(|Forbidden| {
                let name = Text(&self.name);
                x.log(Level::Error, format_args!("header \"{name}\" of the request {FORBIDDEN}"));
            })
            .ok()
    }
}

/// The fields of a location, in the order they are sent.
pub(crate) struct Compiled {
    /// The value of `Host`; `None`: the backend's name.
    host: Option<SetHeader>,
    set: Vec<SetHeader>,
    /// Whether the framing of the body is announced by default.
    says_length: bool,
    says_coding: bool,
    /// Names that are not passed on.
    dropped: u64,
    dropped_others: Vec<Box<[u8]>>,
}

/// Fields that are never passed on: they concern one connection, or are written anew.
const HOP_BY_HOP: [&[u8]; 9] = [
    b"Host",
    b"Connection",
    b"Proxy-Connection",
    b"Content-Length",
    b"Transfer-Encoding",
    b"TE",
    b"Keep-Alive",
    b"Expect",
    b"Upgrade",
];

/// The length of the body as it is announced to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    None,
    Known(u64),
    Chunked,
}

impl Compiled {
    pub(crate) fn new(set: &[SetHeader]) -> Self {
        let is_set = |name: &[u8]| set.iter().any(|one| one.name.eq_ignore_ascii_case(name));
        let mut compiled = Self {
            host: None,
            set: Vec::new(),
            says_length: !is_set(b"Content-Length"),
            says_coding: !is_set(b"Transfer-Encoding"),
            dropped: 0,
            dropped_others: Vec::new(),
        };
        HOP_BY_HOP.iter().for_each(|name| compiled.drop_name(name));
        for one in set {
            compiled.drop_name(&one.name);
            if one.name.eq_ignore_ascii_case(b"Host") {
                // Other fields set twice are sent twice; for `Host`, the last line counts.
                compiled.host = Some(one.clone());
            } else if one.value.as_fixed() != Some(b"") {
                compiled.set.push(one.clone());
            }
        }
        compiled
    }

    fn drop_name(&mut self, name: &[u8]) {
        match Known::of(name) {
            Known::Other => self.dropped_others.push(name.into()),
            known => self.dropped |= known.bit(),
        }
    }

    /// Writes `Host`: the set value, or the backend's name, which also replaces an empty value if
    /// the protocol requires one. `None`, with a line in the log: the value is invalid.
    pub(crate) fn write_host(
        &self,
        x: &mut Exchange,
        backend: &[u8],
        is_required: bool,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(b"Host: ");
        let before = out.len();
        match &self.host {
            None => out.extend_from_slice(backend),
            Some(host) => host.render(x, out)?,
        }
        if out.len() == before && is_required {
            out.extend_from_slice(backend);
        }
        match out.len() == before {
            true => out.truncate(start),
            false => out.extend_from_slice(b"\r\n"),
        }
        Some(())
    }

    /// Writes the fields that are set, and the framing of the body. `None`, with a line in the log:
    /// one of them is invalid.
    pub(crate) fn write_set(
        &self,
        x: &mut Exchange,
        length: Length,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        for one in &self.set {
            let start = out.len();
            out.extend_from_slice(&one.name);
            out.extend_from_slice(b": ");
            let before = out.len();
            one.render(x, out)?;
            match out.len() == before {
                true => out.truncate(start),
                false => out.extend_from_slice(b"\r\n"),
            }
        }
        match length {
            Length::Known(bytes) if self.says_length => {
                out.extend_from_slice(b"Content-Length: ");
                crate::decimal::write(bytes, out);
                out.extend_from_slice(b"\r\n");
            }
            Length::Chunked if self.says_coding => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            _ => {}
        }
        Some(())
    }

    /// The announced length of a body, 0 without an announcement; `None`: the body is chunked, or
    /// the configuration announces it.
    pub(crate) fn announced(&self, length: Length) -> Option<u64> {
        match length {
            Length::Known(bytes) if self.says_length => Some(bytes),
            Length::Chunked if self.says_coding => None,
            _ if self.sets(b"Content-Length") || self.sets(b"Transfer-Encoding") => None,
            _ => Some(0),
        }
    }

    /// Whether the configuration sends that field.
    pub(crate) fn sets(&self, name: &[u8]) -> bool {
        self.set.iter().any(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// Writes the client's fields that are passed on.
    pub(crate) fn write_passed(&self, x: &Exchange, out: &mut Vec<u8>) {
        for field in &x.request.head.fields {
            if self.passes(field, x) {
                // The client's line may have spaces that another parser reads differently.
                out.extend_from_slice(x.request.text(field.name));
                out.extend_from_slice(b": ");
                out.extend_from_slice(x.request.text(field.value));
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn passes(&self, field: &Field, x: &Exchange) -> bool {
        if field.id != Known::Other {
            return self.dropped & field.id.bit() == 0;
        }
        let name = x.request.text(field.name);
        !self.dropped_others.iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
    }
}
