//! `weir ctl`: asks a running server at its control socket, and changes its groups of servers.

mod arguments;
mod cache;
mod cache_command;
pub mod client;
mod group;
mod keyval;
mod keyval_command;
mod servers;
mod show;

use std::ffi::OsString;

use serde_json::{Map, Value};

use crate::messages::{Reported, complain, print};
use arguments::{CtlArguments, CtlCommand};
use client::{ControlClient, ControlReply};
use group::GroupArgument;

pub const HELP: &str = "Usage: weir ctl [OPTIONS] COMMAND

Looks at a running server and changes it, through its control socket: the one of
\"control_socket\" in its configuration, or of its option -l.

Commands:
  status                     the master process and its worker processes
  ready                      whether the server serves; the exit code says it too
  ready off | on             tell load balancers, by \"ready\", to stay away, or to come back;
                             the server goes on to serve
  reload                     reload the configuration; prints what was logged
  upstreams [GROUP]          the servers of all groups, or of one
  drain GROUP SERVER         only pass requests that are bound to the server
  down GROUP SERVER          pass no request to the server
  up GROUP SERVER            pass requests to the server again
  set GROUP SERVER NAME=VALUE...
                             change weight, max_conns, max_fails, fail_timeout,
                             slow_start, route
  add GROUP ADDRESS [NAME=VALUE... | backup | down]
                             add a server
  remove GROUP SERVER        remove a server; its requests go on
  servers GROUP FILE         make the servers those of a file, or of standard input (-): JSON,
                             or lines of an address and parameters; --allow-empty if none is left
  keyval list [ZONE]         the names of all tables, or the entries of one
  keyval get ZONE KEY        the value of a key
  keyval set ZONE KEY VALUE [expire=TIME]
                             add an entry, or change it
  keyval delete ZONE KEY     remove an entry
  keyval clear ZONE          remove all entries
  cache purge CACHE KEY...   purge responses by key; KEY* stands for all keys that begin so
  cache purge-tag CACHE TAG...
                             purge all responses that have one of the tags
  cache purge-all CACHE      purge everything

GROUP is the name of an upstream block of http; that of stream is stream/NAME.
ZONE is the name of a keyval_zone, in the same way.
CACHE is the name in keys_zone of proxy_cache_path or its like.
SERVER is an address as \"weir ctl upstreams\" prints it, or a number there.

Options:
  -s SOCKET   the control socket (default: that of the configuration)
  -c FILE     the configuration of the server
  -o OWNER    claim the group for this owner, or change it as its owner
  --json      print JSON
  -h, --help  print this help

Exit code: 0 if the command succeeded, 1 otherwise.
";

/// Runs one command.
pub fn run(arguments: &[OsString]) -> Result<(), Reported> {
    let arguments = CtlArguments::parse(arguments)?;
    let client = ControlClient::at("ctl", arguments.socket()?, arguments.owner.clone());
    let ctl = Ctl { client, json: arguments.json };
    match &arguments.command {
        CtlCommand::Status => ctl.get("/status", show::status),
        CtlCommand::Ready => ctl.get("/ready", show::ready),
        CtlCommand::TurnReady { is_on } => {
            ctl.make(if *is_on { "POST" } else { "DELETE" }, "/ready", None, show::ready)
        }
        CtlCommand::Reload => ctl.reload(),
        CtlCommand::Keyval(command) => ctl.keyval(command),
        CtlCommand::Cache(command) => ctl.purge(command),
        CtlCommand::Upstreams(group) => ctl.upstreams(group.as_ref()),
        CtlCommand::Set { group, server, parameters } => ctl.set(group, server, parameters),
        CtlCommand::Add { group, parameters } => {
            ctl.change("POST", &group.servers(), Some(parameters))
        }
        CtlCommand::Servers { group, list, allow_empty } => ctl.list(group, list, *allow_empty),
        CtlCommand::Remove { group, server } => {
            let id = ctl.find(group, server)?;
            ctl.change("DELETE", &group.server(id), None)
        }
    }
}

