//! The slice that an exchange asks for, and the check of its reply.

use observe::Level;

use super::content_range::ContentRange;
use crate::exchange::{Exchange, FeatureState, FieldName};

/// The slices of an exchange.
#[derive(Clone, Default)]
pub(super) struct SliceState {
    /// The size; 0: nothing has asked for a slice.
    pub(super) size: u64,
    /// The slice that is asked for.
    pub(super) start: u64,
    /// The entity tag of the slices before; empty: none.
    pub(super) etag: Vec<u8>,
}

impl FeatureState for SliceState {
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// A copy of a request, for an update of its slice, asks for the same.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.clone_from(parent);
    }
}

impl SliceState {
    /// Checks the head of a slice, and goes on to the next one. `None`, with a line in the log: it
    /// is not the slice that was asked for.
    pub(super) fn check(&mut self, x: &Exchange) -> Option<ContentRange> {
        let status = x.reply.status;
        if status != 206 {
            let what = format_args!("unexpected status code {status} in slice response");
            x.log(Level::Error, what);
            return None;
        }
        let etag = x.reply.fields.known(FieldName::ETag).unwrap_or_default();
        if !self.etag.is_empty() && self.etag != etag {
            x.log(Level::Error, format_args!("etag mismatch in slice response"));
            return None;
        }
        let range = x.reply.fields.known(FieldName::ContentRange).and_then(ContentRange::parse);
        let Some(range) = range else {
            x.log(Level::Error, format_args!("invalid range in slice response"));
            return None;
        };
        let (start, end) = (self.start, range.complete.min(self.start.saturating_add(self.size)));
        if range.start != start || range.end != end {
            let found = format_args!("{}-{}", range.start, range.end);
            let what = "unexpected range in slice response";
            x.log(Level::Error, format_args!("{what}: {found}, expected: {start}-{end}"));
            return None;
        }
        self.etag = etag.to_vec();
        self.start = end;
        Some(range)
    }
}
