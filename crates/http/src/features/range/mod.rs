//! Ranges of a reply (RFC 9110, section 14): one, or several as `multipart/byteranges`.
//!
//! Ranges are cut from the handler's body without reading it: a range of a file stays a range of a
//! file. A streamed body has at most one range, because it cannot be rewound for a second one.

mod cut;
mod multipart;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use conf::{Number, Result};
use wire::range::{self, Ranges};
use wire::{Known, Version, date};

use crate::exchange::{Body, Exchange, FieldName, Filtered};
use crate::site::LocationBuilder;
use cut::RangeCut;

/// nginx's value for no limit.
const UNLIMITED: u64 = i32::MAX as u64;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// The largest number of byte ranges in a request; with more, the whole file is sent. 0 ignores
    /// ranges.
    ///
    /// ```nginx
    /// max_ranges 10;
    /// ```
    max_ranges: Number = "2147483647",
}

/// Adds the filter that offers and answers ranges.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let ranges_max = match conf.max_ranges.0 {
        0 => return Ok(()),
        UNLIMITED => None,
        number => Some(u32::try_from(number).unwrap_or(u32::MAX)),
    };
    location.main_filter(move |x| filter(ranges_max, x));
    Ok(())
}

fn filter(ranges_max: Option<u32>, x: &mut Exchange) -> Filtered {
    let Some(length) = x.reply.content_length else { return Filtered::Pass };
    if !x.reply.allow_ranges || x.reply.status != 200 || x.request.head.version < Version::HTTP_10 {
        return Filtered::Pass;
    }
    let one = x.reply.single_range || matches!(x.reply.body, Body::Stream(_));
    let ranges_max = if one { Some(1) } else { ranges_max };
    let mut ranges = Vec::new();
    let value = x.request.field(Known::Range).filter(|_| is_current(x));
    match value.map(|value| range::parse(value, length, ranges_max, &mut ranges)) {
        Some(Ranges::Partial) => partial(x, ranges, length),
        Some(Ranges::NotSatisfiable) => {
            set_content_range(x, format_args!("bytes */{length}"));
            x.reply.content_length = None;
            return Filtered::Status(416);
        }
        Some(Ranges::Whole) | None => x.reply.fields.append(b"Accept-Ranges", b"bytes"),
    }
    Filtered::Pass
}

/// Whether the condition `If-Range` is true: the client's parts are of the current representation.
fn is_current(x: &Exchange) -> bool {
    let Some(condition) = x.request.field(Known::IfRange) else { return true };
    if condition.len() >= 2 && condition.ends_with(b"\"") {
        return x.reply.fields.known(FieldName::ETag) == Some(condition);
    }
    x.reply.last_modified.is_some_and(|modified| date::parse(condition) == Some(modified))
}

fn partial(x: &mut Exchange, ranges: Vec<Range<u64>>, length: u64) {
    x.reply.status = 206;
    x.reply.reason.clear();
    match &ranges[..] {
        [range] => single(x, range.clone(), length),
        _ => multipart::answer(&mut x.reply, ranges, length),
    }
}

fn single(x: &mut Exchange, range: Range<u64>, length: u64) {
    let (first, last) = (range.start, range.end - 1);
    set_content_range(x, format_args!("bytes {first}-{last}/{length}"));
    x.reply.content_length = Some(range.end - range.start);
    // Of a body that is a part of the whole, there may be less than the range, or nothing.
    let offset = x.reply.body_offset;
    let range = range.start.saturating_sub(offset)..range.end.saturating_sub(offset);
    let within = |length: u64| range.start.min(length)..range.end.min(length);
    match &mut x.reply.body {
        Body::Empty => {}
        Body::Bytes(bytes) => {
            let range = within(bytes.len() as u64);
            *bytes = bytes.part(range.start as usize..range.end as usize);
        }
        Body::File(slice) => *slice = slice.part(within(slice.len())),
        // The range is of the handler's body, so this filter comes before the others.
        Body::Stream(_) => x.reply.filter_body_first(RangeCut::new(range)),
    }
}

fn set_content_range(x: &mut Exchange, value: std::fmt::Arguments<'_>) {
    let mut text = x.scratch();
    text.write_fmt(value).expect("memory takes all");
    x.reply.fields.remove_known(FieldName::ContentRange);
    x.reply.fields.append(b"Content-Range", &text);
    x.give_scratch(text);
}
