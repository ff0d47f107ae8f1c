//! Fields of replies that the configuration sets and removes, Weir's own included, by the lines of
//! the headers-more module.
//!
//! Deliberately absent: fields that say where the body ends. They are refused when the
//! configuration is read, but for the length, without which a reply is chunked.

pub(crate) mod edits;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::{Level, Text};
use wire::date;

use crate::exchange::{Exchange, Filtered, Reply};
use crate::header_text::{self, FORBIDDEN};
use crate::site::LocationBuilder;
use edits::{EditLine, FieldChange, HeaderEdits};

conf::directives! {
    also {
        /// Removes fields of responses. A name that ends in `*` stands for all names that begin
        /// so, of fields that a backend or the configuration has added.
        ///
        /// `-s` and `-t` are those of `more_set_headers`. Without `Content-Length` a response is
        /// chunked.
        ///
        /// Syntax: [-s STATUSES] [-t TYPES] FIELD...
        /// Differs: nginx has it with the headers-more module, which does not refuse
        /// `Transfer-Encoding` and `Connection`.
        ///
        /// ```nginx
        /// more_clear_headers Server X-Powered-By 'X-Debug-*';
        /// ```
        more_clear_headers(1..=usize::MAX) in MAIN | SERVER | LOCATION | IF_IN_LOCATION
            => more_set_headers;
    }

    in MAIN | SERVER | LOCATION | IF_IN_LOCATION;

    /// Sets fields of responses, those of errors included, and those that Weir writes itself, such
    /// as `Server` and `Content-Type`. A field that has no value is removed.
    ///
    /// - `-s`: only in responses with one of these statuses, separated by spaces
    /// - `-t`: only in responses with one of these media types, separated by spaces
    /// - `-a`: adds the field to those of the same name
    ///
    /// The lines of enclosing blocks apply too, before those of the block. Fields of `add_header`
    /// are added afterwards.
    ///
    /// Syntax: [-s STATUSES] [-t TYPES] [-a] 'FIELD: STRING'...
    /// Differs: nginx has it with the headers-more module, which does not refuse `Content-Length`,
    /// `Transfer-Encoding` and `Connection`.
    ///
    /// ```nginx
    /// more_set_headers 'Server: shop' 'X-Frame-Options: DENY';
    /// more_set_headers -s '404 500' -t text/html 'Cache-Control: no-store';
    /// ```
    more_set_headers: HeaderEdits,
}

/// Adds the filter if there is something to change.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if !conf.more_set_headers.is_empty() {
        let conf = conf.clone();
        location.main_filter(move |x| filter(&conf, x));
    }
    Ok(())
}

fn filter(conf: &Conf, x: &mut Exchange) -> Filtered {
    for line in conf.more_set_headers.iter() {
        if line.applies(x.reply.status, &x.reply.content_type) {
            apply(line, x);
        }
    }
    Filtered::Pass
}

fn apply(line: &EditLine, x: &mut Exchange) {
    for edit in &line.edits {
        let name = &*edit.name;
        match &edit.change {
            FieldChange::Remove => remove(&mut x.reply, name),
            FieldChange::RemovePrefixed => remove_prefixed(&mut x.reply, name),
            FieldChange::Set(template) => {
                let mut value = x.scratch();
                template.render(x, &mut value);
                match header_text::unfold(&mut value, 0) {
                    Ok(()) if value.is_empty() => remove(&mut x.reply, name),
                    Ok(()) if line.appends => x.reply.fields.append(name, &value),
                    Ok(()) => set(&mut x.reply, name, &value),
                    Err(_) => x.log(
                        Level::Error,
                        format_args!("value of \"{}\" {FORBIDDEN}; it is not set", Text(name)),
                    ),
                }
                x.give_scratch(value);
            }
        }
    }
}

/// Fields of replies with a place of their own.
#[derive(Clone, Copy)]
enum OwnField {
    Server,
    Date,
    ContentType,
    ContentLength,
    Location,
    LastModified,
    AcceptRanges,
}

const OWN: [(&[u8], OwnField); 7] = [
    (b"Server", OwnField::Server),
    (b"Date", OwnField::Date),
    (b"Content-Type", OwnField::ContentType),
    (b"Content-Length", OwnField::ContentLength),
    (b"Location", OwnField::Location),
    (b"Last-Modified", OwnField::LastModified),
    (b"Accept-Ranges", OwnField::AcceptRanges),
];

fn own_field(name: &[u8]) -> Option<OwnField> {
    OWN.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, field)| *field)
}

fn set(reply: &mut Reply, name: &[u8], value: &[u8]) {
    match own_field(name) {
        Some(OwnField::Server) => reply.has_server = true,
        Some(OwnField::Date) => reply.has_date = true,
        Some(OwnField::LastModified) => reply.last_modified = date::parse(value),
        Some(OwnField::Location) => return reply.set_location(value.to_vec()),
        Some(OwnField::ContentType) => return reply.parse_content_type(value),
        Some(OwnField::ContentLength | OwnField::AcceptRanges) | None => {}
    }
    reply.fields.set(name, value);
}

fn remove(reply: &mut Reply, name: &[u8]) {
    match own_field(name) {
        Some(OwnField::Server) => reply.has_server = true,
        Some(OwnField::Date) => reply.has_date = true,
        Some(OwnField::LastModified) => reply.last_modified = None,
        Some(OwnField::Location) => reply.location.clear(),
        Some(OwnField::ContentType) => reply.parse_content_type(b""),
        Some(OwnField::ContentLength) => reply.content_length = None,
        // Ranges are not answered any more either.
        Some(OwnField::AcceptRanges) => reply.allow_ranges = false,
        None => {}
    }
    reply.fields.remove(name);
}

fn remove_prefixed(reply: &mut Reply, prefix: &[u8]) {
    if OWN_LISTED.get(..prefix.len()).is_some_and(|name| name.eq_ignore_ascii_case(prefix)) {
        reply.location.clear();
    }
    reply.fields.remove_prefixed(prefix);
}

/// The one field with a place of its own that the module finds among the others.
const OWN_LISTED: &[u8] = b"Location";
