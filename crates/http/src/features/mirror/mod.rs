//! `mirror`: sends copies of requests to other locations, and discards the responses.

#[cfg(test)]
mod tests;

use net::LentFuture;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Sends a copy of each request to this location and ignores the response.
    ///
    /// Copies delay no client: the next request of the connection does not wait for them. With 512
    /// copies in progress in a worker, further ones are dropped with an error in the log.
    ///
    /// Syntax: PATH | off
    /// Differs: nginx serves the client's next request on the connection only after the copy ends,
    ///     and ends the copy when the client leaves
    ///
    /// ```nginx
    /// location / {
    ///     mirror /mirror;
    ///     proxy_pass http://127.0.0.1:3000;
    /// }
    /// location = /mirror {
    ///     internal;
    ///     proxy_pass http://127.0.0.1:3001$request_uri;
    /// }
    /// ```
    mirror: Mirrors = "off",
    /// Whether the copies have the request body, which is then read as a whole first.
    mirror_request_body: bool = "on",
}

/// The paths; empty if it is off.
#[derive(Clone)]
pub struct Mirrors(Vec<Box<[u8]>>);

const OFF: &[u8] = b"off";

impl Value for Mirrors {
    const ARGS: RangeInclusive<usize> = 1..=1;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self(match &*from.arg(0).text {
            OFF => Vec::new(),
            path => vec![path.into()],
        }))
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        let path = &from.arg(0).text;
        if self.0.is_empty() || &**path == OFF {
            return Err(from.refuse("is duplicate"));
        }
        self.0.push(path.clone());
        Ok(())
    }
}

/// Starts the copies before the content handler runs.
pub fn install(conf: &Arc<Conf>, place: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if !conf.mirror.0.is_empty() {
        let conf = conf.clone();
        place.precontent(move |x| handle(&conf, x));
    }
    Ok(())
}

fn handle(conf: &Arc<Conf>, x: &mut Exchange) -> Flow {
    if x.is_subrequest() {
        return Flow::Next;
    }
    x.debug(format_args!("mirror handler"));
    let body = &x.request.body;
    if !conf.mirror_request_body || !body.is_announced() || !body.is_unread() {
        return conf.send_copies(x);
    }
    let conf = conf.clone();
    Flow::wait(move |x| {
        LentFuture::new(async move {
            match x.read_body().await {
                Ok(()) => conf.send_copies(x),
                Err(flow) => flow,
            }
        })
    })
}

impl Conf {
    fn send_copies(&self, x: &mut Exchange) -> Flow {
        let args = x.request.args.clone();
        for uri in &self.mirror.0 {
            let Some(mut copy) = x.subrequest(uri, &args) else { return Flow::Status(500) };
            copy.x.request.header_only = true;
            copy.x.request.has_args = x.request.has_args;
            copy.x.request.head.method = x.request.head.method;
            x.run_in_background(copy);
        }
        Flow::Next
    }
}
