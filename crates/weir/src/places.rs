//! Paths of files: the configuration, and files that it does not name.
//!
//! | | called `nginx` | `weir`, as root | `weir`, as another user |
//! |---|---|---|---|
//! | `-c`, `-p`, `-e` are relative to | the prefix | the current directory | the same |
//! | prefix without `-p` | Debian's | the directory of the file that `-c` names | the same |
//! | pid file, logs, temporary files | Debian's | `/run`, `/var/log`, `/var/lib` | the user's own |
//!
//! All paths are determined once, when the program starts, as absolute names. Reloads and worker
//! processes receive them and use neither the current directory nor the environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::command_line::CommandLine;
use crate::defaults::Defaults;
use crate::name::{self, ProgramName};

/// The files that a command line selects for a user.
#[derive(Debug)]
pub struct UserFiles {
    pub conf: PathBuf,
    /// Roots and logs are relative to this.
    pub prefix: PathBuf,
    /// Default paths; the error log may be from the command line.
    pub defaults: Defaults,
}

/// The user who starts the program, and the user's directories.
#[derive(Debug)]
pub struct StartingUser {
    /// Whether it is root.
    pub privileged: bool,
    /// The current directory.
    pub directory: PathBuf,
    /// The user's own directory for files that exist as long as a process.
    pub runtime: PathBuf,
    /// The user's own directory for temporary files.
    pub temp: PathBuf,
}

impl UserFiles {
    /// The files that `command` selects for the program called `name`.
    pub fn of(command: &CommandLine, name: &ProgramName, user: &StartingUser) -> Self {
        if name.is_nginx() { Self::nginx(command, name) } else { Self::weir(command, name, user) }
    }

    /// In nginx, a relative name follows the prefix.
    fn nginx(command: &CommandLine, name: &ProgramName) -> Self {
        let prefix = given(&command.prefix).unwrap_or(Path::new(name.prefix));
        let mut defaults = name.defaults();
        if command.prefix.is_some() {
            // The prefix is prepended when they are used.
            defaults.client_body_temp = "client_body_temp".into();
            defaults.proxy_temp = "proxy_temp".into();
        }
        if let Some(log) = given(&command.error_log) {
            defaults.error_log = is_named(log).then(|| prefix.join(log));
        }
        let conf = prefix.join(given(&command.conf).unwrap_or(Path::new(name.conf)));
        Self { conf, prefix: prefix.to_owned(), defaults }
    }

    fn weir(command: &CommandLine, name: &ProgramName, user: &StartingUser) -> Self {
        let absolute = |path: &Path| absolute(&user.directory, path);
        let conf = absolute(given(&command.conf).unwrap_or(Path::new(name.conf)));
        let prefix = match given(&command.prefix) {
            Some(prefix) => absolute(prefix),
            None => prefix_of(&conf),
        };
        let mut defaults = match user.privileged {
            true => name.defaults(),
            false => user.defaults(&conf),
        };
        if let Some(log) = given(&command.error_log) {
            defaults.error_log = is_named(log).then(|| absolute(log));
        }
        Self { conf, prefix, defaults }
    }
}

/// The facts that determine the user's own directories.
const VARIABLES: [&str; 4] = ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"];

/// The variables that another binary needs to find the same directories; nginx keeps none.
pub fn variables() -> impl Iterator<Item = (&'static str, OsString)> {
    let kept = VARIABLES.into_iter().filter(|_| !name::name().is_nginx());
    kept.filter_map(|name| Some((name, std::env::var_os(name)?)))
}

