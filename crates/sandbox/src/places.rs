//! Where a sandbox is, and what a server assumes of its places.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The directives that name the folders of temporary files. Each has a default that is used, and
/// whose owner is changed, even by a server that never writes there.
pub const TEMPORARY_FOLDERS: [&str; 5] = [
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
];

/// Where a sandbox is, and what the server that it is for takes for granted.
#[derive(Clone, Copy, Debug)]
pub struct SandboxPlaces<'a> {
    /// The sandbox's folder. Nothing but this folder itself must be there.
    pub folder: &'a Path,
    /// The prefix that the server has; `None`: its built-in one, which is not known here.
    pub prefix: Option<&'a Path>,
    /// The port of a server of `http {}` without `listen`: 80, or 8000 for ordinary users.
    pub default_port: u16,
    /// Whether the server logs requests where the configuration does not say: nginx does, and
    /// Weir where root starts it.
    pub logs_by_default: bool,
    /// Whether `$server_port` and redirects are to have the ports of the real server, which takes a
    /// server that knows `listen ... server_port=`.
    pub keeps_ports: bool,
    /// Which of [`TEMPORARY_FOLDERS`] the server knows.
    pub temporary_folders: &'a [&'a str],
}

/// A path within a folder, as bytes.
pub(crate) fn within(folder: &Path, name: &[u8]) -> Vec<u8> {
    [folder.as_os_str().as_bytes(), b"/", name].concat()
}
