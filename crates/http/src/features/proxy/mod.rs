//! `proxy_pass`: an HTTP server answers.
//!
//! What all families of backends share stands in `crate::backend`; here is what is HTTP's: the
//! request's line and fields, and the fields of a reply that name the backend's own addresses.

mod check;
mod cookie;
mod fields;
mod pass;
mod redirect;
mod request;
mod rules;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use conf::{Bounded, Error, Result, Template};

use crate::backend::Conf as Family;
use crate::backend::groups::ByName;
use crate::backend::{self, Passed, Plan, Rewrite, Rules};
use crate::exchange::{Exchange, Flow};
use crate::files::TempPath;
use crate::site::Place;
use cookie::{Cookies, Domain, Flags, Path};
use fields::{Compiled, SetHeader};
use pass::{Backend, Found, Pass, Target};
use redirect::{Redirect, Redirects};
use rules::Lines;
pub(crate) use variables::TABLE as VARIABLES;
use wire::Slice;

conf::directives! {
    also {
        /// Passes requests on to an HTTP server, or to a group of them.
        pass(1..=1) in LOCATION | IF_IN_LOCATION | LIMIT_EXCEPT => target;
    }
    slots {
        /// The backend.
        target: Option<Pass>,
    }

    in MAIN | SERVER | LOCATION;

    /// Sends a request header field of this value; an empty value: no such field.
    set_header: Vec<SetHeader>,
    /// Sends this instead of the request's body.
    set_body: Option<Template>,
    /// Asks with this method.
    method: Option<Template>,
    /// What stands for what in `Location` and `Refresh`; `default`, which holds where nothing is
    /// said: the location for the URL of `proxy_pass`.
    redirect: Option<Lines<Redirect>>,
    /// What stands for what in the attribute `domain` of cookies.
    cookie_domain: Option<Lines<Domain>>,
    /// What stands for what at the beginning of the attribute `path` of cookies.
    cookie_path: Option<Lines<Path>>,
    /// Attributes that cookies of that name get or lose.
    cookie_flags: Option<Lines<Flags>>,
    /// The protocol's version.
    http_version: HttpVersion = "1.1",
    /// Whether fields after a reply's body are passed on.
    pass_trailers: bool = "off",
    /// Where the files of replies are that do not fit into memory.
    temp_path: TempPath = "proxy_temp 1 2",
    /// Accepted, and without effect: no table is built.
    headers_hash_max_size: Bounded<1, { u32::MAX as u64 }> = "512",
    /// Accepted, and without effect: no table is built.
    headers_hash_bucket_size: Bounded<1, { u32::MAX as u64 }> = "64",
}

conf::words! {
    /// The version of the protocol that a backend is spoken to in.
    pub enum HttpVersion {
        /// HTTP/1.0.
        Http10 = "1.0",
        /// HTTP/1.1.
        Http11 = "1.1",
    }
}

/// A location's way to its backend.
struct Proxy {
    family: Arc<Family>,
    conf: Arc<Conf>,
    fields: Compiled,
    passed: Arc<Passed>,
    rules: Arc<Rules>,
    redirects: Redirects,
    cookies: Option<Cookies>,
    backend: Backend,
    location: Box<[u8]>,
}

/// Answers everything in a location that has a backend.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    let family = place.family.take().expect("the family's row stands before this one");
    family.check("proxy_").map_err(|message| Error::at(place.at, message))?;
    let Some(pass) = &conf.target else { return Ok(()) };
    let passed = Arc::new(Passed::new(&family));
    let trailers = conf.pass_trailers.then(|| passed.clone());
    let proxy = Arc::new(Proxy {
        fields: Compiled::new(&conf.set_header),
        rules: Arc::new(Rules::new(&family, &conf.temp_path, trailers)),
        passed,
        redirects: Redirects::new(conf.redirect.as_ref(), pass, &place.name),
        cookies: Cookies::new(conf),
        backend: Backend::compile(pass, place.load)?,
        location: place.name.clone(),
        conf: conf.clone(),
        family,
    });
    place.checkable = Some(proxy.clone());
    place.exclusive_from_slash(move |x| proxy.handle(x));
    Ok(())
}

