//! Hints for a file that is inaccessible or an address that is in use: the line below nginx's
//! message.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use net::Address;
use net::holder::{self, AddressHolder, Holder};
use observe::LogOpenError;

use crate::config_origin::ConfigOrigin;
use crate::defaults::Defaults;
use crate::name::name;

/// About a log file.
pub fn log(failed: &LogOpenError, defaults: &Defaults) -> Option<String> {
    let is = |default: &Option<PathBuf>| default.as_ref() == Some(&failed.path);
    if failed.named.is_some() {
        return about(&failed.path, &failed.error);
    }
    if is(&defaults.error_log) {
        return Some("use \"error_log FILE;\" or -e FILE to choose another error log".into());
    }
    let instead = "use \"access_log FILE;\" to choose another, or \"access_log off;\"";
    is(&defaults.access_log).then(|| format!("this is the default access log; {instead}"))
}

/// About a directory for temporary files.
pub const TEMP: &str = "use client_body_temp_path and proxy_temp_path to choose other directories";

/// About the pid file.
pub fn pid(path: &Path, error: &io::Error) -> Option<String> {
    let instead = "use \"pid FILE;\" in the configuration, or -g \"pid FILE;\", to choose another";
    let why = about(path, error);
    Some(why.map_or(instead.into(), |why| format!("{why}; {instead}")))
}

/// About a pid file that `-s` does not find.
pub fn no_pid(error: &io::Error) -> Option<String> {
    let missing = error.kind() == ErrorKind::NotFound && !name().is_nginx();
    missing
        .then(|| "no server is running with this configuration; use -c to name another one".into())
}

/// About a configuration that cannot be opened.
pub fn conf(origin: &ConfigOrigin) -> Option<String> {
    if name().is_nginx() {
        return None;
    }
    let path = conf::bytes_path(&origin.conf);
    if path == Path::new(name().conf) {
        return Some("use -c FILE to name the configuration".into());
    }
    // The path at which nginx would have looked.
    let below = conf::bytes_path(&origin.prefix).join(path.file_name()?);
    let below = Some(below).filter(|below| below.is_file())?;
    Some(format!("-c is relative to the current directory; did you mean {}?", below.display()))
}

/// Prints which process holds an address that is in use, if it can be found.
pub fn print_holder(address: &Address) {
    let hint = match holder::of(address) {
        AddressHolder::By(Holder { process, name }) => {
            format!("process {process} ({name}) listens there")
        }
        AddressHolder::BySomebody => match address.port() {
            Some(port) => {
                format!("run ss -ltnp 'sport = :{port}' as root to see which process listens there")
            }
            None => {
                format!("run ss -lxp 'src = {address}' as root to see which process listens there")
            }
        },
        AddressHolder::ByNobody => {
            "no process listens there; the socket file is a leftover, remove it".into()
        }
    };
    observe::tell(format_args!("      {address}: {hint}\n"));
}

fn about(path: &Path, error: &io::Error) -> Option<String> {
    let directory = path.parent()?.display();
    match error.kind() {
        ErrorKind::NotFound => Some(format!("there is no directory \"{directory}\"")),
        ErrorKind::PermissionDenied => {
            let user = net::user();
            Some(format!("user {user} cannot write to it or to \"{directory}\""))
        }
        _ => None,
    }
}