struct Ctl {
    client: ControlClient,
    json: bool,
}

impl Ctl {
    fn get(&self, path: &str, show: fn(&Value) -> String) -> Result<(), Reported> {
        let reply = self.client.ask("GET", path, None)?;
        self.print(&reply, show)?;
        if reply.is_good() { Ok(()) } else { Err(Reported) }
    }

    fn reload(&self) -> Result<(), Reported> {
        let reply = self.client.ask("POST", "/reload", None)?;
        match reply.body.get("log") {
            Some(_) => self.print(&reply, show::reload)?,
            None => return Err(refused(&reply)),
        }
        if reply.is_good() { Ok(()) } else { Err(complain("the configuration was not reloaded")) }
    }

    fn upstreams(&self, group: Option<&GroupArgument>) -> Result<(), Reported> {
        let reply = self.client.ask("GET", "/upstreams", None)?;
        let Some(group) = group else { return self.print(&reply, show::upstreams) };
        let Some(found) = group.find(&reply.body) else { return Err(group.unknown()) };
        let only = serde_json::json!({ group.block(): { group.name.clone(): found.clone() } });
        self.print(&ControlReply { body: only, ..reply }, show::upstreams)
    }

    fn set(
        &self,
        group: &GroupArgument,
        server: &str,
        parameters: &Map<String, Value>,
    ) -> Result<(), Reported> {
        let id = self.find(group, server)?;
        self.change("PATCH", &group.server(id), Some(parameters))
    }

    /// The id of a server.
    fn find(&self, group: &GroupArgument, server: &str) -> Result<u64, Reported> {
        if let Ok(id) = server.parse() {
            return Ok(id);
        }
        let reply = self.client.ask("GET", "/upstreams", None)?;
        let Some(found) = group.find(&reply.body) else { return Err(group.unknown()) };
        let servers = found["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_meant = |one: &&Value| {
            let address = one["server"].as_str().unwrap_or_default();
            address == server || address.rsplit_once(':').is_some_and(|(host, _)| host == server)
        };
        let meant: Vec<&Value> = servers.iter().filter(is_meant).collect();
        match meant[..] {
            [one] => one["id"].as_u64().ok_or_else(|| complain("ctl: the server has no id")),
            [] => Err(complain(format_args!("ctl: {group} has no server {server}"))),
            _ => Err(complain(format_args!("ctl: several servers of {group} are {server}"))),
        }
    }

    fn list(&self, group: &GroupArgument, list: &str, allow_empty: bool) -> Result<(), Reported> {
        let list = servers::read(list)?;
        let argument = if allow_empty { "?allow_empty=1" } else { "" };
        let path = format!("{}{argument}", group.servers());
        self.make("PUT", &path, Some(&list), show::difference)
    }

    fn change(
        &self,
        method: &str,
        path: &str,
        parameters: Option<&Map<String, Value>>,
    ) -> Result<(), Reported> {
        let body = parameters.map(|parameters| Value::Object(parameters.clone()));
        self.make(method, path, body.as_ref(), show::servers)
    }

    fn make(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        show: fn(&Value) -> String,
    ) -> Result<(), Reported> {
        let body = body.map(Value::to_string);
        let reply = self.client.ask(method, path, body.as_deref())?;
        if !reply.is_good() {
            return Err(refused(&reply));
        }
        self.print(&reply, show)?;
        if !self.json {
            let notes = reply.notes("\"state\" in the block");
            notes.iter().for_each(|note| observe::tell(format_args!("weir: {note}\n")));
        }
        Ok(())
    }

    fn print(&self, reply: &ControlReply, show: fn(&Value) -> String) -> Result<(), Reported> {
        match self.json {
            true => print(format!("{}\n", reply.body)),
            false => print(show(&reply.body)),
        }
    }
}

fn refused(reply: &ControlReply) -> Reported {
    match reply.body["error"]["text"].as_str() {
        Some(text) => complain(format_args!("ctl: {text}")),
        None => complain(format_args!("ctl: the server answered {}", reply.status)),
    }
}
