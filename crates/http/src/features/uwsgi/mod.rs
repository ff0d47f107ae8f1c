//! `uwsgi_pass`: passes requests to a uwsgi application.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Bounded, Directive, Inherited, Load, Result, Text, Value};
use observe::Level;
use wire::reply::ReplyName;
use wire::uwsgi::{SizedPairs, TooLarge, UwsgiRequest};

use crate::backend::Conf as Family;
use crate::backend::address::{AddressSchemes, PassTo};
use crate::backend::cache;
use crate::backend::protocol::Start;
use crate::backend::protocol::cgi::Cgi;
use crate::backend::protocol::stored::{self, StoredForm};
use crate::exchange::Exchange;
use crate::features::backend_tls;
use crate::files::TempPath;
use crate::gateway::params::{Param, Params};
use crate::gateway::{self, Dialect};
use crate::site::LocationBuilder;

conf::directives! {
    also {
        /// Passes requests on to an application that speaks uwsgi, or to the servers of an
        /// `upstream`. The application is told of a request by `uwsgi_param`. See docs/fastcgi.md.
        ///
        /// `suwsgi://` is uwsgi over TLS.
        ///
        /// Syntax: [uwsgi://]ADDRESS
        /// Syntax: suwsgi://ADDRESS
        ///
        /// ```nginx
        /// location / {
        ///     uwsgi_pass unix:/run/app.sock;
        ///     uwsgi_param REQUEST_METHOD $request_method;
        ///     uwsgi_param REQUEST_URI $request_uri;
        ///     uwsgi_param PATH_INFO $document_uri;
        ///     uwsgi_param QUERY_STRING $query_string;
        ///     uwsgi_param CONTENT_TYPE $content_type;
        ///     uwsgi_param CONTENT_LENGTH $content_length;
        ///     uwsgi_param SERVER_PROTOCOL $server_protocol;
        ///     uwsgi_param SERVER_NAME $server_name;
        ///     uwsgi_param SERVER_PORT $server_port;
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION => target;
    }
    slots {
        /// The application.
        target: Option<UwsgiPass>,
    }

    in MAIN | SERVER | LOCATION;

    /// The first byte of requests, which tells the application's server what kind they are of.
    ///
    /// ```nginx
    /// uwsgi_modifier1 5;
    /// ```
    modifier1: Bounded<0, 255> = "0",
    /// The fourth byte of requests.
    modifier2: Bounded<0, 255> = "0",
    /// A variable that the application is given, as `fastcgi_param`.
    ///
    /// ```nginx
    /// uwsgi_param REQUEST_URI $request_uri;
    /// uwsgi_param HTTPS $https if_not_empty;
    /// ```
    param: Vec<Param>,
    /// A text that is sent between the variables and the body.
    string: Option<Text>,
    /// The directory of temporary files for responses, as `proxy_temp_path`.
    ///
    /// Syntax: DIRECTORY [LEVEL1 [LEVEL2 [LEVEL3]]]
    ///
    /// ```nginx
    /// uwsgi_temp_path /var/lib/weir/uwsgi 1 2;
    /// ```
    temp_path: TempPath = "uwsgi_temp 1 2",
}

/// An address, perhaps after `uwsgi://` or `suwsgi://`.
#[derive(Clone, Debug)]
pub struct UwsgiPass(PassTo);

const SCHEMES: AddressSchemes = AddressSchemes { plain: "uwsgi://", tls: "suwsgi://" };

impl Value for UwsgiPass {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        PassTo::of(from.arg(0), SCHEMES, from, load).map(Self)
    }
}

/// uwsgi with the settings of a location.
struct UwsgiDialect {
    modifiers: (u8, u8),
    string: Box<[u8]>,
}

/// The state of a request while its reply is read.
struct StartedUwsgi {
    /// Whether it is a HEAD request.
    to_head: bool,
}

/// Installs the backend of a location that has an application.
pub fn install(
    conf: &Arc<Conf>,
    family: &Arc<Family>,
    tls: &Arc<backend_tls::Conf>,
    caching: &Arc<cache::Conf>,
    location: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    let pass = conf.target.as_ref().map(|pass| &pass.0);
    let settings = gateway::GatewaySettings {
        family,
        caching,
        tls: match pass.is_none_or(PassTo::is_never_tls) {
            true => None,
            false => Some(backend_tls::compile(tls, "uwsgi_ssl_", location)?),
        },
        pass,
        params: &conf.param,
        temp_path: &conf.temp_path,
    };
    gateway::install(&settings, location, || UwsgiDialect {
        modifiers: (conf.modifier1.0 as u8, conf.modifier2.0 as u8),
        string: conf.string.as_ref().map(|text| text.0.clone()).unwrap_or_default(),
    })
}

impl Dialect for UwsgiDialect {
    type Request = StartedUwsgi;

    const FAMILY: &'static str = "uwsgi_";
    const FORM: &'static StoredForm = &stored::CGI;
    const SCHEMES: AddressSchemes = SCHEMES;
    /// Unlike the other protocols, it passes `Status` on.
    const HIDDEN: &'static [ReplyName] = &[
        ReplyName::XAccelExpires,
        ReplyName::XAccelRedirect,
        ReplyName::XAccelLimitRate,
        ReplyName::XAccelBuffering,
        ReplyName::XAccelCharset,
    ];

    fn write_head(&self, x: &mut Exchange, params: &Params, out: &mut Vec<u8>) -> Option<()> {
        let request = UwsgiRequest::begin(out);
        params.write::<SizedPairs>(x, out)?;
        let ended = request.end_variables(self.modifiers, out);
        if let Err(TooLarge(bytes)) = ended {
            x.log(Level::Alert, format_args!("uwsgi request is too big: {bytes}"));
        }
        out.extend_from_slice(&self.string);
        ended.ok()
    }

    fn request(&self, to_head: bool) -> StartedUwsgi {
        StartedUwsgi { to_head }
    }
}

impl Start for StartedUwsgi {
    type Protocol = Cgi;
    const SCHEMA: &'static str = SCHEMES.plain;
    const SECURE_SCHEMA: &'static str = SCHEMES.tls;

    fn start(&self) -> Cgi {
        Cgi::new(self.to_head)
    }
}
