//! The server that a configuration is for, identified by its `-V`, and its defaults.

use std::path::{Path, PathBuf};

use sandbox::{EditableTree, TEMPORARY_FOLDERS};

/// A server program; defaults differ between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunedServer {
    Weir,
    /// nginx, with its version.
    Nginx(u32, u32, u32),
}

/// From this version on, nginx keeps connections to backends by default.
const KEEPS_BACKENDS_SINCE: (u32, u32, u32) = (1, 29, 7);

impl TunedServer {
    /// Parses the output of `-v` or `-V`, such as `nginx version: nginx/1.22.1`. An unknown version
    /// counts as old: that adds lines which a newer one does not need.
    pub fn of(said: &str) -> Self {
        let first = said.lines().next().unwrap_or_default();
        if !first.contains("nginx") && first.to_ascii_lowercase().contains("weir") {
            return Self::Weir;
        }
        let version = first.split('/').nth(1).unwrap_or_default();
        let end = version.find(|character: char| !character.is_ascii_digit() && character != '.');
        let version = &version[..end.unwrap_or(version.len())];
        let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self::Nginx(next(), next(), next())
    }

    /// Whether it has the option `-e`.
    pub(super) fn has_error_log_option(self) -> bool {
        match self {
            Self::Weir => true,
            Self::Nginx(major, minor, patch) => (major, minor, patch) >= (1, 19, 5),
        }
    }

    /// Whether connections to the servers of an `upstream` block are kept by default.
    pub fn keeps_backends(self) -> bool {
        match self {
            Self::Weir => true,
            Self::Nginx(major, minor, patch) => (major, minor, patch) >= KEEPS_BACKENDS_SINCE,
        }
    }

    /// The real server's prefix, which its copy must have as well: the value of `-p`, or the
    /// default. `said` is the output of `-V`; `None` if that does not contain the prefix.
    pub fn prefix(self, given: Option<&Path>, tree: &EditableTree, said: &str) -> Option<PathBuf> {
        if let Some(given) = given {
            return std::path::absolute(given).ok();
        }
        match self {
            Self::Weir if tree.folder() == Path::new("/etc/nginx") => {
                Some("/usr/share/nginx".into())
            }
            Self::Weir if tree.file == Path::new("/etc/weir/nginx.conf") => {
                Some("/var/lib/weir".into())
            }
            Self::Weir => Some(tree.folder().to_owned()),
            Self::Nginx(..) => said
                .split_whitespace()
                .find_map(|word| word.strip_prefix("--prefix="))
                .map(Into::into),
        }
    }
}

/// The directives of [`TEMPORARY_FOLDERS`] that a server supports, by its output of `-V`: it may be
/// built without some modules.
pub fn temporary_folders(said: &str) -> Vec<&'static str> {
    let is_left_out = |folder: &str| {
        let module = folder.strip_suffix("_temp_path").unwrap_or(folder);
        said.split_whitespace().any(|word| word == format!("--without-http_{module}_module"))
    };
    TEMPORARY_FOLDERS.into_iter().filter(|folder| !is_left_out(folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn versions_are_parsed() {
        for (said, server) in [
            ("nginx version: nginx/1.22.1", TunedServer::Nginx(1, 22, 1)),
            ("nginx version: nginx/1.29.7 (Ubuntu)\nbuilt", TunedServer::Nginx(1, 29, 7)),
            ("nginx version: openresty/1.25.3.1", TunedServer::Nginx(1, 25, 3)),
            ("weir 0.1.0", TunedServer::Weir),
            ("weir version: weir/0.1.0\nnginx", TunedServer::Weir),
            ("", TunedServer::Nginx(0, 0, 0)),
        ] {
            assert_eq!(TunedServer::of(said), server, "{said}");
        }
        assert!(TunedServer::Weir.keeps_backends());
        assert!(TunedServer::Nginx(1, 31, 0).keeps_backends());
        assert!(!TunedServer::Nginx(1, 29, 6).keeps_backends());
    }

    #[test]
    fn prefixes_are_those_of_the_real_server() {
        let (weir, nginx) = (TunedServer::Weir, TunedServer::Nginx(1, 22, 1));
        let debian = tree("events {}");
        let mut own = debian.clone();
        own.file = "/srv/a/my.conf".into();
        let said = "nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/opt/n --x";
        let prefix = |server: TunedServer, given: Option<&str>, tree| {
            server.prefix(given.map(Path::new), tree, said).unwrap()
        };
        assert_eq!(prefix(weir, None, &debian), Path::new("/usr/share/nginx"));
        assert_eq!(prefix(weir, None, &own), Path::new("/srv/a"));
        assert_eq!(prefix(nginx, None, &own), Path::new("/opt/n"));
        assert_eq!(prefix(nginx, Some("/p"), &own), Path::new("/p"));
        assert_eq!(nginx.prefix(None, &own, "nginx version: nginx/1.22.1"), None);
    }

    #[test]
    fn modules_that_are_left_out_have_no_folders() {
        let said = "configure arguments: --without-http_uwsgi_module --without-http_scgi_module";
        assert_eq!(
            temporary_folders(said),
            ["client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path"]
        );
        assert_eq!(temporary_folders(""), TEMPORARY_FOLDERS);
    }
}
