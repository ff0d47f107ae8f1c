//! The cookie that a browser sends.

use observe::{Level, Text};
use wire::Known;
use wire::base64;

use super::number::Uid;
use super::settings::Mark;
use crate::builtin::cookie_in;
use crate::exchange::Exchange;

/// The digits of a number without padding. The rest is ignored, because the padding may contain the
/// mark, and existing cookies end in arbitrary characters.
pub(super) const DIGITS: usize = 22;

/// The cookie of a browser, if it sent one.
#[derive(Clone, Default)]
pub(super) struct Sent {
    pub(super) text: Option<Box<[u8]>>,
}

impl Sent {
    pub(super) fn find(name: &[u8], x: &Exchange) -> Self {
        let mut lines = x.request.head.fields_of(Known::Cookie);
        let text = lines.find_map(|line| cookie_in(x.request.text(line.value), name));
        Self { text: text.map(Box::from) }
    }

    pub(super) fn uid(&self, x: &Exchange) -> Option<Uid> {
        let text = self.text.as_ref()?;
        let complain = |what: &str| {
            let line = x.request.field(Known::Cookie).unwrap_or_default();
            let line = Text(line);
            x.log(Level::Error, format_args!("client sent {what} userid cookie \"{line}\""));
        };
        let Some(digits) = text.get(..DIGITS) else {
            complain("too short");
            return None;
        };
        let mut bytes = Vec::new();
        if base64::decode(digits, &mut bytes).is_none() {
            complain("invalid");
            return None;
        }
        Uid::of(&bytes)
    }

    /// Whether it has the mark, if one is configured.
    pub(super) fn is_marked(&self, mark: Mark) -> bool {
        let Some(mark) = mark.0 else { return true };
        let end = self.text.as_ref().and_then(|text| text.get(DIGITS..));
        matches!(end, Some([first, b'=', ..]) if *first == mark)
    }
}
