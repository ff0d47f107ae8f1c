//! The built-in configuration, which `weir` serves without a configuration file.
//!
//! It needs no privileges and leaves nothing behind: its files are in a directory of its own, which
//! is removed when the process ends.

mod home;

use std::path::{Path, PathBuf};

use conf::MemoryFiles;

use crate::command_line::CommandLine;
use crate::name::name;

pub use home::Home;

/// Its name in messages.
pub const NAME: &str = "(built in)/nginx.conf";
/// The default port.
pub const PORT: u16 = 8080;

const CONF: &str = include_str!("nginx.conf");
/// Used between single quotes, where a dollar sign would begin a variable.
const WELCOME: &str = include_str!("welcome.html");

/// Whether the command line selects it: by a port, or because it names no file and there is no
/// default file.
pub fn is_meant(command: &CommandLine) -> bool {
    let unnamed = command.conf.is_none() && command.prefix.is_none() && command.signal.is_none();
    command.port.is_some() || unnamed && name().embedded_default && !Path::new(name().conf).exists()
}

/// The directory of its own, with its pid file and temporary files.
pub fn home() -> PathBuf {
    home::path().to_owned()
}

pub fn files(port: u16) -> MemoryFiles {
    let text = CONF.replace("WELCOME", WELCOME).replace("ADDRESS", &address(port));
    MemoryFiles::default().with(NAME, text.replace("PORT", &port.to_string()))
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// The greeting with commands to try next; `program` is how the program was called.
pub fn next_steps(port: u16, program: &str) -> String {
    let (version, conf, address) = (name().version, name().conf, address(port));
    let top = match port {
        PORT => String::new(),
        _ => format!(" http://{address}/dashboard/"),
    };
    format!(
        "Weir {version} serves http://{address} until you press Ctrl-C: a welcome page, and a
proxy for two backends, blue and green, with at most two requests at a time each.
This configuration is built in, because {conf} does not exist. What to try next:

  curl http://{address}/balanced/
      several times: the backends take turns
  seq 8 | xargs -P 8 -I{{}} curl -s http://{address}/balanced/slow
      eight requests at once: four are answered at a time, the others are queued
  http://{address}/dashboard/
      watch that in a browser
  {program} top{top}
      watch it in this or another terminal
  {program} -T
      print this configuration
  {program} check nginx.conf
      list what this version does not support in your configuration
  {program} -t -c nginx.conf
      test your configuration
  {program} -c nginx.conf
      serve your configuration
  {program} load -c64 -d5s http://{address}/
      measure this server
  {program} --help
      list all options and commands
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_origin::ConfigOrigin;
    use crate::load::load;

    #[test]
    fn it_is_a_configuration() {
        let loaded = load(&ConfigOrigin::embedded(81), &mut files(81)).unwrap();
        let addresses: Vec<_> =
            loaded.sites.listens().iter().map(|(address, _)| address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:81", "127.0.0.2:81", "127.0.0.3:81"]);
        assert!(!loaded.settings.daemon && !loaded.settings.master_process);
        let folders = loaded.folders.iter().map(|folder| &folder.path);
        let inside = folders.chain([&loaded.settings.pid]);
        inside.for_each(|path| assert!(path.starts_with(home::path()), "{path:?}"));
    }
}
