//! `slice`: a large reply is fetched in parts of one size, so that a cache can have each of them.
//!
//! ```text
//! request --> first slice --> 206, checked --> 200 of the whole length
//!                                                 body: the slice, then the next ones
//! ```
//!
//! The slice that a range begins in is the first. The others are subrequests for the same resource,
//! begun one after the other as the client takes the body ([`rest`]). All must be of the same
//! representation.

mod content_range;
mod rest;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Result, Size};
use wire::Known;

use crate::decimal;
use crate::exchange::{
    BodyError, BodyFilter, Chunk, Exchange, FeatureState as _, FieldName, Filtered, PieceQueue,
};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use content_range::ContentRange;
use rest::SliceRest;
use state::SliceState;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Fetches responses in slices of this size, if requests to the backend ask for `$slice_range`.
    /// Slices are cached by themselves, so the key must contain `$slice_range`. 0 turns it off.
    ///
    /// ```nginx
    /// location / {
    ///     slice 1m;
    ///     proxy_pass http://127.0.0.1:3000;
    ///     proxy_set_header Range $slice_range;
    /// }
    /// ```
    slice: Size = "0",
}

/// The size of a location's slices.
struct SliceSize(u64);

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_slice_filter_module",
    &[BuiltIn::fresh(
        "slice_range",
        "The range of the slice that a request asks for, as the field `Range` has it.",
        |x, out| {
            let Some(SliceState { size, start, .. }) = state(x) else { return false };
            out.extend_from_slice(b"bytes=");
            decimal::write(*start, out);
            out.push(b'-');
            decimal::write(start.saturating_add(size - 1), out);
            true
        },
    )],
);

/// Adds the filter that puts slices together.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.slice.0 > 0 {
        location.core.own.add(SliceSize(conf.slice.0));
        location.main_filter(filter);
    }
    Ok(())
}

/// The slices of an exchange, begun if they are asked for the first time.
fn state(x: &mut Exchange) -> Option<&SliceState> {
    let is_begun = x.states.find::<SliceState>().is_some_and(|state| state.size > 0);
    if !is_begun {
        if x.is_subrequest() || x.reply.status != 0 {
            return None;
        }
        let SliceSize(size) = *x.location().core.own.find::<SliceSize>()?;
        let start = first_byte(x) / size * size;
        *x.states.of::<SliceState>() = SliceState { size, start, etag: Vec::new() };
    }
    x.states.find()
}

/// Where the range that the client asks for begins; 0 unless it asks for exactly one.
fn first_byte(x: &Exchange) -> u64 {
    let range = x.request.field(Known::Range).filter(|_| x.request.field(Known::IfRange).is_none());
    let Some((unit, rest)) = range.and_then(|range| range.split_at_checked(6)) else { return 0 };
    if !unit.eq_ignore_ascii_case(b"bytes=") || rest.contains(&b',') {
        return 0;
    }
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    conf::units::number(&rest[..digits]).unwrap_or(0)
}

/// Makes the reply one of the whole length, whose body begins with the first slice.
fn filter(x: &mut Exchange) -> Filtered {
    let Some(state) = x.states.find::<SliceState>().filter(|state| state.size > 0) else {
        return Filtered::Pass;
    };
    let mut state = state.clone();
    if x.reply.status != 206 {
        x.states.of::<SliceState>().clear();
        return Filtered::Pass;
    }
    let Some(slice) = state.check(x) else { return Filtered::Drop };
    let reply = &mut x.reply;
    reply.status = 200;
    reply.reason.clear();
    reply.content_length = Some(slice.complete);
    reply.body_offset = slice.start;
    reply.fields.remove_known(FieldName::ContentRange);
    reply.fields.remove_known(FieldName::AcceptRanges);
    (reply.allow_ranges, reply.single_range) = (true, true);
    if !x.request.header_only {
        x.reply.filter_body(Slices { state, end: slice.complete });
    }
    Filtered::Pass
}

/// Adds the slices after the first.
struct Slices {
    /// What the next slice must be.
    state: SliceState,
    /// The length of all slices.
    end: u64,
}

impl BodyFilter for Slices {
    fn push(
        &mut self,
        x: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> std::result::Result<(), BodyError> {
        let is_end = piece.is_none();
        out.pass(piece);
        if is_end {
            let SliceState { size, start, .. } = self.state;
            // The client may get less, and begin beyond the first slice.
            let range = partial(x).unwrap_or(0..self.end);
            if start.saturating_add(size) <= range.start {
                self.state.start = range.start / size * size;
            }
            if self.state.start < range.end {
                out.insert(SliceRest::new(self.state.clone(), self.end, range));
            }
        }
        Ok(())
    }

    fn reads_bytes(&self) -> bool {
        false
    }
}

/// The range of the whole that the client gets; `None`: all.
fn partial(x: &Exchange) -> Option<std::ops::Range<u64>> {
    let value = x.reply.fields.known(FieldName::ContentRange).filter(|_| x.reply.status == 206)?;
    ContentRange::parse(value).map(|range| range.start..range.end)
}
