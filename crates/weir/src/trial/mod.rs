//! `weir trial`: runs a copy of a configuration beside the real server.
//!
//! The copy is a sandbox (crate `sandbox`) on loopback addresses with moved ports, and this process
//! serves it like any configuration. The original is checked first, so that messages name its
//! lines.

mod arguments;
mod compare;
mod folder;
mod greeting;
mod ports;
mod readable;

use std::ffi::OsString;

use conf::Disk;
use sandbox::{EditableTree, Sandbox, SandboxPlaces, TEMPORARY_FOLDERS};

use crate::arguments::Arguments;
use crate::config_origin::ConfigOrigin;
use crate::defaults::Defaults;
use crate::load;
use crate::messages::Reported;
use crate::messages::complain;
use crate::places;
use crate::shared_limits::SharedLimits;
use crate::start::{self, ServerStart};
use arguments::TrialArguments;
use folder::TrialFolder;

pub const HELP: &str = "Usage: weir trial [OPTIONS]

Runs a copy of a configuration beside the server that runs it, for example
nginx, and prints commands that compare the two. The copy listens on loopback
addresses only, on ports moved by an offset: 80 is 8080, 443 is 8443. It has its
own logs, pid file, Unix sockets and temporary files, in a folder of its own. It
runs until Ctrl-C. Backends receive its requests.

As root, workers run as the user that the configuration names. Another user must
be able to read the configuration with its certificates and keys.

Options:
  -c FILE            set the configuration (default: /etc/nginx/nginx.conf)
  -p PREFIX          set the directory that roots are relative to, as for weir
  --offset NUMBER    set what is added to each port (default: 8000)
  --keep             keep the folder with the logs at the end
  --lenient          start without directives that this version does not support
  -h, --help         print this help

Exit code: 0 if it was ended; 1 if it did not start.
";

/// The port of a server without `listen`, because the real server runs as root.
const DEFAULT_PORT: u16 = 80;

/// Runs a trial with these arguments, until it is ended.
pub fn run(words: &[OsString]) -> Result<(), Reported> {
    let arguments = TrialArguments::parse(words)?;
    let origin = arguments.origin();
    let tree = read(&origin)?;
    let failed = |why: String| complain(format_args!("trial: {why}"));
    let addresses = sandbox::addresses(&tree, DEFAULT_PORT).map_err(failed)?;
    let new = ports::choose(&addresses, arguments.offset)?;
    let folder = TrialFolder::make(arguments.keep)?;
    let places = SandboxPlaces {
        folder: folder.path(),
        prefix: Some(conf::bytes_path(&origin.prefix)),
        default_port: DEFAULT_PORT,
        logs_by_default: true,
        keeps_ports: true,
        temporary_folders: &TEMPORARY_FOLDERS,
    };
    let mut copy = Sandbox::new(&tree, places, &new).map_err(failed)?;
    if copy.moved.is_empty() {
        return Err(failed("no server of the configuration listens".to_owned()));
    }
    if !origin.privileged {
        copy.tree.root.retain(|line| !line.is("user"));
    }
    folder.write(&copy.tree.write())?;
    start::run(ServerStart {
        greeting: Some(greeting::text(&origin, &tree, &copy, &folder)),
        warn: false,
        origin: origin_in(&folder, origin),
        arguments: &Arguments::take(),
        inherited: None,
        limits: SharedLimits::default(),
        control_socket: None,
    })
}

/// Reads the configuration and reports its errors.
fn read(origin: &ConfigOrigin) -> Result<EditableTree, Reported> {
    let tree = readable::read(origin)?;
    load::load(origin, &mut Disk)?;
    let is_lenient = |tree: &EditableTree| {
        let says_so = tree.root.iter().find(|line| line.is("lenient"));
        origin.lenient || says_so.is_some_and(|line| line.argument() == "on")
    };
    let tree = tree.and_then(|tree| match is_lenient(&tree) {
        // Weir ignores them.
        true => Ok(tree),
        false => sandbox::refuse_unknown(&tree).map(|()| tree),
    });
    tree.map_err(|why| complain(format_args!("trial: {why}")))
}

/// The copy's origin. Relative names in it still refer to the original's directories.
fn origin_in(folder: &TrialFolder, origin: ConfigOrigin) -> ConfigOrigin {
    let own = |name: &str| folder.path().join(name);
    ConfigOrigin {
        conf: places::bytes(&folder.configuration()),
        defaults: Defaults {
            error_log: Some(own("error.log")),
            access_log: Some(own("access.log")),
            pid: own("pid"),
            client_body_temp: own("client_body_temp_path"),
            proxy_temp: own("proxy_temp_path"),
        },
        is_trial: true,
        ..origin
    }
}

#[cfg(test)]
mod tests {
    /// Without lenient mode, a trial of these is refused by Weir already. One that it learns must
    /// not write where the real server does, even in lenient mode.
    #[test]
    fn directives_that_write_elsewhere_are_not_supported() {
        // `state` is declared only to be refused.
        let written = sandbox::WRITES_ELSEWHERE.into_iter().filter(|name| *name != "state");
        let tables = || http::TABLES.iter().chain(crate::settings::TABLES);
        let is_known = |name: &&str| {
            tables().flat_map(|(_, _, rows)| rows.iter()).any(|row| row.name == *name)
        };
        assert!(is_known(&"state"), "the tables have no directives");
        assert_eq!(written.into_iter().find(is_known), None);
    }
}
