//! The replacement of a path.
//!
//! The path is decoded, and its groups stay decoded in a new path. In arguments and URLs, groups
//! are escaped again, if the client's path contained any escape.

use conf::{Directive, Load, Result, Template, TemplatePart, Values, Word};
use wire::uri::{EscapeSet, escape};

use crate::exchange::Exchange;

pub(super) struct Replacement {
    /// The path; the whole text of a redirect.
    pub(super) path: Template,
    /// The text after the first `?` of a path.
    pub(super) args: Option<Template>,
    /// Whether a redirect contains a `?`.
    pub(super) has_args: bool,
    /// Whether the request's arguments are appended.
    pub(super) add_args: bool,
}

impl Replacement {
    pub(super) fn compile(
        redirects: bool,
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        let (text, add_args) = match word.text.strip_suffix(b"?") {
            Some(text) => (text, false),
            None => (&*word.text, true),
        };
        let mark = memchr::memchr(b'?', text);
        let (path, args) = match mark.filter(|_| !redirects) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let path = Template::from_bytes(path, word, from, load)?;
        let args = match args {
            Some(args) => Some(Template::from_bytes(args, word, from, load)?),
            None => None,
        };
        Ok(Self { path, args, has_args: mark.is_some(), add_args })
    }
}

/// Whether groups have to be escaped again. As in nginx, this depends on the client's path,
/// whatever the groups were matched in.
pub(super) fn was_escaped(x: &Exchange) -> bool {
    x.request.head.quoted || x.request.head.plus
}

/// Renders a template, with escaped groups if `escaped`.
pub(super) fn render(template: &Template, escaped: bool, x: &mut Exchange, out: &mut Vec<u8>) {
    if !escaped {
        return template.render(x, out);
    }
    for part in template.parts() {
        match part {
            TemplatePart::Text(text) => out.extend_from_slice(text),
            TemplatePart::Variable(id) => {
                x.variable(*id, out);
            }
            TemplatePart::Capture(group) => {
                escape(
                    EscapeSet::Args,
                    x.captures.group(usize::from(*group)).unwrap_or_default(),
                    out,
                );
            }
        }
    }
}
