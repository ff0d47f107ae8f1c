//! The arguments of `weir acme`.

use std::ffi::OsString;
use std::path::PathBuf;

use zones::Zones;

use crate::command_line::CommandLine;
use crate::config_origin::ConfigOrigin;
use crate::ctl::client::{ControlClient, socket_path};
use crate::load::{self, LoadedConfig};
use crate::messages::{Reported, complain, refuse, refuse_command};

#[derive(Debug)]
pub(super) struct AcmeArguments {
    pub(super) socket: Option<PathBuf>,
    conf: Option<OsString>,
    pub(super) json: bool,
    pub(super) force: bool,
    pub(super) no_wait: bool,
    pub(super) command: AcmeCommand,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum AcmeCommand {
    Status(Option<String>),
    Renew(String),
    Forget(String),
}

const COMMANDS: [&str; 3] = ["status", "renew", "forget"];
const OPTIONS: [&str; 4] = ["--json", "--force", "--no-wait", "--help"];

impl AcmeArguments {
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, Reported> {
        let (mut socket, mut conf) = (None, None);
        let (mut json, mut force, mut no_wait) = (false, false, false);
        let mut words = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let option = argument.to_string_lossy();
            let mut value = || {
                rest.next().ok_or_else(|| {
                    complain(format_args!("acme: option \"{option}\" requires a value"))
                })
            };
            match &*option {
                "--json" => json = true,
                "--force" => force = true,
                "--no-wait" => no_wait = true,
                "-s" => socket = Some(socket_path(value()?)),
                "-c" => conf = Some(value()?.clone()),
                _ if option.starts_with('-') => return Err(refuse("acme", argument, &OPTIONS)),
                _ => words.push(option.into_owned()),
            }
        }
        let command = AcmeCommand::parse(&words)?;
        Ok(Self { socket, conf, json, force, no_wait, command })
    }

    /// The configuration.
    pub(super) fn load(&self) -> Result<LoadedConfig, Reported> {
        let origin = self.origin();
        load::load_quietly(&Zones::default(), &origin, &mut *origin.files())
    }

    /// The named socket, or that of the configuration.
    pub(super) fn client(&self) -> Result<ControlClient, Reported> {
        let socket = match &self.socket {
            Some(socket) => socket.clone(),
            None => self.load()?.settings.control_socket.ok_or_else(|| {
                let conf = String::from_utf8_lossy(&self.origin().conf).into_owned();
                complain(format_args!(
                    "acme: {conf} has no \"control_socket\"; name the socket with -s"
                ))
            })?,
        };
        Ok(ControlClient::at("acme", socket, None))
    }

    fn origin(&self) -> ConfigOrigin {
        ConfigOrigin::of(&CommandLine { conf: self.conf.clone(), ..CommandLine::default() })
    }
}

impl AcmeCommand {
    fn parse(words: &[String]) -> Result<Self, Reported> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["status"] => Ok(Self::Status(None)),
            ["status", name] => Ok(Self::Status(Some(name.to_owned()))),
            ["renew", name] => Ok(Self::Renew(name.to_owned())),
            ["forget", name] => Ok(Self::Forget(name.to_owned())),
            _ => Err(refuse_command("acme", &words, &COMMANDS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Option<AcmeArguments> {
        let words: Vec<OsString> = words.split(' ').map(Into::into).collect();
        AcmeArguments::parse(&words).ok()
    }

    #[test]
    fn commands_and_their_arguments() {
        let arguments = parse("-s unix:/a --json renew a.test --force").unwrap();
        assert_eq!(arguments.command, AcmeCommand::Renew("a.test".into()));
        assert_eq!(arguments.socket, Some("/a".into()));
        assert!(arguments.json && arguments.force && !arguments.no_wait);
        assert_eq!(parse("status").unwrap().command, AcmeCommand::Status(None));
        for wrong in ["", "renew", "renew a b", "forget", "statsu", "status --forec", "status -s"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
