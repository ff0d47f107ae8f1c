//! `ready`: whether the server takes new requests, for orchestrators and load balancers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ::session::status::ProgramFacts;
use conf::{Directive, Load, Result, Value};

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;
use crate::status_page;

conf::directives! {
    in LOCATION;

    /// Answers 200 while load balancers are to send clients here, and 503 after `weir ctl ready
    /// off` or once the server has been told to end after its last requests (`shutdown_delay`).
    ///
    /// Default: off
    /// Differs: not in nginx's sources; Weir's own.
    ///
    /// ```nginx
    /// location = /ready {
    ///     ready;
    ///     access_log off;
    /// }
    /// ```
    ready: Option<Ready>,
}

/// The presence of the directive.
#[derive(Clone, Copy)]
pub struct Ready;

impl Value for Ready {
    const ARGS: std::ops::RangeInclusive<usize> = 0..=0;
    const INHERITED: conf::Inherited = conf::Inherited::Nameless;
    fn parse(_: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self)
    }
}

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.ready.is_some() {
        location.exclusive("ready", answer);
    }
    Ok(())
}

fn answer(x: &mut Exchange) -> Flow {
    let (status, text) = match ProgramFacts::get().is_draining.load(Relaxed) {
        false => (200, "ready\n"),
        true => (503, "draining\n"),
    };
    status_page::text(x, status, b"text/plain", text.into())
}
