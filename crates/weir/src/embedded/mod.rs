//! The built-in configuration, which `weir` serves without a configuration file.
//!
//! It needs no privileges and leaves nothing behind: its files are in a directory of its own, which
//! is removed when the process ends.

mod home;

use std::path::{Path, PathBuf};

use conf::Memory;

use crate::command_line::CommandLine;
use crate::name::name;

pub use home::Home;

/// Its name in messages.
pub const NAME: &str = "(built in)/nginx.conf";
/// The default port.
pub const PORT: u16 = 8080;

const CONF: &str = include_str!("nginx.conf");
/// Stands between single quotes, where a dollar sign would begin a variable.
const WELCOME: &str = include_str!("welcome.html");

/// Whether the command line selects it: it sets a port, or it names no file and the default file
/// does not exist.
pub fn is_meant(command: &CommandLine) -> bool {
    let unnamed = command.conf.is_none() && command.prefix.is_none() && command.signal.is_none();
    command.port.is_some() || unnamed && name().embedded_default && !Path::new(name().conf).exists()
}

/// The directory of its own, with its pid file and temporary files.
pub fn home() -> PathBuf {
    home::path().to_owned()
}

/// Its files, for a port.
pub fn files(port: u16) -> Memory {
    let text = CONF.replace("WELCOME", WELCOME).replace("ADDRESS", &address(port));
    Memory::default().with(NAME, text.replace("PORT", &port.to_string()))
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// What to try next, for the terminal.
pub fn next_steps(port: u16) -> String {
    let (version, conf, address) = (name().version, name().conf, address(port));
    format!(
        "Weir {version} serves http://{address} until you press Ctrl-C: a welcome page, and two
backends, blue and green, behind a proxy that lets each have two requests at a time.
There is no {conf}, so all of it is built in. What to try next:

    curl http://{address}/balanced/     again and again: they take turns
    seq 8 | xargs -P 8 -I{{}} curl -s http://{address}/balanced/slow
                                             eight at once: answered four by four
    weir -T                                  the configuration that does this
    weir -t -c nginx.conf                    check the configuration you have
    weir -c nginx.conf                       serve it
    weir check nginx.conf                    what of it this version does not have
    weir load -c64 -d5s http://{address}/
                                             measure it, as wrk would
    weir --help                              every option and command
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Origin, load};

    #[test]
    fn it_is_a_configuration() {
        let loaded = load(&Origin::embedded(81), &mut files(81)).unwrap();
        let addresses: Vec<_> =
            loaded.site.listens().iter().map(|listen| listen.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:81", "127.0.0.2:81", "127.0.0.3:81"]);
        assert!(!loaded.settings.daemon && !loaded.settings.master_process);
        let folders = loaded.folders.iter().map(|folder| &folder.path);
        let inside = folders.chain([&loaded.settings.pid]);
        inside.for_each(|path| assert!(path.starts_with(home::path()), "{path:?}"));
    }
}
