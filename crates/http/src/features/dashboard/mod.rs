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

use conf::{Directive, Inherited, Load, Result, Value};
use observe::CounterTotals;
use wire::Method;

use crate::exchange::{Bytes, Exchange, Flow};
use crate::site::{BlockContext, LocationBuilder};
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
    }
    Ok(())
}

fn answer(base: &[u8], page: &'static DashboardPage, x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) {
        return Flow::Status(405);
    }
    match x.request.uri.strip_prefix(base) {
        Some(b"" | b"/") => page.answer(x),
        Some(b"/data") => data(x),
        _ => return Flow::Status(404),
    }
    x.reply.status = 200;
    x.reply.fields.append(b"X-Content-Type-Options", b"nosniff");
    x.reply.fields.append(b"Cross-Origin-Resource-Policy", b"same-origin");
    Flow::Done
}

fn data(x: &mut Exchange) {
    let CounterTotals { accepts, handled, requests, active, reading, writing, waiting } =
        CounterTotals::now();
    let text = format!(
        "{{\"connections\":{{\"accepted\":{accepts},\"handled\":{handled},\"active\":{active},\
         \"idle\":{waiting},\"reading\":{reading},\"writing\":{writing}}},\
         \"http\":{{\"requests\":{{\"total\":{requests}}}}}}}"
    );
    x.reply.set_content_type(b"application/json");
    x.reply.fields.append(b"Cache-Control", b"no-store");
    x.reply.set_bytes(Bytes::Owned(text.into_bytes()));
}
