//! The arguments of `weir ctl`.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use zones::Zones;

use super::cache_command::CacheCommand;
use super::client::socket_path;
use super::group::GroupArgument;
use super::keyval_command::KeyvalCommand;
use crate::command_line::CommandLine;
use crate::config_origin::ConfigOrigin;
use crate::load;
use crate::messages::{Reported, advise, complain, refuse, refuse_command};

#[derive(Debug)]
pub(super) struct CtlArguments {
    socket: Option<PathBuf>,
    conf: Option<OsString>,
    pub(super) owner: Option<String>,
    pub(super) json: bool,
    pub(super) command: CtlCommand,
}

#[derive(Debug, PartialEq)]
pub(super) enum CtlCommand {
    Status,
    Ready,
    TurnReady { is_on: bool },
    Reload,
    Upstreams(Option<GroupArgument>),
    Keyval(KeyvalCommand),
    Cache(CacheCommand),
    Set { group: GroupArgument, server: String, parameters: Map<String, Value> },
    Add { group: GroupArgument, parameters: Map<String, Value> },
    Remove { group: GroupArgument, server: String },
    Servers { group: GroupArgument, list: String, allow_empty: bool },
}

const COMMANDS: [&str; 13] = [
    "status",
    "ready",
    "reload",
    "upstreams",
    "drain",
    "down",
    "up",
    "set",
    "add",
    "remove",
    "servers",
    "keyval",
    "cache",
];

impl CtlArguments {
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, Reported> {
        let (mut socket, mut conf, mut owner) = (None, None, None);
        let (mut json, mut allow_empty) = (false, false);
        let mut words = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let option = argument.to_string_lossy();
            let mut value = || {
                rest.next().ok_or_else(|| {
                    complain(format_args!("ctl: option \"{option}\" requires a value"))
                })
            };
            match &*option {
                "--json" => json = true,
                "--allow-empty" => allow_empty = true,
                "-s" => socket = Some(socket_path(value()?)),
                "-c" => conf = Some(value()?.clone()),
                "-o" => owner = Some(owner_name(&value()?.to_string_lossy())?),
                _ if option.starts_with('-') && option != "-" => {
                    return Err(refuse("ctl", argument, &["--json", "--allow-empty", "--help"]));
                }
                _ => words.push(option.into_owned()),
            }
        }
        let mut command = CtlCommand::parse(&words)?;
        match &mut command {
            CtlCommand::Servers { allow_empty: allowed, .. } => *allowed = allow_empty,
            _ if allow_empty => return Err(complain("ctl: only \"servers\" has --allow-empty")),
            _ => {}
        }
        Ok(Self { socket, conf, owner, json, command })
    }

    /// The named socket, or that of the configuration.
    pub(super) fn socket(&self) -> Result<PathBuf, Reported> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let origin =
            ConfigOrigin::of(&CommandLine { conf: self.conf.clone(), ..CommandLine::default() });
        let loaded = load::load_quietly(&Zones::default(), &origin, &mut *origin.files())?;
        loaded.settings.control_socket.ok_or_else(|| {
            let conf = String::from_utf8_lossy(&origin.conf);
            complain(format_args!("ctl: {conf} has no \"control_socket\"; name the socket with -s"))
        })
    }
}

fn owner_name(word: &str) -> Result<String, Reported> {
    match !word.is_empty() && word.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        true => Ok(word.to_owned()),
        false => Err(complain(format_args!("ctl: invalid owner \"{}\"", word.escape_debug()))),
    }
}

