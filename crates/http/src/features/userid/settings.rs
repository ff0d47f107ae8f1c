//! The values of the directives.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value, add_words, units};
use wire::date;

conf::words! {
    /// What is done about browsers.
    pub enum Userid {
        /// Nothing.
        Off = "off",
        /// Their cookies are read.
        Log = "log",
        /// They are given cookies of the first version.
        V1 = "v1",
        /// They are given cookies.
        On = "on",
    }
}

impl Userid {
    pub(super) fn sets_cookies(self) -> bool {
        matches!(self, Self::V1 | Self::On)
    }
}

/// A text, unless it is `none`.
#[derive(Clone)]
pub struct Unless(pub(super) Option<Box<[u8]>>);

impl Value for Unless {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let text = &from.arg(0).text;
        Ok(Self((&**text != b"none").then(|| text.clone())))
    }
}

/// How long a cookie is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseridExpires {
    /// Until the browser ends.
    Off,
    /// For this many seconds.
    After(i64),
    /// Until the last time that all systems can represent.
    Max,
}

/// Thu, 31 Dec 2037 23:55:55 GMT
const MAX: i64 = 2_145_916_555;

impl Value for UseridExpires {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"off" => Ok(Self::Off),
            b"max" => Ok(Self::Max),
            time => match units::seconds(time) {
                Some(0) => Ok(Self::Off),
                Some(seconds) => Ok(Self::After(seconds.cast_signed())),
                None => Err(from.refuse("invalid value").marked(from.arg(0).span)),
            },
        }
    }
}

impl UseridExpires {
    pub(super) fn write(self, now: i64, out: &mut Vec<u8>) {
        let time = match self {
            Self::Off => return,
            Self::After(seconds) => now.saturating_add(seconds),
            Self::Max => MAX,
        };
        let mut text = date::http(time);
        (text[7], text[11]) = (b'-', b'-');
        out.extend_from_slice(b"; expires=");
        // Netscape's format has a year of two digits. Later years are written with four, so that
        // they are not mistaken for past ones.
        let year = if &text[12..16] > b"2037".as_slice() { 12 } else { 14 };
        out.extend_from_slice(&text[..12]);
        out.extend_from_slice(&text[year..]);
    }
}

/// Attributes of the cookie.
#[derive(Clone, Copy)]
pub struct UseridFlags(u16);

/// In the order in which they are sent.
const FLAGS: [(&str, u16); 6] = [
    ("off", OFF),
    ("secure", 2),
    ("httponly", 4),
    ("samesite=strict", 8),
    ("samesite=lax", 16),
    ("samesite=none", 32),
];

const OFF: u16 = 1;

impl Value for UseridFlags {
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut flags = Self(0);
        flags.repeat(from, load)?;
        Ok(flags)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &FLAGS, load)
    }
}

impl UseridFlags {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        for (flag, _) in FLAGS.iter().filter(|(_, bit)| self.0 & !OFF & bit != 0) {
            out.extend_from_slice(b"; ");
            out.extend_from_slice(flag.as_bytes());
        }
    }
}

#[derive(Clone, Copy)]
pub struct Mark(pub(super) Option<u8>);

impl Value for Mark {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"off" => Ok(Self(None)),
            &[mark] if mark.is_ascii_alphanumeric() || mark == b'=' => Ok(Self(Some(mark))),
            _ => {
                let must = "value must be \"off\" or a single letter, digit or \"=\"";
                Err(from.refuse(must).marked(from.arg(0).span))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_dates_are_written_in_netscape_format() {
        let written = |expires: UseridExpires, now| {
            let mut out = Vec::new();
            expires.write(now, &mut out);
            String::from_utf8(out).unwrap()
        };
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = 784_111_777;
        assert_eq!(written(UseridExpires::Off, now), "");
        assert_eq!(written(UseridExpires::After(60), now), "; expires=Sun, 06-Nov-94 08:50:37 GMT");
        assert_eq!(written(UseridExpires::Max, now), "; expires=Thu, 31-Dec-37 23:55:55 GMT");
        assert_eq!(
            written(UseridExpires::After(1), 2_145_916_800),
            "; expires=Fri, 01-Jan-2038 00:00:01 GMT"
        );
    }
}
