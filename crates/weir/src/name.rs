//! The name the program is called by, and the places that go with it.
//!
//! Called through a link named `nginx` it answers as nginx of the version whose behaviour it has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// nginx's version as far as behaviour goes.
pub const NGINX_VERSION: &str = "1.31.3";

/// A name with the defaults of its installation.
pub struct Name {
    /// `weir` or `nginx`.
    pub word: &'static str,
    /// The version that goes with the name.
    pub version: &'static str,
    /// Relative logs, roots and temporary directories go here.
    pub prefix: &'static str,
    /// The configuration where `-c` names none.
    pub conf: &'static str,
    /// The error log where nothing names one.
    pub error_log: &'static str,
    /// The access log where nothing names one.
    access_log: &'static str,
    /// The file with the master's number where `pid` names none.
    pub pid: &'static str,
    /// Whether it can do without a configuration file.
    pub embedded_default: bool,
}

static WEIR: Name = Name {
    word: "weir",
    version: env!("CARGO_PKG_VERSION"),
    prefix: "/var/lib/weir/",
    conf: "/etc/weir/nginx.conf",
    error_log: "/var/log/weir/error.log",
    access_log: "/var/log/weir/access.log",
    pid: "/run/weir.pid",
    embedded_default: true,
};

static NGINX: Name = Name {
    word: "nginx",
    version: NGINX_VERSION,
    prefix: "/usr/share/nginx/",
    conf: "/etc/nginx/nginx.conf",
    error_log: "/var/log/nginx/error.log",
    access_log: "/var/log/nginx/access.log",
    pid: "/run/nginx.pid",
    embedded_default: false,
};

static NAME: OnceLock<&Name> = OnceLock::new();

/// Settles the name by what the program was called, for every crate.
pub fn settle(called: Option<&OsStr>) -> &'static Name {
    let file = called.map_or(&b""[..], |called| called.as_bytes()).rsplit(|b| *b == b'/').next();
    let chosen = if file == Some(b"nginx") { &NGINX } else { &WEIR };
    let name = NAME.get_or_init(|| chosen);
    http::identity::settle(name.word, name.version, name.access_log);
    observe::settle(observe::System {
        name: name.word,
        hostname: net::system::hostname(),
        utc_offset_minutes: net::system::utc_offset_minutes,
        thread_id: net::system::thread_id,
    });
    name
}

impl Name {
    /// Makes the installation's directory that holds `path`, if it is one and missing. What fails
    /// is found out by whoever needs it.
    pub fn make_home_of(&self, path: &Path) {
        let logs = Path::new(self.error_log).parent();
        let homes = [Some(Path::new(self.prefix)), logs];
        if let Some(home) = homes.into_iter().flatten().find(|home| path.parent() == Some(home)) {
            let _ = std::fs::create_dir_all(home);
        }
    }
}

/// The settled name.
pub fn name() -> &'static Name {
    NAME.get().copied().unwrap_or(&WEIR)
}
