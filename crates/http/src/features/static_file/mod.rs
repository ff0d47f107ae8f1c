//! Files from disk: small hot ones from memory in one write with their head.

mod cache;

use std::sync::Arc;

use conf::Result;
use wire::Method;

use crate::exchange::{Exchange, Flow};
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;
    /// Whether files are sent by the kernel.
    sendfile: bool = "off",
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
    let generation = x.generation.clone();
    let here = &generation.location(x.location).core;
    here.root.as_ref().expect("every location has one").append_path(x, &mut path);
    let file = cache::open(&path);
    x.give_scratch(path);
    let Ok(file) = file else { return Flow::Status(404) };
    x.reply.status = 200;
    x.reply.last_modified = Some(file.modified);
    x.reply.fields.append(b"ETag", &file.etag);
    x.reply.allow_ranges = true;
    x.set_content_type_of_uri();
    x.reply.set_bytes(crate::exchange::Bytes::Kept(file.bytes.clone(), 0, file.bytes.len() as u32));
    Flow::Done
}

/// No content handler wanted it.
pub(crate) fn nothing_answered(x: &mut Exchange) -> Flow {
    Flow::Status(if x.request.uri.ends_with(b"/") { 403 } else { 404 })
}
