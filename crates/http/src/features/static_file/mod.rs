//! Files from disk: small hot ones from memory in one write with their head, others by sendfile.

use std::sync::Arc;

use conf::Result;
use wire::Method;

use crate::exchange::{Body, Bytes, Exchange, FileSlice, Flow};
use crate::files::{self, Found};
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;
}

/// Answers with the file that the path names.
pub fn install(_: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.content(serve);
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
    let trusted = x.append_path(&mut path);
    let flow = match files::open(&path, &x.location().core.files, trusted) {
        Ok(found) if found.stat.is_directory() => redirect_to_directory(x),
        Ok(found) if !found.stat.is_regular() => Flow::Status(404),
        Ok(_) if x.request.head.method == Method::Post => Flow::Status(405),
        Ok(found) => answer(x, found),
        Err(failed) => Flow::Status(failed.status()),
    };
    x.give_scratch(path);
    flow
}

fn answer(x: &mut Exchange, found: Found) -> Flow {
    x.reply.status = 200;
    x.reply.content_length = Some(found.stat.size);
    x.reply.last_modified = Some(found.stat.modified);
    x.reply.set_etag(found.stat.modified, found.stat.size);
    x.reply.allow_ranges = true;
    x.set_content_type_of_uri();
    x.reply.body = match (found.content, found.file) {
        (Some(content), _) => Body::Bytes(Bytes::Kept(content, 0, found.stat.size as u32)),
        (None, Some(file)) => Body::File(FileSlice { file, start: 0, end: found.stat.size }),
        (None, None) => unreachable!("a regular file is open or in memory"),
    };
    Flow::Done
}

fn redirect_to_directory(x: &mut Exchange) -> Flow {
    let mut location = Vec::with_capacity(x.request.uri.len() + x.request.args.len() + 2);
    wire::uri::escape(wire::uri::Escape::Uri, &x.request.uri, &mut location);
    location.push(b'/');
    if !x.request.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(&x.request.args);
    }
    x.reply.location = location;
    Flow::Status(301)
}

/// No content handler wanted it.
pub(crate) fn nothing_answered(x: &mut Exchange) -> Flow {
    Flow::Status(if x.request.uri.ends_with(b"/") { 403 } else { 404 })
}
