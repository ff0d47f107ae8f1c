//! `auth_request`: the status of a subrequest decides about access.

#[cfg(test)]
mod tests;

use net::{LentFuture, clock};
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value, VariableId};
use observe::Level;
use session::evaluate;

use crate::exchange::{Exchange, Flow, TimedPhase, TooLong};
use crate::features::otel;
use crate::site::LocationBuilder;
use crate::subrequest::Subrequest;
use crate::variables::{self, Setter, Variable};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Sends a subrequest to this location to decide whether a request is allowed: a status of 2xx
    /// allows it, 401 and 403 deny it with the same status, and any other status is an error.
    ///
    /// Syntax: PATH | off
    ///
    /// ```nginx
    /// location /private/ {
    ///     auth_request /auth;
    /// }
    /// location = /auth {
    ///     internal;
    ///     proxy_pass http://127.0.0.1:3001;
    ///     proxy_pass_request_body off;
    ///     proxy_set_header Content-Length "";
    ///     proxy_set_header X-Original-URI $request_uri;
    /// }
    /// ```
    auth_request: Judge = "off",
    /// Sets a variable after the subrequest of `auth_request`. The value can contain variables of
    /// the subrequest.
    ///
    /// Syntax: $VARIABLE STRING
    ///
    /// ```nginx
    /// location / {
    ///     auth_request /auth;
    ///     auth_request_set $user $upstream_http_x_user;
    ///     proxy_set_header X-User $user;
    ///     proxy_pass http://127.0.0.1:3000;
    /// }
    /// ```
    auth_request_set: Vec<SetFromReply>,
}

/// The authorising resource.
#[derive(Clone)]
pub enum Judge {
    Off,
    At(Box<[u8]>),
}

impl Value for Judge {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(match &*from.arg(0).text {
            b"off" | b"" => Self::Off,
            path => Self::At(path.into()),
        })
    }
}

/// A variable and its value from the reply.
#[derive(Clone)]
pub struct SetFromReply {
    variable: VariableId,
    /// The setter, if the variable is built in.
    set: Option<Setter>,
    value: Template,
}

impl Value for SetFromReply {
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let unset = |_: &[u8]| Variable::fresh(|_, _| false);
        let (variable, set) = variables::define_set(from.arg(0), from, load, unset)?;
        Ok(Self { variable, set, value: Template::compile(from.arg(1), from, load)? })
    }
}

/// Checks access if a resource is set.
pub fn install(conf: &Arc<Conf>, place: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if let Judge::At(path) = &conf.auth_request {
        let (conf, path): (_, Arc<[u8]>) = (conf.clone(), (&**path).into());
        place.access(move |x| {
            x.debug(format_args!("auth request handler"));
            let (conf, path) = (conf.clone(), path.clone());
            Flow::wait(move |x| {
                LentFuture::new(async move {
                    x.in_phase(TimedPhase::AuthRequest, async |x| conf.ask(&path, x).await).await
                })
            })
        });
    }
    Ok(())
}

impl Conf {
    async fn ask(&self, path: &[u8], x: &mut Exchange) -> Flow {
        let Some(mut question) = x.subrequest(path, b"") else { return Flow::Drop(0) };
        let begun_ms = clock::now_ms();
        question.x.request.header_only = true;
        question.x.request.body = x.request.body.without_content();
        if let Err(flow) = question.run().await {
            return flow;
        }
        x.debug(format_args!("auth request done s:{}", question.x.reply.status));
        let flow = match self.set_variables(x, &mut question.x) {
            Ok(()) => judge(x, &question),
            Err(TooLong) => Flow::Status(500),
        };
        otel::note_subrequest(x, "auth_request", begun_ms, &question.x);
        x.end(question);
        flow
    }

    /// As soon as the reply is there, so that they have their values in any location where the
    /// exchange continues.
    fn set_variables(
        &self,
        x: &mut Exchange,
        answer: &mut Exchange,
    ) -> std::result::Result<(), TooLong> {
        let mut value = x.scratch();
        for set in &self.auth_request_set {
            value.clear();
            set.value.render(answer, &mut value);
            match set.set {
                Some(set) => set(x, &value),
                None => evaluate::set(x, set.variable, &value)?,
            }
        }
        x.give_scratch(value);
        Ok(())
    }
}

/// The next step of the exchange after the reply.
fn judge(x: &mut Exchange, question: &Subrequest) -> Flow {
    match question.x.reply.status {
        200..300 => Flow::Skip,
        401 => {
            pass_on_challenge(&question.x, x);
            Flow::Status(401)
        }
        403 => Flow::Status(403),
        status => {
            x.log(Level::Error, format_args!("auth request unexpected status: {status}"));
            Flow::Status(500)
        }
    }
}

/// The `WWW-Authenticate` fields: those of the reply, or else those of its backend that were
/// hidden.
fn pass_on_challenge(answer: &Exchange, x: &mut Exchange) {
    const NAME: &[u8] = b"WWW-Authenticate";
    let count = x.reply.fields.len();
    for value in answer.reply.fields.values(NAME) {
        x.reply.fields.append(NAME, value);
    }
    if x.reply.fields.len() == count {
        for (name, value) in answer.backends.challenges() {
            x.reply.fields.append(name, value);
        }
    }
}
