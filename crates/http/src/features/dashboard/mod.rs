//! `dashboard`: a page that shows the server's state and keeps itself up to date.
//!
//! The location answers the page itself and, below its own name, the data that the page asks for
//! once a second. The page finds them by its own address, so it works behind any prefix. It is one
//! file without external parts, and its policy allows only the script and the style inside it.

mod page;
mod squeeze;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::session::status::StatusBook;
use ::session::status::shapes::{Shape, own};
use conf::{Directive, Inherited, Load, Result, Value};
use metrics::tree::{PathPart, find};
use wire::Method;

use crate::exchange::{Exchange, Flow};
use crate::site::{BlockContext, LocationBuilder};
use crate::status_page::{self, parts, server_address};
use page::DashboardPage;

conf::directives! {
    in LOCATION;

    /// Answers with a page that shows what the server does: requests, upstream servers, limits,
    /// slow requests, certificates, workers. The page is updated every second and remembers ten
    /// minutes. Below the location, `data` answers the same as JSON.
    ///
    /// The location needs a prefix, so that `data` is inside it. Who may see it is for other
    /// directives to say.
    ///
    /// Differs: not in nginx's sources; Weir's own. See docs/dashboard.md.
    ///
    /// ```nginx
    /// location /dashboard/ {
    ///     dashboard;
    ///     allow 127.0.0.1;
    ///     deny all;
    /// }
    /// ```
    dashboard: Option<Dashboard>,
}

/// The presence of the directive.
#[derive(Clone)]
struct Dashboard {
    /// The location's name without a slash at the end.
    base: Box<[u8]>,
}

impl Value for Dashboard {
    const ARGS: std::ops::RangeInclusive<usize> = 0..=0;
    const INHERITED: Inherited = Inherited::Nameless;

    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        load.own.of::<StatusBook>().show();
        match load.registry.of::<BlockContext>() {
            BlockContext::Prefix(name) => {
                let base = name.strip_suffix(b"/").unwrap_or(name);
                Ok(Self { base: base.into() })
            }
            _ => Err(from.error("\"dashboard\" needs a location with a prefix")),
        }
    }
}

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if let Some(Dashboard { base }) = conf.dashboard.clone() {
        let page = DashboardPage::shared();
        location.exclusive("dashboard", move |x| answer(&base, page, x));
        location.redirect_slashless();
    }
    Ok(())
}

fn answer(base: &[u8], page: &'static DashboardPage, x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) {
        return Flow::Status(405);
    }
    let flow = match x.request.uri.strip_prefix(base) {
        Some(b"" | b"/") => page.answer(x),
        Some(below) => match below.strip_prefix(b"/data") {
            Some(path @ ([] | [b'/', ..])) => data(path.to_vec(), x),
            _ => return Flow::Status(404),
        },
        None => return Flow::Status(404),
    };
    x.reply.fields.append(b"X-Content-Type-Options", b"nosniff");
    x.reply.fields.append(b"Cross-Origin-Resource-Policy", b"same-origin");
    flow
}

/// Answers with the tree, or with what is at a path below its root.
fn data(path: Vec<u8>, x: &mut Exchange) -> Flow {
    let shape = Shape { is_extended: true, is_epoch: false };
    match find(own(&server_address(x), shape), &parts(&path)) {
        Some(PathPart::Tree(part)) => status_page::json(x, part),
        Some(PathPart::Value(json)) => status_page::text(x, 200, b"application/json", json),
        None => Flow::Status(404),
    }
}
