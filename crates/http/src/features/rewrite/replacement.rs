//! What a path is rewritten to.
//!
//! A path that came in decoded goes out decoded where it stays a path. Groups of it that end up in
//! arguments or in a URL are escaped again, if the client's path had anything escaped at all.

use conf::{Directive, Load, Result, Template, TemplatePart, Values, Word};
use wire::uri::{EscapeSet, escape};

use crate::exchange::Exchange;

/// The replacement of a `rewrite`.
pub(super) struct Replacement {
    /// The path; of a redirect, everything.
    pub(super) path: Template,
    /// What follows the first `?` of a path.
    pub(super) args: Option<Template>,
    /// Whether a redirect has a `?` already.
    pub(super) has_args: bool,
    /// Whether the request's own arguments follow.
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

/// Whether groups have to be escaped again: nginx asks what the client's path was like, whatever
/// the groups are of.
pub(super) fn was_escaped(x: &Exchange) -> bool {
    x.request.head.quoted || x.request.head.plus
}

/// Renders a template, its groups escaped where they are asked to be.
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
