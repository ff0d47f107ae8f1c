//! `scgi_pass`: passes requests to an SCGI application.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use wire::cgi::Pairs;
use wire::scgi::{ZeroPairs, end_variables};

use crate::backend::Conf as Family;
use crate::backend::address::PassTo;
use crate::backend::cache;
use crate::backend::protocol::Start;
use crate::backend::protocol::cgi::Cgi;
use crate::backend::protocol::stored::{self, StoredForm};
use crate::decimal;
use crate::exchange::Exchange;
use crate::files::TempPath;
use crate::gateway::params::{self, Param, Params};
use crate::gateway::{self, Dialect};
use crate::site::LocationBuilder;

conf::directives! {
    also {
        /// Passes requests on to an application that speaks SCGI, or to the servers of an
        /// `upstream`. The application is told of a request by `scgi_param`. See docs/fastcgi.md.
        ///
        /// Syntax: ADDRESS
        ///
        /// ```nginx
        /// location /app/ {
        ///     scgi_pass 127.0.0.1:4000;
        ///     scgi_param SCGI 1;
        ///     scgi_param REQUEST_METHOD $request_method;
        ///     scgi_param REQUEST_URI $request_uri;
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION => target;
    }
    slots {
        /// The application.
        target: Option<PassTo>,
    }

    in MAIN | SERVER | LOCATION;

    /// A variable that the application is given, as `fastcgi_param`. `CONTENT_LENGTH` is sent
    /// anyway.
    ///
    /// ```nginx
    /// scgi_param SCGI 1;
    /// scgi_param HTTPS $https if_not_empty;
    /// ```
    param: Vec<Param>,
    /// The directory of temporary files for responses, as `proxy_temp_path`.
    ///
    /// Syntax: DIRECTORY [LEVEL1 [LEVEL2 [LEVEL3]]]
    ///
    /// ```nginx
    /// scgi_temp_path /var/lib/weir/scgi 1 2;
    /// ```
    temp_path: TempPath = "scgi_temp 1 2",
}

/// SCGI with the settings of a location.
struct ScgiDialect;

/// The state of a request while its reply is read.
struct ScgiRequest {
    /// Whether it is a HEAD request.
    to_head: bool,
}

/// Installs the backend of a location that has an application.
pub fn install(
    conf: &Arc<Conf>,
    family: &Arc<Family>,
    caching: &Arc<cache::Conf>,
    location: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    let settings = gateway::GatewaySettings {
        family,
        caching,
        tls: None,
        pass: conf.target.as_ref(),
        params: &conf.param,
        temp_path: &conf.temp_path,
    };
    gateway::install(&settings, location, || ScgiDialect)
}

impl Dialect for ScgiDialect {
    type Request = ScgiRequest;

    const FAMILY: &'static str = "scgi_";
    const FORM: &'static StoredForm = &stored::CGI;

    fn write_head(&self, x: &mut Exchange, params: &Params, out: &mut Vec<u8>) -> Option<()> {
        const LENGTH: &[u8] = b"CONTENT_LENGTH";
        let start = out.len();
        let value = ZeroPairs::open(LENGTH, out);
        decimal::write(x.request.body.length().unwrap_or(0), out);
        params::close::<ZeroPairs>(LENGTH, value, x, out)?;
        params.write::<ZeroPairs>(x, out)?;
        end_variables(start, out);
        Some(())
    }

    fn request(&self, to_head: bool) -> ScgiRequest {
        ScgiRequest { to_head }
    }
}

impl Start for ScgiRequest {
    type Protocol = Cgi;
    const SCHEMA: &'static str = "scgi://";

    fn start(&self) -> Cgi {
        Cgi::new(self.to_head)
    }
}
