//! The name that the program is called by, and the default paths that belong to it.
//!
//! Called through a link named `nginx`, it identifies itself as the nginx version whose behaviour
//! it has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::defaults::Defaults;

/// The nginx version whose behaviour is matched.
pub const NGINX_VERSION: &str = "1.31.3";

/// A name with the defaults of its installation.
pub struct ProgramName {
    /// `weir` or `nginx`.
    pub word: &'static str,
    /// The version that goes with the name.
    pub version: &'static str,
    /// Relative logs and roots go here.
    pub prefix: &'static str,
    /// The default of `-c`.
    pub conf: &'static str,
    /// The default error log.
    pub error_log: &'static str,
    /// The default access log.
    pub access_log: &'static str,
    /// The default of `pid`.
    pub pid: &'static str,
    /// The default of `client_body_temp_path`.
    pub client_body_temp: &'static str,
    /// The default of `proxy_temp_path`.
    pub proxy_temp: &'static str,
    /// Whether it runs without a configuration file.
    pub embedded_default: bool,
}

/// The program under its own name.
pub static WEIR: ProgramName = ProgramName {
    word: "weir",
    version: env!("CARGO_PKG_VERSION"),
    prefix: "/var/lib/weir/",
    conf: "/etc/weir/nginx.conf",
    error_log: "/var/log/weir/error.log",
    access_log: "/var/log/weir/access.log",
    pid: "/run/weir/weir.pid",
    client_body_temp: "/var/lib/weir/client_body_temp",
    proxy_temp: "/var/lib/weir/proxy_temp",
    embedded_default: true,
};

/// The program called `nginx`, with the paths of Debian's package.
pub static NGINX: ProgramName = ProgramName {
    word: "nginx",
    version: NGINX_VERSION,
    prefix: "/usr/share/nginx/",
    conf: "/etc/nginx/nginx.conf",
    error_log: "/var/log/nginx/error.log",
    access_log: "/var/log/nginx/access.log",
    pid: "/run/nginx.pid",
    client_body_temp: "/var/lib/nginx/body",
    proxy_temp: "/var/lib/nginx/proxy",
    embedded_default: false,
};

pub static ALL: [&ProgramName; 2] = [&WEIR, &NGINX];

static NAME: OnceLock<&ProgramName> = OnceLock::new();

/// Determines the name by which the program was called, for every crate.
pub fn settle(called: Option<&OsStr>) -> &'static ProgramName {
    let file = called.map_or(&b""[..], |called| called.as_bytes()).rsplit(|b| *b == b'/').next();
    let chosen = if file == Some(b"nginx") { &NGINX } else { &WEIR };
    let name = NAME.get_or_init(|| chosen);
    http::identity::settle(name.word, name.version);
    observe::settle(observe::System {
        name: name.word,
        hostname: net::system::hostname(),
        utc_offset_minutes: net::system::utc_offset_minutes,
        thread_id: net::system::thread_id,
    });
    name
}

impl ProgramName {
    pub fn is_nginx(&self) -> bool {
        self.word == NGINX.word
    }

    /// The files of its installation.
    pub fn defaults(&self) -> Defaults {
        Defaults {
            error_log: Some(self.error_log.into()),
            access_log: Some(self.access_log.into()),
            pid: self.pid.into(),
            client_body_temp: self.client_body_temp.into(),
            proxy_temp: self.proxy_temp.into(),
        }
    }
}

/// The name of the program, after [`settle`].
pub fn name() -> &'static ProgramName {
    NAME.get().copied().unwrap_or(&WEIR)
}
