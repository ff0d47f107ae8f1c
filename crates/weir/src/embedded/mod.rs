//! The configuration that is built in: what `weir` serves where there is none.
//!
//! It needs no rights and leaves nothing behind: what it makes is in a directory of its own, which
//! goes with the process.

mod home;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use conf::Memory;

use crate::command_line::CommandLine;
use crate::name::name;

pub use home::Home;

/// What it is called in messages.
pub const NAME: &str = "(built in)/nginx.conf";
/// Where it listens.
const ADDRESS: &str = "127.0.0.1:8080";

const CONF: &str = include_str!("nginx.conf");
/// Stands between single quotes, where a dollar sign would begin a variable.
const WELCOME: &str = include_str!("welcome.html");

/// Whether the command line means it: no file is named, and there is none where one would be.
pub fn is_meant(command: &CommandLine) -> bool {
    let unnamed = command.conf.is_none() && command.prefix.is_none() && command.signal.is_none();
    unnamed && name().embedded_default && !Path::new(name().conf).exists()
}

/// What its relative names are relative to, with its last slash.
pub fn prefix() -> Box<[u8]> {
    let mut prefix = home::path().as_os_str().as_bytes().to_vec();
    prefix.push(b'/');
    prefix.into()
}

/// Its files.
pub fn files() -> Memory {
    let home = home::path().to_string_lossy();
    let text = CONF.replace("WELCOME", WELCOME).replace("ADDRESS", ADDRESS).replace("HOME", &home);
    Memory::default().with(NAME, text)
}

/// What to try next, for the terminal.
pub fn next_steps() -> String {
    let (version, conf) = (name().version, name().conf);
    format!(
        "Weir {version} serves http://{ADDRESS} until you press Ctrl-C: a welcome page, and two
backends, blue and green, behind a proxy that lets each have two requests at a time.
There is no {conf}, so all of it is built in. What to try next:

    curl http://{ADDRESS}/balanced/     again and again: they take turns
    seq 8 | xargs -P 8 -I{{}} curl -s http://{ADDRESS}/balanced/slow
                                             eight at once: answered four by four
    weir -T                                  the configuration that does this
    weir -t -c nginx.conf                    check the configuration you have
    weir -c nginx.conf                       serve it
    weir check nginx.conf                    what of it this version does not have
    weir load -c64 -d5s http://{ADDRESS}/
                                             measure it, as wrk would
    weir -h                                  every option
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Origin, load};

    #[test]
    fn it_is_a_configuration() {
        let loaded = load(&Origin::embedded(), &mut files()).unwrap();
        let addresses: Vec<_> =
            loaded.site.listens().iter().map(|listen| listen.address.to_string()).collect();
        let socket = |name| format!("unix:{}", home::path().join(name).display());
        assert_eq!(addresses, [ADDRESS.to_owned(), socket("blue.sock"), socket("green.sock")]);
        assert!(!loaded.settings.daemon && !loaded.settings.master_process);
        let inside = loaded.folders.iter().chain([&loaded.settings.pid]);
        inside.for_each(|path| assert!(path.starts_with(home::path()), "{path:?}"));
    }
}
