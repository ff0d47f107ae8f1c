//! `fastcgi_param`, `scgi_param` and `uwsgi_param`: the variables of a request, including its
//! fields.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value};
use observe::{Level, Text};
use wire::Known;
use wire::cgi::{Pairs, field_variable, is_field_variable};
use wire::request::Field;

use crate::decimal;
use crate::exchange::Exchange;

/// A line: `fastcgi_param NAME VALUE [if_not_empty]`.
#[derive(Clone, Debug)]
pub struct Param {
    name: Box<[u8]>,
    value: Template,
    /// Whether it is omitted if its value is empty.
    if_not_empty: bool,
}

impl Value for Param {
    const ARGS: RangeInclusive<usize> = 2..=3;
    const SYNTAX: &'static str = "NAME STRING [if_not_empty]";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let value = Template::compile(from.arg(1), from, load)?;
        let if_not_empty = match from.args.get(2) {
            None => false,
            Some(word) if &*word.text == b"if_not_empty" => true,
            Some(word) => {
                return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
            }
        };
        Ok(Self { name: from.arg(0).text.clone(), value, if_not_empty })
    }
}

impl Param {
    /// Whether both set the same variable.
    pub(crate) fn is_named_like(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }
}

/// The variables of a location, in the order they are sent.
pub(crate) struct Params {
    lines: Vec<Param>,
    /// Whether `HTTP_HOST` is added, with the host that the server was chosen by.
    adds_host: bool,
    /// Whether the request's fields are passed on.
    passes_fields: bool,
    /// Fields of the request that are not passed on because a line sets their variable, without
    /// `HTTP_`.
    replaced: Vec<Box<[u8]>>,
}

const FIELD: &[u8] = b"HTTP_";
const HOST: &[u8] = b"HTTP_HOST";

impl Params {
    pub(crate) fn new(lines: &[Param], passes_fields: bool) -> Self {
        let adds_host = !lines.iter().any(|line| line.name.eq_ignore_ascii_case(HOST));
        let mut params = Self { lines: Vec::new(), adds_host, passes_fields, replaced: Vec::new() };
        for line in lines {
            let field = line.name.strip_prefix(FIELD).filter(|field| !field.is_empty());
            params.replaced.extend(field.map(Box::from));
            // A field's variable with a fixed empty value is not sent.
            if field.is_none() || line.value.as_fixed() != Some(b"") {
                params.lines.push(line.clone());
            }
        }
        if adds_host {
            params.replaced.push(HOST[FIELD.len()..].into());
        }
        params
    }

    /// Appends all variables. `None`, after logging why, if one of them cannot be sent.
    pub(crate) fn write<P: Pairs>(&self, x: &mut Exchange, out: &mut Vec<u8>) -> Option<()> {
        for line in &self.lines {
            let start = out.len();
            let value = P::open(&line.name, out);
            line.value.render(x, out);
            match line.if_not_empty && out.len() == value {
                true => out.truncate(start),
                false => close::<P>(&line.name, value, x, out)?,
            }
        }
        if self.adds_host {
            write_host::<P>(x, out)?;
        }
        if self.passes_fields {
            self.write_fields::<P>(x, out)?;
        }
        Some(())
    }

    /// Appends the request's fields; fields with the same name become one variable.
    fn write_fields<P: Pairs>(&self, x: &mut Exchange, out: &mut Vec<u8>) -> Option<()> {
        let (mut name, mut hashes) = (x.scratch(), name_hashes(x));
        for (at, field) in x.request.head.fields.iter().enumerate() {
            if hashes[at] == WRITTEN || self.is_replaced(field, x) {
                continue;
            }
            name.clear();
            field_variable(x.request.text(field.name), &mut name);
            let value = P::open(&name, out);
            write_values(at, &mut hashes, x, out);
            close::<P>(&name, value, x, out)?;
        }
        x.give_scratch(name);
        Some(())
    }

    fn is_replaced(&self, field: &Field, x: &Exchange) -> bool {
        let name = x.request.text(field.name);
        self.replaced.iter().any(|variable| is_field_variable(name, variable))
    }
}

/// Completes a variable. `None`, after logging why, if it cannot be sent.
pub(crate) fn close<P: Pairs>(
    name: &[u8],
    value: usize,
    x: &Exchange,
    out: &mut Vec<u8>,
) -> Option<()> {
    let closed = P::close(name.len(), value, out);
    if closed.is_err() {
        let name = Text(name);
        x.log(Level::Error, format_args!("the value of the parameter \"{name}\" cannot be sent"));
    }
    closed.ok()
}

/// Appends the validated host, and the port if the client named one.
fn write_host<P: Pairs>(x: &Exchange, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let value = P::open(HOST, out);
    let host = &x.request.host;
    out.extend_from_slice(if host.is_empty() { &x.server().name } else { host });
    if x.request.head.port != 0 {
        out.push(b':');
        decimal::write(x.request.head.port.into(), out);
    }
    if out.len() == value {
        out.truncate(start);
        return Some(());
    }
    close::<P>(HOST, value, x, out)
}

/// Whether two fields have the same name.
fn are_alike(one: &Field, other: &Field, x: &Exchange) -> bool {
    one.id == other.id
        && (one.id != Known::Other || {
            let (one, other) = (x.request.text(one.name), x.request.text(other.name));
            one.eq_ignore_ascii_case(other)
        })
}

/// The hash of a field whose value was written together with that of an earlier one.
const WRITTEN: u32 = 0;

/// Hashes of the names of fields (FNV-1a, ignoring case), none of which is [`WRITTEN`]. Every field
/// is compared with all that follow, up to `max_headers`, and hashes keep that cheap.
fn name_hashes(x: &Exchange) -> Vec<u32> {
    let add = |hash: u32, byte: &u8| {
        (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    };
    let hash = |field: &Field| x.request.text(field.name).iter().fold(0x811c_9dc5, add).max(1);
    x.request.head.fields.iter().map(hash).collect()
}

/// Appends the value of the field at `at`, and those of later fields with its name.
fn write_values(at: usize, hashes: &mut [u32], x: &Exchange, out: &mut Vec<u8>) {
    let fields = &x.request.head.fields;
    let (first, hash) = (&fields[at], hashes[at]);
    out.extend_from_slice(x.request.text(first.value));
    let separator: &[u8] = if first.id == Known::Cookie { b"; " } else { b", " };
    for (field, other) in fields.iter().zip(hashes).skip(at + 1) {
        if *other != hash || !are_alike(first, field, x) {
            continue;
        }
        *other = WRITTEN;
        out.extend_from_slice(separator);
        out.extend_from_slice(x.request.text(field.value));
    }
}