impl Proxy {
    fn handle(self: &Arc<Self>, x: &mut Exchange) -> Flow {
        let proxy = self.clone();
        x.backends.schema = "http://";
        if self.family.outlives_client() {
            x.outlives_client.set(true);
        }
        Flow::Wait(Box::new(move |x| Box::pin(async move { proxy.pass(x).await })))
    }

    async fn pass(&self, x: &mut Exchange) -> Flow {
        let streams = match self.take_body(x).await {
            Ok(streams) => streams,
            Err(flow) => return flow,
        };
        x.backends.begin_request();
        let computed;
        let target = match &self.backend {
            Backend::Fixed(target) => {
                x.backends.request_to.name(&target.host, &target.port);
                target
            }
            Backend::Computed(template, groups) => match self.compute(x, template, groups).await {
                Ok(target) => {
                    computed = Box::new(target);
                    &computed
                }
                Err(flow) => return flow,
            },
        };
        let Some(plan) = self.plan(x, target, streams) else { return Flow::Status(500) };
        backend::pass(x, plan).await
    }

    /// What is asked; `None`, with a line in the log: there is nothing to ask for.
    fn plan<'a>(
        &'a self,
        x: &mut Exchange,
        target: &'a Target,
        streams: Option<bool>,
    ) -> Option<Plan<'a>> {
        let set_body = self.conf.set_body.as_ref().map(|template| x.render(template));
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        let length = set_body.as_ref().map(|body| body.len() as u64);
        let written = self.write_head(x, target, length, streams == Some(true), &mut head)?;
        Some(Plan {
            conf: &self.family,
            passed: &self.passed,
            rules: &self.rules,
            rewrite: self,
            group: &target.group,
            head,
            set_body,
            to_head: written.to_head,
            announced: written.announced,
            streams,
        })
    }

    /// Reads the body first, unless it is passed on as it comes: then, whether in chunks.
    async fn take_body(&self, x: &mut Exchange) -> std::result::Result<Option<bool>, Flow> {
        if !x.request.body.is_announced() || !x.request.body.is_unread() {
            return Ok(None);
        }
        let passes = self.family.passes_body() && self.conf.set_body.is_none();
        let length = x.request.body.length();
        let can_stream = length.is_some() || self.conf.http_version == HttpVersion::Http11;
        let is_there = x.downstream.as_ref().is_none_or(|downstream| downstream.has_whole_body());
        if passes && !self.family.reads_body_first() && can_stream && !is_there {
            return Ok(Some(length.is_none()));
        }
        match x.read_body().await {
            Ok(()) => Ok(None),
            Err(flow) => Err(flow),
        }
    }

    async fn compute(
        &self,
        x: &mut Exchange,
        template: &Template,
        groups: &ByName,
    ) -> std::result::Result<Target, Flow> {
        let url = x.render(template);
        match pass::evaluate(&url, groups, x) {
            None => Err(Flow::Status(500)),
            Some(Found::Target(target)) => {
                x.backends.request_to.name(&target.host, &target.port);
                Ok(target)
            }
            Some(Found::Unresolved(unresolved)) => unresolved.resolve(x).await,
        }
    }
}

impl Rewrite for Proxy {
    fn location(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        if self.redirects.is_empty() {
            return None;
        }
        with_value(x, value, |x, value| self.redirects.rewritten(x, value, 0))
    }

    fn refresh(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        if self.redirects.is_empty() {
            return None;
        }
        with_value(x, value, |x, value| {
            self.redirects.rewritten(x, value, redirect::url_in(value)?)
        })
    }

    fn cookie(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        let cookies = self.cookies.as_ref()?;
        with_value(x, value, |x, value| cookies.rewritten(x, value))
    }
}

/// The value stays where it is: what it is rewritten to may depend on all the reply's fields.
fn with_value(
    x: &mut Exchange,
    value: Slice,
    rewrite: impl FnOnce(&mut Exchange, &[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut text = x.scratch();
    text.extend_from_slice(value.of(&x.backends.head_text));
    let rewritten = rewrite(x, &text);
    x.give_scratch(text);
    rewritten
}
