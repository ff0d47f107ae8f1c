//! `fastcgi_pass`: passes requests to a FastCGI application, such as php-fpm.

#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use conf::{Result, Size, Text};
use observe::Level;
use wire::fastcgi::request::{FastcgiRequest, LengthPairs, TooBig};

use crate::backend::Conf as Family;
use crate::backend::address::PassTo;
use crate::backend::cache;
use crate::backend::protocol::fastcgi;
use crate::backend::protocol::stored::{self, StoredForm};
use crate::exchange::Exchange;
use crate::files::TempPath;
use crate::gateway::params::{Param, Params};
use crate::gateway::{self, Dialect};
use crate::site::LocationBuilder;
pub(crate) use variables::VARIABLES;
use variables::{ScriptNames, SplitPathInfo};

conf::directives! {
    also {
        /// Passes requests on to an application that speaks FastCGI, or to the servers of an
        /// `upstream`. The application is told of a request by `fastcgi_param`. See
        /// docs/fastcgi.md.
        ///
        /// Syntax: ADDRESS
        ///
        /// ```nginx
        /// location ~ \.php$ {
        ///     fastcgi_pass unix:/run/php/php-fpm.sock;
        ///     fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        ///     fastcgi_param QUERY_STRING $query_string;
        ///     fastcgi_param REQUEST_METHOD $request_method;
        ///     fastcgi_param CONTENT_TYPE $content_type;
        ///     fastcgi_param CONTENT_LENGTH $content_length;
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION => target;
    }
    slots {
        /// The application.
        target: Option<PassTo>,
    }

    in MAIN | SERVER | LOCATION;

    /// What `$fastcgi_script_name` gets at its end where it ends with a slash.
    ///
    /// ```nginx
    /// fastcgi_index index.php;
    /// ```
    index: Option<Text>,
    /// Divides the path into `$fastcgi_script_name` and `$fastcgi_path_info`: a regular expression
    /// with one group for each.
    ///
    /// Syntax: REGEX
    ///
    /// ```nginx
    /// location ~ ^.+\.php {
    ///     fastcgi_split_path_info ^(.+?\.php)(.*)$;
    ///     fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
    ///     fastcgi_param PATH_INFO $fastcgi_path_info;
    ///     fastcgi_pass 127.0.0.1:9000;
    /// }
    /// ```
    split_path_info: Option<SplitPathInfo>,
    /// A variable that the application is given. With `if_not_empty` it is left out where its value
    /// is empty. One such line in a block hides all lines of the blocks around it. The request's
    /// fields are variables, too (`HTTP_USER_AGENT`), unless a line says otherwise.
    ///
    /// ```nginx
    /// fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
    /// fastcgi_param HTTPS $https if_not_empty;
    /// fastcgi_param HTTP_PROXY "";
    /// ```
    param: Vec<Param>,
    /// What the application may say to the error log only if its response is invalid: another
    /// server is asked then, where `fastcgi_next_upstream` has `invalid_header`.
    ///
    /// ```nginx
    /// fastcgi_catch_stderr "PHP Fatal error";
    /// fastcgi_next_upstream error timeout invalid_header;
    /// ```
    catch_stderr: Vec<Text>,
    /// Whether the application leaves connections open after a response. They serve other requests
    /// where the `upstream` has `keepalive`.
    ///
    /// ```nginx
    /// fastcgi_keep_conn on;
    /// ```
    keep_conn: bool = "off",
    /// No effect on Linux, as in nginx.
    send_lowat: Size = "0",
    /// The directory of temporary files for responses, as `proxy_temp_path`.
    ///
    /// Syntax: DIRECTORY [LEVEL1 [LEVEL2 [LEVEL3]]]
    ///
    /// ```nginx
    /// fastcgi_temp_path /var/lib/weir/fastcgi 1 2;
    /// ```
    temp_path: TempPath = "fastcgi_temp 1 2",
}

/// FastCGI with the settings of a location.
struct FastcgiDialect {
    keep_conn: bool,
    catch_stderr: Arc<[Box<[u8]>]>,
}

/// Installs the backend of a location that has an application.
pub fn install(
    conf: &Arc<Conf>,
    family: &Arc<Family>,
    caching: &Arc<cache::Conf>,
    location: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    let names = ScriptNames::new(conf.split_path_info.as_ref(), conf.index.as_ref());
    names.into_iter().for_each(|names| location.core.own.add(names));
    let settings = gateway::GatewaySettings {
        family,
        caching,
        tls: None,
        pass: conf.target.as_ref(),
        params: &conf.param,
        temp_path: &conf.temp_path,
    };
    gateway::install(&settings, location, || FastcgiDialect {
        keep_conn: conf.keep_conn,
        catch_stderr: conf.catch_stderr.iter().map(|text| text.0.clone()).collect(),
    })
}

impl Dialect for FastcgiDialect {
    type Request = fastcgi::FastcgiStart;

    const FAMILY: &'static str = "fastcgi_";
    const FORM: &'static StoredForm = &stored::FASTCGI;
    const STREAMS_WITHOUT_LENGTH: bool = true;

    fn write_head(&self, x: &mut Exchange, params: &Params, out: &mut Vec<u8>) -> Option<()> {
        let request = FastcgiRequest::begin(self.keep_conn, out);
        params.write::<LengthPairs>(x, out)?;
        let ended = request.end_params(out);
        if let Err(TooBig(bytes)) = ended {
            x.log(Level::Alert, format_args!("fastcgi request record is too big: {bytes}"));
        }
        ended.ok()
    }

    fn request(&self, to_head: bool) -> fastcgi::FastcgiStart {
        let (keep_conn, catch_stderr) = (self.keep_conn, self.catch_stderr.clone());
        fastcgi::FastcgiStart { to_head, keep_conn, catch_stderr }
    }
}
