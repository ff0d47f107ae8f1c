//! Fields of requests that the configuration sets and removes before they are looked at, by the
//! lines of the headers-more module.
//!
//! Deliberately absent: fields that say where the body ends. They are refused when the
//! configuration is read, and names with `*` do not stand for them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::{Level, Text};
use wire::Known;

use super::headers_more::edits::{EditLine, FieldChange, HeaderEdits, is_framing};
use crate::exchange::{Exchange, Flow, Request};
use crate::site::LocationBuilder;

conf::directives! {
    also {
        /// Removes fields of the request. A name that ends in `*` stands for all names that begin
        /// so, except `Host` and the fields that say how long the body is.
        ///
        /// Syntax: [-t TYPES] FIELD...
        /// Differs: nginx has it with the headers-more module, which does not refuse
        /// `Content-Length` and `Transfer-Encoding`.
        ///
        /// ```nginx
        /// more_clear_input_headers Accept-Encoding 'X-Internal-*';
        /// ```
        more_clear_input_headers(1..=usize::MAX) in MAIN | SERVER | LOCATION | IF_IN_LOCATION
            => more_set_input_headers;
    }

    in MAIN | SERVER | LOCATION | IF_IN_LOCATION;

    /// Sets fields of the request, after the phase of `rewrite` and before all others. Variables
    /// and backends see the new values. A field that has no value is removed; `Host` sets `$host`
    /// but does not choose another server.
    ///
    /// - `-t`: only in requests with one of these media types, separated by spaces
    /// - `-r`: only fields that the request has
    ///
    /// The lines of enclosing blocks apply too, before those of the block.
    ///
    /// Syntax: [-t TYPES] [-r] 'FIELD: STRING'...
    /// Differs: nginx has it with the headers-more module, which does not refuse `Content-Length`
    /// and `Transfer-Encoding`, and compares `-t` with the whole `Content-Type`, parameters
    /// included.
    ///
    /// ```nginx
    /// more_set_input_headers 'X-Request-Start: $msec';
    /// more_set_input_headers -r 'Accept-Language: en';
    /// ```
    more_set_input_headers: HeaderEdits,
}

/// Adds the handler if there is something to change.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if !conf.more_set_input_headers.is_empty() {
        let conf = conf.clone();
        location.preaccess(move |x| edit(&conf, x));
    }
    Ok(())
}

fn edit(conf: &Conf, x: &mut Exchange) -> Flow {
    for line in conf.more_set_input_headers.iter() {
        let media_type = x.request.field(Known::ContentType).unwrap_or_default();
        let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        if line.applies(0, media_type.trim_ascii()) {
            apply(line, x);
        }
    }
    Flow::Next
}

fn apply(line: &EditLine, x: &mut Exchange) {
    for edit in &line.edits {
        let name = &*edit.name;
        match &edit.change {
            FieldChange::Remove => _ = x.request.remove_field(name),
            FieldChange::RemovePrefixed => remove_prefixed(&mut x.request, name),
            FieldChange::Set(_) if line.replaces_only && !has(&x.request, name) => {}
            FieldChange::Set(template) => {
                let mut value = x.scratch();
                template.render(x, &mut value);
                if value.is_empty() {
                    x.request.remove_field(name);
                } else if let Err(error) = x.request.set_field(name, &value) {
                    let name = Text(name);
                    x.log(Level::Error, format_args!("field \"{name}\" is not set: {error}"));
                }
                x.give_scratch(value);
            }
        }
    }
}

fn has(request: &Request, name: &[u8]) -> bool {
    request.head.fields.iter().any(|field| request.text(field.name).eq_ignore_ascii_case(name))
}

fn remove_prefixed(request: &mut Request, prefix: &[u8]) {
    let begins = |name: &[u8]| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let may_go = |name: &&[u8]| begins(name) && !is_framing(name) && Known::of(name) != Known::Host;
    let names = request.head.fields.iter().map(|field| request.text(field.name)).filter(may_go);
    for name in names.map(<[u8]>::to_vec).collect::<Vec<_>>() {
        request.remove_field(&name);
    }
}
