//! Answers that stand for a status: the `error_page` that is configured, or the built-in page.

use crate::exchange::{Bytes, Exchange, Flow, Jump};

/// What `error_page` says about a status.
pub struct ErrorPage {
    /// The statuses it is for.
    pub statuses: Vec<u16>,
    /// `=code`: the status to answer with; `Some(0)` for a bare `=`: what the target answers.
    pub overwrite: Option<u16>,
    /// Where to go.
    pub target: Target,
}

/// Where an `error_page` leads.
pub enum Target {
    /// A path here, with variables.
    Uri(conf::Template),
    /// A URL elsewhere.
    Url(conf::Template),
    /// A named location, resolved when the server is complete.
    Named(Box<[u8]>),
}

/// Answers with a status: by `error_page`, or with the built-in page.
pub(crate) fn answer(x: &mut Exchange, status: u16) -> Flow {
    if matches!(status, 400 | 413 | 414 | 494..=497 | 500 | 501) {
        x.keepalive = false;
    }
    let generation = x.generation.clone();
    let here = generation.location(x.location);
    let page = here.core.error_pages.iter().find(|page| page.statuses.contains(&status));
    match page {
        Some(page) if !x.in_error_page || here.core.recursive_error_pages => {
            follow(x, page, status)
        }
        _ => built_in(x, status),
    }
}

fn follow(x: &mut Exchange, page: &ErrorPage, status: u16) -> Flow {
    x.in_error_page = true;
    x.error_status = page.overwrite.unwrap_or(status);
    match &page.target {
        Target::Uri(template) => {
            let uri = x.render(template);
            if x.request.head.method != wire::Method::Head {
                x.request.head.method = wire::Method::Get;
            }
            let (path, args) = match memchr::memchr(b'?', &uri) {
                Some(at) => (uri[..at].to_vec(), Some(uri[at + 1..].to_vec())),
                None => (uri, None),
            };
            Flow::Jump(Jump::Internal { uri: path, args })
        }
        Target::Named(name) => match x.server().locations.named(name) {
            Some(location) => Flow::Jump(Jump::Named(location)),
            None => built_in(x, 500),
        },
        Target::Url(template) => {
            let url = x.render(template);
            let status = match page.overwrite {
                Some(code @ (301 | 302 | 303 | 307 | 308)) => code,
                _ => 302,
            };
            x.error_status = 0;
            x.reply.location = url;
            built_in(x, status)
        }
    }
}

/// The page that says no more than the status.
fn built_in(x: &mut Exchange, status: u16) -> Flow {
    let location = std::mem::take(&mut x.reply.location);
    let keep = status == 416 || status == 401;
    if !keep {
        x.reply.clear_head();
    }
    x.reply.location = location;
    x.reply.status = match status {
        494..=497 => 400,
        other => other,
    };
    x.reply.content_type.clear();
    x.reply.last_modified = None;
    if matches!(status, 204 | 304) || status < 300 {
        x.reply.body = crate::exchange::Body::Empty;
        x.reply.content_length = None;
        return Flow::Done;
    }
    let page = page(status, x.location().core.server_token());
    x.reply.set_content_type(b"text/html");
    x.reply.set_bytes(Bytes::Owned(page));
    Flow::Done
}

/// The body of the built-in page.
fn page(status: u16, token: &str) -> Vec<u8> {
    let title = crate::stand_in::page_title(status);
    format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
         <center><h1>{title}</h1></center>\r\n<hr><center>{token}</center>\r\n\
         </body>\r\n</html>\r\n"
    )
    .into_bytes()
}
