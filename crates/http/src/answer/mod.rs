//! Answers to an exchange that ends with a status: the target of `error_page`, or the built-in
//! page.
//!
//! As in nginx, the fields that a handler has set are kept, except those that describe the body,
//! because the body is replaced.

mod grpc;
mod page;

use observe::{Level, Text};

use crate::exchange::{Bytes, CloseReason, Exchange, FieldName, Flow, Jump, JumpArgs};
use crate::site::policy::ErrorPage;

/// Answers with a status, by `error_page` or with the built-in page.
pub(crate) fn with_status(x: &mut Exchange, status: u16) -> Flow {
    if matches!(status, 400 | 413 | 414 | 495..=497 | 500 | 501) {
        x.close_after(CloseReason::Status);
    }
    x.error_status = public_status(status);
    forget_body(x);
    let generation = x.generation.clone();
    let rules = &generation.location(x.location).core.error_pages;
    if !x.in_error_page && !rules.pages.is_empty() && x.redirects_left != 0 {
        x.in_error_page = !rules.recursive;
        if let Some(page) = rules.page(status) {
            return follow(x, page);
        }
    }
    if matches!(status, 301 | 302) && refreshes(x) {
        return refresh(x);
    }
    built_in(x, status)
}

/// Answers an exchange that no content handler answered.
pub(crate) fn nothing_answered(x: &mut Exchange) -> Flow {
    if !x.request.uri.ends_with(b"/") {
        x.log(Level::Error, format_args!("no handler found"));
        return Flow::Status(404);
    }
    let mut path = x.scratch();
    if x.append_path(&mut path) {
        let path = Text(&path);
        x.log(Level::Error, format_args!("directory index of \"{path}\" is forbidden"));
    }
    x.give_scratch(path);
    Flow::Status(403)
}

/// Replaces a reply that has passed the filters and cannot be sent by the built-in page.
pub(crate) fn instead_of_reply(x: &mut Exchange, status: u16) {
    x.close_after(CloseReason::Status);
    x.error_status = status;
    x.reply.clear_head();
    x.reply.clear_body();
    built_in(x, status);
}

/// Whether `error_page` of the exchange's location has a page for a status.
pub(crate) fn has_page(x: &Exchange, status: u16) -> bool {
    x.location().core.error_pages.page(status).is_some()
}

/// The status that the client sees: nginx's own statuses of invalid requests become 400.
fn public_status(status: u16) -> u16 {
    if matches!(status, 494..=497) { 400 } else { status }
}

/// Clears the body, and the fields that describe it.
fn forget_body(x: &mut Exchange) {
    let reply = &mut x.reply;
    reply.clear_body();
    reply.content_type.clear();
    reply.content_length = None;
    reply.last_modified = None;
    reply.allow_ranges = false;
    for known in [FieldName::AcceptRanges, FieldName::ETag, FieldName::LastModified] {
        reply.fields.remove_known(known);
    }
}

fn follow(x: &mut Exchange, page: &ErrorPage) -> Flow {
    if let Some(status) = page.overwrite {
        x.error_status = status;
    }
    x.reply.without_continue |= !matches!(page.overwrite, Some(0 | 200));
    let target = x.render(&page.target);
    match target.first() {
        Some(b'/') => {
            let method = &mut x.request.head.method;
            if *method != wire::Method::Head {
                *method = wire::Method::Get;
            }
            Flow::Jump(internal(target))
        }
        Some(b'@') => to_named(x, &target),
        _ => elsewhere(x, target, page.overwrite),
    }
}

fn internal(mut uri: Vec<u8>) -> Jump {
    let args = match memchr::memchr(b'?', &uri) {
        Some(at) => {
            let args = uri[at + 1..].to_vec();
            uri.truncate(at);
            JumpArgs::New(args)
        }
        None => JumpArgs::None,
    };
    Jump::Internal { uri, args }
}

/// Continues in the location `@name`. As in nginx, a missing location is only noticed here.
pub(crate) fn to_named(x: &mut Exchange, name: &[u8]) -> Flow {
    let location = x.server().locations.named(name);
    let complaint = match location {
        Some(_) if x.request.uri.is_empty() => "empty URI in redirect to",
        Some(location) => return Flow::Jump(Jump::Named(location)),
        None => "could not find",
    };
    x.redirects_left = x.redirects_left.saturating_sub(1);
    let name = Text(name);
    x.log(Level::Error, format_args!("{complaint} named location \"{name}\""));
    with_status(x, 500)
}

/// A redirect to another site, with status 302 unless `=` sets another redirect.
fn elsewhere(x: &mut Exchange, url: Vec<u8>, overwrite: Option<u16>) -> Flow {
    let redirect = overwrite.filter(|status| matches!(status, 301 | 302 | 303 | 307 | 308));
    let status = redirect.unwrap_or(302);
    x.error_status = status;
    x.reply.set_location(url);
    if refreshes(x) { refresh(x) } else { built_in(x, status) }
}

/// Answers with the built-in page.
fn built_in(x: &mut Exchange, status: u16) -> Flow {
    x.reply.without_continue = true;
    if grpc::answers(x, x.error_status) {
        grpc::write(x, x.error_status);
        return Flow::Done;
    }
    x.reply.status = x.error_status;
    let mut text = x.reply.text();
    if page::write(status, x.location().core.server_token(), &mut text) {
        if status >= 400 && pads(x) {
            text.extend_from_slice(page::PADDING);
        }
        x.reply.set_content_type(b"text/html");
    }
    x.reply.set_bytes(Bytes::Owned(text));
    Flow::Done
}

fn pads(x: &Exchange) -> bool {
    x.location().core.error_pages.msie_padding
        && x.request.head.version >= wire::Version::HTTP_10
        && page::shows_its_own(x)
}

fn refreshes(x: &Exchange) -> bool {
    x.location().core.error_pages.msie_refresh && page::is_msie(x)
}

/// A redirect by a page, for browsers that ignore a fragment in the `Location` field.
fn refresh(x: &mut Exchange) -> Flow {
    x.error_status = 200;
    x.reply.status = 200;
    x.reply.without_continue = true;
    let url = std::mem::take(&mut x.reply.location);
    let mut text = x.reply.text();
    page::write_refresh(&url, &mut text);
    x.reply.set_content_type(b"text/html");
    x.reply.set_bytes(Bytes::Owned(text));
    Flow::Done
}
