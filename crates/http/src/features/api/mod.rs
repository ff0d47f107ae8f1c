//! `api`: the program's state as JSON, as NGINX Plus shows it and as Angie does.

mod angie;
pub(crate) mod plus;
mod steer;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::status::StatusBook;
use conf::{Directive, Load, Result, Template, Value};

use crate::site::{BlockContext, LocationBuilder};

conf::directives! {
    in LOCATION;

    /// Answers with the program's state as JSON.
    ///
    /// Without a path, it is the API of NGINX Plus: below the location there are versions, and
    /// below these what is shown, such as `/api/9/http/upstreams`. With `write=on`, requests can
    /// also change the servers of upstream groups and the tables of `keyval_zone` (see
    /// docs/runtime-api.md).
    ///
    /// With a path, it is Angie's: the
    /// path replaces the location's name, and can contain variables; `?extended` adds what only
    /// Weir shows.
    ///
    /// Syntax: [write=on | write=off]
    /// Syntax: PATH
    /// Differs: not in nginx's sources; as in NGINX Plus and in Angie. With `write=on`, only
    /// servers of groups and entries of tables can be changed.
    ///
    /// ```nginx
    /// location /api/ {
    ///     api;
    ///     allow 127.0.0.1;
    ///     deny all;
    /// }
    ///
    /// location /status/ {
    ///     api /status/;
    ///     allow 127.0.0.1;
    ///     deny all;
    /// }
    /// ```
    api + IF_IN_LOCATION: Option<ApiLine>,
}

/// The value of `api`.
#[derive(Clone)]
pub enum ApiLine {
    Plus {
        request_id: Template,
        /// Who asks, for the log.
        who: Template,
        /// The line, if servers and tables may be changed.
        writes: Option<Directive>,
    },
    Angie {
        path: Template,
        /// The prefix of requests that the path replaces; `None`: all of them.
        replaces: Option<Box<[u8]>>,
    },
}

impl Value for ApiLine {
    const ARGS: RangeInclusive<usize> = 0..=1;
    const INHERITED: conf::Inherited = conf::Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        load.own.of::<StatusBook>().show();
        let Some(word) = from.args.first() else { return Self::plus(false, from, load) };
        match &*word.text {
            b"write=off" => return Self::plus(false, from, load),
            b"write=on" => return Self::plus(true, from, load),
            _ => {}
        }
        let replaces = match load.registry.of::<BlockContext>() {
            BlockContext::Prefix(name) => Some(name.clone()),
            _ => None,
        };
        Ok(Self::Angie { path: Template::compile(word, from, load)?, replaces })
    }
}

impl ApiLine {
    fn plus(writes: bool, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut template = |text| Template::from_bytes(text, &from.name, from, load);
        let request_id = template(b"$request_id")?;
        let who = template(b"client $remote_addr $remote_user")?;
        Ok(Self::Plus { request_id, who, writes: writes.then(|| from.clone()) })
    }
}

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(line) = conf.api.clone() else { return Ok(()) };
    let name = location.name.clone();
    if let ApiLine::Plus { writes: Some(from), .. } = &line {
        location.needs_access_rules(from.clone());
    }
    location.exclusive("api", move |x| match &line {
        ApiLine::Plus { request_id, who, writes } => {
            plus::answer(x, &name, &plus::PlusLine { request_id, who, writes: writes.is_some() })
        }
        ApiLine::Angie { path, replaces } => {
            let mut asked = x.scratch();
            path.render(x, &mut asked);
            if let Some(name) = replaces {
                asked.extend_from_slice(x.request.uri.strip_prefix(&**name).unwrap_or_default());
            }
            let flow = angie::answer(x, &asked);
            x.give_scratch(asked);
            flow
        }
    });
    Ok(())
}