impl CtlCommand {
    fn parse(words: &[String]) -> Result<Self, Reported> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let group = GroupArgument::parse;
        let status = |group_name: &str, server: &str, parameters: Value| {
            let parameters = parameters.as_object().cloned().unwrap_or_default();
            Ok(Self::Set { group: group(group_name), server: server.to_owned(), parameters })
        };
        match words[..] {
            ["status"] => Ok(Self::Status),
            ["ready"] => Ok(Self::Ready),
            ["ready", word @ ("on" | "off")] => Ok(Self::TurnReady { is_on: word == "on" }),
            ["reload"] => Ok(Self::Reload),
            ["upstreams"] => Ok(Self::Upstreams(None)),
            ["upstreams", name] => Ok(Self::Upstreams(Some(group(name)))),
            ["drain", name, server] => status(name, server, json!({"drain": true})),
            ["down", name, server] => status(name, server, json!({"down": true})),
            ["up", name, server] => status(name, server, json!({"down": false, "drain": false})),
            ["set", name, server, _, ..] => {
                let (group, server) = (group(name), server.to_owned());
                Ok(Self::Set { group, server, parameters: parameters(&words[3..])? })
            }
            ["add", name, server, ..] => {
                let mut parameters = parameters(&words[3..])?;
                parameters.insert("server".to_owned(), json!(server));
                Ok(Self::Add { group: group(name), parameters })
            }
            ["remove", name, server] => {
                Ok(Self::Remove { group: group(name), server: server.to_owned() })
            }
            ["servers", name, list] => {
                let (group, list) = (group(name), list.to_owned());
                Ok(Self::Servers { group, list, allow_empty: false })
            }
            ["keyval", ref rest @ ..] => match KeyvalCommand::parse(rest)? {
                Some(command) => Ok(Self::Keyval(command)),
                None => Err(refuse_command("ctl", &words, &COMMANDS)),
            },
            ["cache", ref rest @ ..] => match CacheCommand::parse(rest) {
                Some(command) => Ok(Self::Cache(command)),
                None => Err(refuse_command("ctl", &words, &COMMANDS)),
            },
            _ => Err(refuse_command("ctl", &words, &COMMANDS)),
        }
    }
}

/// The parameters of a server, as in a `server` line.
pub(super) fn parameters(words: &[&str]) -> Result<Map<String, Value>, Reported> {
    let mut parameters = Map::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, parameter(name, value)?),
            None if ["backup", "down", "drain"].contains(word) => (*word, json!(true)),
            None => return Err(complain(format_args!("ctl: invalid parameter \"{word}\""))),
        };
        parameters.insert(name.to_owned(), value);
    }
    Ok(parameters)
}

fn parameter(name: &str, value: &str) -> Result<Value, Reported> {
    match name {
        "weight" | "max_conns" | "max_fails" => value
            .parse::<u32>()
            .map(|number| json!(number))
            .map_err(|_| complain(format_args!("ctl: {name} must be a number"))),
        "fail_timeout" | "slow_start" | "route" | "service" => Ok(json!(value)),
        _ => {
            const NAMES: [&str; 7] = [
                "weight",
                "max_conns",
                "max_fails",
                "fail_timeout",
                "slow_start",
                "route",
                "service",
            ];
            let nearest = conf::suggest::nearest(name.as_bytes(), NAMES);
            let told = complain(format_args!("ctl: unknown parameter \"{name}\""));
            advise(nearest.map(conf::suggest::did_you_mean), "weir ctl --help");
            Err(told)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Option<CtlCommand> {
        let words: Vec<OsString> = words.split(' ').map(Into::into).collect();
        CtlArguments::parse(&words).ok().map(|arguments| arguments.command)
    }

    #[test]
    fn commands_and_their_arguments() {
        assert_eq!(parse("ready off"), Some(CtlCommand::TurnReady { is_on: false }));
        assert_eq!(parse("--json status"), Some(CtlCommand::Status));
        let Some(CtlCommand::Set { group, server, parameters }) =
            parse("-s /a set stream/db 10.0.0.1:1 weight=2 fail_timeout=5s")
        else {
            panic!("a change")
        };
        assert_eq!(group.server(3), "/9/stream/upstreams/db/servers/3");
        assert_eq!(server, "10.0.0.1:1");
        let expected = r#"{"fail_timeout":"5s","weight":2}"#;
        assert_eq!(Value::Object(parameters).to_string(), expected);
        let Some(CtlCommand::Add { parameters, .. }) = parse("add a/b 10.0.0.1 backup") else {
            panic!("a new server")
        };
        let expected = r#"{"backup":true,"server":"10.0.0.1"}"#;
        assert_eq!(Value::Object(parameters).to_string(), expected);
        let list = CtlCommand::Servers {
            group: GroupArgument::parse("app"),
            list: "-".to_owned(),
            allow_empty: true,
        };
        assert_eq!(parse("servers app - --allow-empty"), Some(list));
        assert_eq!(GroupArgument::parse("a/b").servers(), "/9/http/upstreams/a%2Fb/servers");
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in [
            "",
            "x",
            "drain app",
            "servers app",
            "status --allow-empty",
            "ready never",
            "set app a",
            "set app a weight=x",
            "add app a wieght=1",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse("-s"), None);
        assert_eq!(parse("--jsno status"), None);
    }
}