impl StartingUser {
    pub fn current() -> Self {
        let id = net::user();
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let is_own = |path: &PathBuf| {
            path.is_absolute() && net::file::owner(path).is_ok_and(|owner| owner == id)
        };
        let own = |candidates: [Option<PathBuf>; 2], below: [&str; 2]| {
            let own = candidates.into_iter().zip(below);
            own.filter_map(|(path, below)| Some((path?, below)))
                .find(|(path, _)| is_own(path))
                .map(|(path, below)| path.join(below))
        };
        let shared = |temp: &Path| temp.join(format!("weir-{id}"));
        let system = PathBuf::from(format!("/run/user/{id}"));
        let runtime = own([variable("XDG_RUNTIME_DIR"), Some(system)], ["weir", "weir"]);
        let cache = own([variable("XDG_CACHE_HOME"), variable("HOME")], ["weir", ".cache/weir"]);
        Self {
            privileged: net::is_privileged(),
            directory: std::env::current_dir().unwrap_or_default(),
            // A process that looks for a running server may have another TMPDIR.
            runtime: runtime.unwrap_or_else(|| shared(Path::new("/tmp"))),
            temp: cache.unwrap_or_else(|| shared(&std::env::temp_dir())),
        }
    }

    /// Defaults for a user who cannot write to the system's directories. A server is found by its
    /// configuration, because a user may run several.
    fn defaults(&self, conf: &Path) -> Defaults {
        let file = conf.file_name().unwrap_or_default();
        // Symbolic links in the path do not make it another file.
        let directory = conf.parent().and_then(|parent| parent.canonicalize().ok());
        let number = fnv(directory.map_or(conf.into(), |own| own.join(file)).as_os_str());
        let mut pid = file.to_owned();
        pid.push(format!("-{number:08x}.pid"));
        Defaults {
            error_log: None,
            access_log: None,
            pid: self.runtime.join(pid),
            client_body_temp: self.temp.join("client_body_temp"),
            proxy_temp: self.temp.join("proxy_temp"),
        }
    }
}

/// The prefix of a configuration: that of its installation, or its directory. All files in the
/// directory of nginx's own configuration belong to nginx's installation.
fn prefix_of(conf: &Path) -> PathBuf {
    let beside =
        |name: &ProgramName| name.is_nginx() && conf.parent() == Path::new(name.conf).parent();
    let installed = name::ALL.iter().find(|name| Path::new(name.conf) == conf || beside(name));
    let own = || conf.parent().unwrap_or(Path::new("/")).to_owned();
    installed.map_or_else(own, |name| name.prefix.into())
}

/// A path made absolute, without `.` in the middle.
pub fn absolute(directory: &Path, path: &Path) -> PathBuf {
    directory.join(path).components().collect()
}

/// A directory with its final slash, as messages and names in the configuration need it.
pub fn with_slash(directory: PathBuf) -> Box<[u8]> {
    let mut bytes = directory.into_os_string().into_vec();
    if !bytes.is_empty() && !bytes.ends_with(b"/") {
        bytes.push(b'/');
    }
    bytes.into()
}

pub fn bytes(path: &Path) -> Box<[u8]> {
    path.as_os_str().as_bytes().into()
}

fn given(value: &Option<OsString>) -> Option<&Path> {
    value.as_deref().map(Path::new)
}

/// Whether an error log is a file.
fn is_named(log: &Path) -> bool {
    !matches!(log.as_os_str().as_bytes(), b"" | b"stderr")
}

