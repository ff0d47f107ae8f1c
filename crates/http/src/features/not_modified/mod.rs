//! Conditional requests (RFC 9110, section 13): 304 if the client has the current representation,
//! 412 if it demanded another one.
//!
//! A request without conditions only costs four tests of bits.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use wire::{Known, date};

use crate::exchange::{Exchange, FieldName, Filtered};
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// When a request with `If-Modified-Since` is answered with 304: if the time is the file's
    /// (`exact`), or if the file is not newer (`before`).
    ///
    /// ```nginx
    /// if_modified_since before;
    /// ```
    if_modified_since: IfModifiedSince = "exact",
    /// Whether files get the field `ETag`.
    ///
    /// ```nginx
    /// etag off;
    /// ```
    etag: bool = "on",
}

conf::words! {
    /// When what `If-Modified-Since` says makes a 304.
    pub enum IfModifiedSince {
        /// Never.
        Off = "off",
        /// When it is the time of the reply.
        Exact = "exact",
        /// When the reply's time is not later.
        Before = "before",
    }
}

/// Adds the filter that checks conditions.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.etag = conf.etag;
    let rule = conf.if_modified_since;
    location.main_filter(move |x| filter(rule, x));
    Ok(())
}

fn filter(rule: IfModifiedSince, x: &mut Exchange) -> Filtered {
    const CONDITIONS: u64 = Known::IfUnmodifiedSince.bit()
        | Known::IfMatch.bit()
        | Known::IfModifiedSince.bit()
        | Known::IfNoneMatch.bit();
    let is_asked = x.request.head.has_any(CONDITIONS);
    if !is_asked || x.reply.status != 200 || x.reply.disable_not_modified {
        return Filtered::Pass;
    }
    if let Some(made_s) = x.reply.standard_conditions {
        return filter_by_standard(made_s, x);
    }
    let request = &x.request;
    if let Some(since) = request.field(Known::IfUnmodifiedSince)
        && !is_unmodified(since, x)
    {
        return Filtered::Instead(412);
    }
    if let Some(list) = request.field(Known::IfMatch)
        && !matches(list, x, Comparison::Strong)
    {
        return Filtered::Instead(412);
    }
    let since = request.field(Known::IfModifiedSince);
    let list = request.field(Known::IfNoneMatch);
    if since.is_none() && list.is_none()
        || since.is_some_and(|since| is_modified(since, rule, x))
        || list.is_some_and(|list| !matches(list, x, Comparison::Weak))
    {
        return Filtered::Pass;
    }
    not_modified(x);
    Filtered::Pass
}

/// The order of RFC 9110, section 13.2.2: tags count, and times only if there are none. `made_s`
/// is the time of a reply without `Last-Modified` (RFC 9111, section 4.3.2).
fn filter_by_standard(made_s: i64, x: &mut Exchange) -> Filtered {
    let request = &x.request;
    let modified = x.reply.last_modified.unwrap_or(made_s);
    let is_older_than = |known| {
        let time = request.field(known).and_then(date::parse)?;
        Some(time < modified)
    };
    let fails = match request.field(Known::IfMatch) {
        Some(list) => !matches(list, x, Comparison::Strong),
        None => is_older_than(Known::IfUnmodifiedSince).unwrap_or(false),
    };
    if fails {
        return Filtered::Instead(412);
    }
    let is_known = match request.field(Known::IfNoneMatch) {
        Some(list) => matches(list, x, Comparison::Weak),
        None => is_older_than(Known::IfModifiedSince).is_some_and(|is_older| !is_older),
    };
    if is_known {
        not_modified(x);
    }
    Filtered::Pass
}

/// Makes the reply a 304. The other filters see the rest of its head.
fn not_modified(x: &mut Exchange) {
    let reply = &mut x.reply;
    reply.status = 304;
    reply.reason.clear();
    reply.clear_body();
    reply.content_type.clear();
    reply.content_length = None;
    reply.allow_ranges = false;
    reply.fields.remove_known(FieldName::AcceptRanges);
    reply.fields.remove_known(FieldName::ContentEncoding);
}

/// Whether the reply was not modified since a time. An invalid time is earlier than all others.
fn is_unmodified(since: &[u8], x: &Exchange) -> bool {
    x.reply.last_modified.is_some_and(|modified| date::parse(since).unwrap_or(-1) >= modified)
}

fn is_modified(since: &[u8], rule: IfModifiedSince, x: &Exchange) -> bool {
    let Some(modified) = x.reply.last_modified else { return true };
    let since = || date::parse(since).unwrap_or(-1);
    match rule {
        IfModifiedSince::Off => true,
        IfModifiedSince::Exact => since() != modified,
        IfModifiedSince::Before => since() < modified,
    }
}

/// Whether `W/` before a tag is ignored (RFC 9110, section 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

fn matches(list: &[u8], x: &Exchange, comparison: Comparison) -> bool {
    if list == b"*" {
        return true;
    }
    let tag = x.reply.fields.known(FieldName::ETag);
    tag.is_some_and(|tag| is_listed(comparison.tag(tag), list, comparison))
}

impl Comparison {
    fn tag(self, text: &[u8]) -> &[u8] {
        match text {
            [b'W', b'/', tag @ ..] if self == Self::Weak && !tag.is_empty() => tag,
            tag => tag,
        }
    }
}

/// Whether a list contains a tag. Tags may contain commas, so the list cannot be split at commas.
fn is_listed(tag: &[u8], list: &[u8], comparison: Comparison) -> bool {
    let mut rest = list;
    while !rest.is_empty() {
        rest = comparison.tag(rest);
        if let Some(after) = rest.strip_prefix(tag) {
            rest = trim_start(after, b" \t");
            if matches!(rest.first(), None | Some(b',')) {
                return true;
            }
        }
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        rest = trim_start(&rest[comma..], b" \t,");
    }
    false
}

fn trim_start<'t>(text: &'t [u8], bytes: &[u8]) -> &'t [u8] {
    let start = text.iter().position(|byte| !bytes.contains(byte));
    &text[start.unwrap_or(text.len())..]
}
