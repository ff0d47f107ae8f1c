//! Default paths.

use std::path::{Path, PathBuf};

/// Default paths of files that a configuration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The error log; `None` for standard error.
    pub error_log: Option<PathBuf>,
    /// The access log; `None` for no log.
    pub access_log: Option<PathBuf>,
    pub pid: PathBuf,
    /// The directory of request bodies that do not fit in memory.
    pub client_body_temp: PathBuf,
    /// The directory of replies that do not fit in memory.
    pub proxy_temp: PathBuf,
}

impl Defaults {
    /// The paths that crate `http` needs.
    pub fn for_http(&self) -> http::Places {
        let Self { access_log, client_body_temp, proxy_temp, .. } = self.clone();
        http::Places { access_log, client_body_temp, proxy_temp }
    }

    /// The directories that the program creates for itself.
    pub fn homes(&self) -> impl Iterator<Item = &Path> {
        let Self { error_log, access_log, pid, client_body_temp, proxy_temp } = self;
        let logs = [error_log, access_log].into_iter().flatten();
        let files = logs.chain([pid, client_body_temp, proxy_temp]);
        files.filter_map(|file| file.parent())
    }

    /// Whether the program creates the directory of `path`.
    pub fn is_at_home(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.homes().any(|home| home == parent))
    }
}