/// FNV-1a, which is short and the same in every version.
fn fnv(text: &OsStr) -> u32 {
    text.as_bytes()
        .iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(name: &ProgramName, privileged: bool, words: &str) -> UserFiles {
        let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
        let command = CommandLine::parse(&words).unwrap();
        let user = StartingUser {
            privileged,
            directory: "/project".into(),
            runtime: "/run/user/7/weir".into(),
            temp: "/home/me/.cache/weir".into(),
        };
        UserFiles::of(&command, name, &user)
    }

    fn weir(words: &str) -> (PathBuf, PathBuf) {
        let UserFiles { conf, prefix, .. } = places(&name::WEIR, false, words);
        (conf, prefix)
    }

    #[test]
    fn weir_takes_names_from_the_current_directory() {
        let cases = [
            ("", "/etc/weir/nginx.conf", "/var/lib/weir/"),
            ("-c my.conf", "/project/my.conf", "/project"),
            ("-c ./a/./my.conf", "/project/a/my.conf", "/project/a"),
            ("-c /srv/my.conf", "/srv/my.conf", "/srv"),
            ("-c my.conf -p .", "/project/my.conf", "/project"),
            ("-c my.conf -p sites", "/project/my.conf", "/project/sites"),
            ("-p /srv", "/etc/weir/nginx.conf", "/srv"),
            ("-c /etc/weir/nginx.conf", "/etc/weir/nginx.conf", "/var/lib/weir/"),
            ("-c /etc/nginx/nginx.conf", "/etc/nginx/nginx.conf", "/usr/share/nginx/"),
            ("-c /etc/nginx/new.conf", "/etc/nginx/new.conf", "/usr/share/nginx/"),
            ("-c /etc/nginx/a/new.conf", "/etc/nginx/a/new.conf", "/etc/nginx/a"),
            ("-c /etc/weir/new.conf", "/etc/weir/new.conf", "/etc/weir"),
        ];
        for (words, conf, prefix) in cases {
            assert_eq!(weir(words), (conf.into(), prefix.into()), "{words}");
        }
    }

    #[test]
    fn nginx_takes_names_from_the_prefix() {
        let cases = [
            ("", "/etc/nginx/nginx.conf", "/usr/share/nginx/"),
            ("-c my.conf", "/usr/share/nginx/my.conf", "/usr/share/nginx/"),
            ("-p /srv -c my.conf", "/srv/my.conf", "/srv"),
            ("-p sites -c my.conf", "sites/my.conf", "sites"),
        ];
        for (words, conf, prefix) in cases {
            let places = places(&name::NGINX, false, words);
            assert_eq!((&*places.conf, &*places.prefix), (Path::new(conf), Path::new(prefix)));
        }
    }

    #[test]
    fn an_ordinary_user_needs_no_system_directory() {
        let Defaults { error_log, access_log, pid, client_body_temp, proxy_temp } =
            places(&name::WEIR, false, "-c my.conf").defaults;
        assert_eq!((error_log, access_log), (None, None));
        assert!(pid.starts_with("/run/user/7/weir"), "{pid:?}");
        assert_eq!(client_body_temp, Path::new("/home/me/.cache/weir/client_body_temp"));
        assert_eq!(proxy_temp, Path::new("/home/me/.cache/weir/proxy_temp"));
    }

    #[test]
    fn a_server_is_found_by_its_configuration() {
        let pid = |words| places(&name::WEIR, false, words).defaults.pid;
        assert_eq!(pid("-c my.conf"), pid("-c ./my.conf -t"));
        assert_eq!(pid("-c my.conf"), pid("-c /project/my.conf -p /x"));
        assert_ne!(pid("-c my.conf"), pid("-c other.conf"));
        assert_ne!(pid("-c my.conf"), pid("-c a/my.conf"));
    }

    #[test]
    fn the_error_log_may_be_named_on_the_command_line() {
        let log = |name, words| places(name, true, words).defaults.error_log;
        assert_eq!(log(&name::WEIR, ""), Some("/var/log/weir/error.log".into()));
        assert_eq!(log(&name::WEIR, "-e e.log -p /x"), Some("/project/e.log".into()));
        assert_eq!(log(&name::WEIR, "-e stderr"), None);
        assert_eq!(log(&name::NGINX, "-e e.log -p /x"), Some("/x/e.log".into()));
        assert_eq!(log(&name::NGINX, "-e stderr"), None);
    }

    #[test]
    fn temporary_files_are_in_debians_directories_or_below_the_named_prefix() {
        let temp = |words| places(&name::NGINX, true, words).defaults.client_body_temp;
        assert_eq!(temp(""), Path::new("/var/lib/nginx/body"));
        assert_eq!(temp("-p /srv/"), Path::new("client_body_temp"));
    }
}
