//! The folder of a sandbox, and the built-in settings of its server.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The directives that name the folders of temporary files. Each has a default that a server uses,
/// and whose owner it changes, even if it never writes there.
pub const TEMPORARY_FOLDERS: [&str; 5] = [
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
];

/// The folder of a sandbox, and the built-in settings of its server.
#[derive(Clone, Copy, Debug)]
pub struct SandboxPlaces<'a> {
    /// The sandbox's folder, which must be empty.
    pub folder: &'a Path,
    /// The server's prefix; `None`: its built-in one, which is not known here.
    pub prefix: Option<&'a Path>,
    /// The port of a server of `http {}` without `listen`: 80, or 8000 for ordinary users.
    pub default_port: u16,
    /// Whether the server logs requests without an `access_log`: nginx does, and Weir if root
    /// starts it.
    pub logs_by_default: bool,
    /// Whether `$server_port` and redirects use the ports of the real server, which requires a
    /// server with `listen ... server_port=`.
    pub keeps_ports: bool,
    /// The directives of [`TEMPORARY_FOLDERS`] that the server knows.
    pub temporary_folders: &'a [&'a str],
}

/// A path within a folder, as bytes.
pub(crate) fn within(folder: &Path, name: &[u8]) -> Vec<u8> {
    [folder.as_os_str().as_bytes(), b"/", name].concat()
}
