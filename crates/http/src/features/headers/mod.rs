//! Fields and trailers that the configuration adds to replies.

mod added;
mod expires;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use wire::date;

use crate::exchange::{Exchange, FieldName, Filtered, Reply};
use crate::site::LocationBuilder;
use added::{Added, AddedLine, Effect};
use expires::ExpiresLine;

conf::directives! {
    also {
        /// Whether this block inherits the `add_header` lines of the enclosing block: `on` inherits
        /// them if the block has none of its own, `off` never, and `merge` adds them before its
        /// own.
        ///
        /// Syntax: on | off | merge
        /// Default: on
        ///
        /// ```nginx
        /// add_header_inherit merge;
        /// ```
        add_header_inherit(1..=1) in MAIN | SERVER | LOCATION | IF_IN_LOCATION => add_header;
        /// The same for `add_trailer`.
        ///
        /// Syntax: on | off | merge
        /// Default: on
        add_trailer_inherit(1..=1) in MAIN | SERVER | LOCATION | IF_IN_LOCATION => add_trailer;
    }

    in MAIN | SERVER | LOCATION;

    /// Sets the fields `Expires` and `Cache-Control`: a time from now, from the file's last change
    /// (`modified`), or a time of day (`@`). A negative time prevents caching.
    ///
    /// Syntax: [modified] TIME | @TIME | $VARIABLE
    /// Syntax: epoch | max | off
    ///
    /// ```nginx
    /// location /static/ {
    ///     expires 30d;
    /// }
    /// ```
    expires + IF_IN_LOCATION: ExpiresLine = "off",
    /// Adds a field to responses with the status 200, 201, 204, 206, 301, 302, 303, 304, 307 or
    /// 308; with `always` to all. One such line in a block hides all lines of the enclosing blocks
    /// (see `add_header_inherit`).
    ///
    /// Syntax: FIELD STRING [always]
    ///
    /// ```nginx
    /// add_header X-Content-Type-Options nosniff always;
    /// add_header Cache-Control "public, max-age=3600";
    /// ```
    add_header + IF_IN_LOCATION: Added,
    /// Adds a field after the body of a response that is sent in chunks. The statuses are those of
    /// `add_header`.
    ///
    /// Syntax: FIELD STRING [always]
    add_trailer + IF_IN_LOCATION: Added,
}

/// Adds the filter if there is something to add.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let trailers = !conf.add_trailer.lines.is_empty();
    if trailers || !conf.add_header.lines.is_empty() || !matches!(conf.expires, ExpiresLine::Off) {
        let conf = conf.clone();
        location.main_filter(move |x| filter(&conf, x));
    }
    if trailers {
        let conf = conf.clone();
        location.end(move |x| add_trailers(&conf, x));
    }
    Ok(())
}

fn filter(conf: &Conf, x: &mut Exchange) -> Filtered {
    let is_success = is_success(x.reply.status);
    if is_success {
        conf.expires.apply(x);
    }
    for line in conf.add_header.lines_for(is_success) {
        let mut value = x.scratch();
        line.value.render(x, &mut value);
        add(line, &value, &mut x.reply);
        x.give_scratch(value);
    }
    if conf.add_trailer.lines_for(is_success).next().is_some() {
        x.reply.expect_trailers = true;
    }
    Filtered::Pass
}

/// Whether lines without `always` apply.
fn is_success(status: u16) -> bool {
    matches!(status, 200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308)
}

/// Adds a field. An empty value adds nothing, and removes a field of which there can be only one.
fn add(line: &AddedLine, value: &[u8], reply: &mut Reply) {
    match line.effect {
        Effect::Add | Effect::AddText if value.is_empty() => {}
        Effect::Add => reply.fields.append(&line.name, value),
        Effect::AddText => reply.fields.append_text(&line.name, value),
        Effect::SetETag => set(line, FieldName::ETag, value, reply),
        Effect::SetLastModified => {
            set(line, FieldName::LastModified, value, reply);
            reply.last_modified = date::parse(value);
        }
    }
}

fn set(line: &AddedLine, known: FieldName, value: &[u8], reply: &mut Reply) {
    match value {
        b"" => reply.fields.remove_known(known),
        value => reply.fields.set(&line.name, value),
    }
}

/// Adds trailers, with the values at the end of the body, which may include a backend's trailers.
fn add_trailers(conf: &Conf, x: &mut Exchange) {
    for line in conf.add_trailer.lines_for(is_success(x.reply.status)) {
        let mut value = x.scratch();
        line.value.render(x, &mut value);
        if !value.is_empty() {
            x.reply.trailers.append(&line.name, &value);
        }
        x.give_scratch(value);
    }
}
