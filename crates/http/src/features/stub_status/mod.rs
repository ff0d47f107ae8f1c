//! `stub_status`: the server's counters, as a page and as variables.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};
use metrics::CounterTotals;
use wire::Method;

use crate::exchange::{Bytes, Exchange, Flow};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable, number};

conf::directives! {
    in SERVER | LOCATION;

    /// Answers with the number of connections and requests.
    ///
    /// Default: off
    ///
    /// ```nginx
    /// location = /status {
    ///     stub_status;
    ///     allow 127.0.0.1;
    ///     deny all;
    /// }
    /// ```
    stub_status: Option<StubStatus>,
}

/// The presence of the directive. Older configurations have `on` after it.
#[derive(Clone, Copy)]
pub struct StubStatus;

impl Value for StubStatus {
    const ARGS: RangeInclusive<usize> = 0..=1;
    const INHERITED: conf::Inherited = conf::Inherited::Nameless;
    fn parse(_: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn repeat(&mut self, _: &Directive, _: &mut Load<'_>) -> Result<()> {
        Ok(())
    }
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_stub_status_module",
    &[
        BuiltIn::fresh(
            "connections_active",
            "The number of client connections, waiting ones included.",
            |_, out| number(out, CounterTotals::now().active),
        ),
        BuiltIn::fresh(
            "connections_reading",
            "The number of connections whose request is being read.",
            |_, out| number(out, CounterTotals::now().reading),
        ),
        BuiltIn::fresh(
            "connections_writing",
            "The number of connections whose reply is being made or sent.",
            |_, out| number(out, CounterTotals::now().writing),
        ),
        BuiltIn::fresh(
            "connections_waiting",
            "The number of idle connections that wait for a request.",
            |_, out| number(out, CounterTotals::now().waiting),
        ),
    ],
);

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.stub_status.is_some() {
        location.exclusive("stub_status", answer);
    }
    Ok(())
}

fn answer(x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) {
        return Flow::Status(405);
    }
    let CounterTotals { accepts, handled, requests, active, reading, writing, waiting } =
        CounterTotals::now();
    x.reply.status = 200;
    x.reply.set_content_type(b"text/plain");
    let mut page = x.reply.text();
    // Writing to a vector does not fail.
    let _ = write!(
        page,
        "Active connections: {active} \nserver accepts handled requests\n \
         {accepts} {handled} {requests} \n\
         Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
    );
    x.reply.set_bytes(Bytes::Owned(page));
    Flow::Done
}

#[cfg(test)]
mod tests {
    use crate::testing::site;

    #[test]
    fn the_page_has_nginx_format() {
        let site = site("server { location / { stub_status; } }");
        let page = site.get("/").body();
        let lines: Vec<&str> = page.split('\n').collect();
        assert!(lines[0].starts_with("Active connections: ") && lines[0].ends_with(' '));
        assert_eq!(lines[1], "server accepts handled requests");
        assert_eq!(lines[2].split(' ').count(), 5, "{page}");
        assert!(lines[3].starts_with("Reading: ") && lines[3].contains(" Writing: "));
        assert_eq!(lines[4], "");
        assert_eq!(site.send("POST / HTTP/1.1\nHost: h\n\n").status(), 405);
    }
}
