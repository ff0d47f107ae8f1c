//! Lists of MIME types that a filter applies to: `charset_types`, `gzip_types` and others.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value};

/// A list of MIME types. `text/html` is always in it.
#[derive(Clone)]
pub(crate) enum MimeTypes {
    /// `*`
    All,
    /// `text/html` and these, lower-cased.
    Listed(Vec<Box<[u8]>>),
}

const HTML: &[u8] = b"text/html";

impl MimeTypes {
    /// `text/html` alone.
    pub(crate) const fn html() -> Self {
        Self::Listed(Vec::new())
    }

    /// Whether the type, without its parameters, is in the list.
    pub(crate) fn has(&self, content_type: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Listed(types) => {
                let is_same = |listed: &[u8]| listed.eq_ignore_ascii_case(content_type);
                is_same(HTML) || types.iter().any(|listed| is_same(listed))
            }
        }
    }
}

impl Value for MimeTypes {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut types = Self::html();
        types.repeat(from, load)?;
        Ok(types)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for word in &from.args {
            let Self::Listed(types) = self else { break };
            let lower: Box<[u8]> = word.text.to_ascii_lowercase().into();
            if &*lower == b"*" {
                *self = Self::All;
            } else if &*lower == HTML || types.contains(&lower) {
                let name = String::from_utf8_lossy(&lower);
                load.warn(from.error_at(word, format!("duplicate MIME type \"{name}\"")));
            } else {
                types.push(lower);
            }
        }
        Ok(())
    }
}
