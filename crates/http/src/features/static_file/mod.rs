//! Files from disk: small, frequently used ones are sent from memory in one write with the head,
//! others by sendfile.

use std::sync::Arc;

use conf::Result;
use observe::{Level, Text};
use wire::Method;

use crate::exchange::{Exchange, Flow};
use crate::files::FoundFile;
use crate::paths;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;
}

/// Adds the content handler that answers with the file for the path.
pub fn install(_: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.content(serve);
    Ok(())
}

fn serve(x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head | Method::Post) {
        return Flow::Status(405);
    }
    if x.request.uri.ends_with(b"/") {
        return Flow::Next;
    }
    let mut path = x.scratch();
    let flow = match x.append_path(&mut path) {
        true => send(x, &path),
        false => Flow::Status(500),
    };
    x.give_scratch(path);
    flow
}

fn send(x: &mut Exchange, path: &[u8]) -> Flow {
    match paths::open(x, path) {
        Ok(found) if found.stat.is_directory() => redirect_to_directory(x),
        Ok(found) if !found.stat.is_regular() => {
            x.log(Level::Crit, format_args!("\"{}\" is not a regular file", Text(path)));
            Flow::Status(404)
        }
        Ok(_) if x.request.head.method == Method::Post => Flow::Status(405),
        Ok(found) => answer(x, found),
        Err(failed) => Flow::Status(paths::refuse(x, path, &failed)),
    }
}

/// Answers with a regular file, with the content type of the path.
pub(crate) fn answer(x: &mut Exchange, found: FoundFile) -> Flow {
    x.action = "sending response to client";
    x.reply.status = 200;
    x.reply.content_length = Some(found.stat.size);
    x.reply.last_modified = Some(found.stat.modified);
    if x.location().core.etag {
        x.reply.set_etag(found.stat.modified, found.stat.size);
    }
    x.reply.allow_ranges = true;
    x.set_content_type_of_uri();
    x.reply.body = found.into_body();
    Flow::Done
}

/// Redirects to the same path with a slash, for a directory.
fn redirect_to_directory(x: &mut Exchange) -> Flow {
    let mut location = Vec::with_capacity(x.request.uri.len() + x.request.args.len() + 2);
    wire::uri::escape(wire::uri::EscapeSet::Uri, &x.request.uri, &mut location);
    location.push(b'/');
    if !x.request.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(&x.request.args);
    }
    x.reply.location = location;
    Flow::Status(301)
}

#[cfg(test)]
mod tests;
