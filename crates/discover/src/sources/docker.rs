//! Docker and Podman: running containers with labels as Angie reads them, and with `VIRTUAL_HOST`
//! as nginx-proxy does.
//!
//! Events only tell that something has changed; all containers are then listed again. The stream of
//! events is opened before the first list, so that nothing is missed between them.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Report, Source, host_port};
use crate::drive::tell;
use crate::http::{HttpClient, HttpReply, HttpRequest};
use crate::json_lines::JsonLines;
use crate::server_entry::ServerEntry;
use crate::wanted::{GroupKey, GroupedServers, WantedGroups, percent_encoded};

const REPLY_MAX: Duration = Duration::from_secs(20);
/// How long events are awaited before everything is listed again.
const EVENTS_MAX: Duration = Duration::from_secs(60);
/// How long further events are awaited after one: a container that starts has several.
const SETTLE: Duration = Duration::from_millis(50);
/// When everything is listed once more after an event: Docker tells that a container goes on, or
/// is connected to a network, before its lists say so.
const CONFIRM: Duration = Duration::from_secs(1);
/// The version of the API that is spoken, unless the engine is too new for it.
const VERSION: ApiVersion = ApiVersion { major: 1, minor: 24 };
/// The events after which lists may be others. Podman says `died` for `die`. Health checks of
/// containers are events as well, and many.
const EVENTS: &str = concat!(
    r#"{"type":["container","network"],"#,
    r#""event":["start","die","died","pause","unpause","connect","disconnect"]}"#,
);
const RUNNING: &str = r#"{"status":["running"]}"#;

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct ApiVersion {
    major: u32,
    minor: u32,
}

impl ApiVersion {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

pub struct DockerSource {
    client: HttpClient,
    version: ApiVersion,
    /// Whether environments are looked at for `VIRTUAL_HOST`.
    reads_environment: bool,
    /// The environments of containers, which never change.
    environments: BTreeMap<String, Vec<String>>,
    /// What the log says of containers that are no servers.
    noted: BTreeSet<String>,
}

impl DockerSource {
    pub fn new(client: HttpClient, reads_environment: bool) -> Self {
        Self {
            client,
            version: VERSION,
            reads_environment,
            environments: BTreeMap::new(),
            noted: BTreeSet::new(),
        }
    }

    /// Finds a version of the API that the engine has: Docker 29 has none before 1.44.
    fn agree_on_version(&mut self) -> Result<(), String> {
        let told = self.get("/version")?.unwrap_or_default();
        let oldest = told["MinAPIVersion"].as_str().and_then(ApiVersion::parse);
        self.version = oldest.filter(|oldest| *oldest > VERSION).unwrap_or(VERSION);
        Ok(())
    }

    /// A path of the API.
    fn path(&self, path: &str) -> String {
        format!("/v{}.{}{path}", self.version.major, self.version.minor)
    }

    fn events(&self) -> Result<JsonLines, String> {
        let path = self.path(&format!("/events?filters={}", percent_encoded(EVENTS)));
        let opened = self.client.stream(&HttpRequest::get(&path, REPLY_MAX));
        let (mut reply, mut body) = opened.map_err(|error| error.to_string())?;
        if reply.status == 200 {
            return Ok(JsonLines::new(body));
        }
        // The reason is part of a message that does not need it.
        let _ = body.read_more(&mut reply.body, Instant::now() + REPLY_MAX);
        Err(refusal(&reply))
    }

    fn get(&mut self, path: &str) -> Result<Option<Value>, String> {
        let reply = self.client.ask(&HttpRequest::get(path, REPLY_MAX));
        let reply = reply.map_err(|error| error.to_string())?;
        match reply.status {
            200 => serde_json::from_slice(&reply.body).map(Some).map_err(|error| error.to_string()),
            404 => Ok(None),
            _ => Err(refusal(&reply)),
        }
    }

    fn list(&mut self) -> Result<WantedGroups, String> {
        let path = self.path(&format!("/containers/json?filters={}", percent_encoded(RUNNING)));
        let all = self.get(&path)?;
        let all = all.as_ref().and_then(Value::as_array).ok_or("the engine lists nothing")?;
        let mut grouped = GroupedServers::default();
        let ids: Vec<&str> = all.iter().filter_map(|one| one["Id"].as_str()).collect();
        self.environments.retain(|id, _| ids.contains(&&**id));
        let mut notes = BTreeSet::new();
        for container in all {
            let id = container["Id"].as_str().unwrap_or_default();
            let environment = self.environment(id)?;
            let told = |why: String| format!("container {}: {why}", id.get(..12).unwrap_or(id));
            let note = add(container, &environment, &mut grouped).map_err(told)?;
            notes.extend(note.map(told));
        }
        notes.difference(&self.noted).for_each(|note| tell(note));
        self.noted = notes;
        grouped.into_wanted()
    }

    fn environment(&mut self, id: &str) -> Result<Vec<String>, String> {
        if !self.reads_environment {
            return Ok(Vec::new());
        }
        if let Some(known) = self.environments.get(id) {
            return Ok(known.clone());
        }
        let path = self.path(&format!("/containers/{}/json", percent_encoded(id)));
        // A container may have gone since it was listed; an event tells it.
        let Some(details) = self.get(&path)? else { return Ok(Vec::new()) };
        let lines = details["Config"]["Env"].as_array().into_iter().flatten();
        let lines: Vec<String> = lines.filter_map(Value::as_str).map(str::to_owned).collect();
        self.environments.insert(id.to_owned(), lines.clone());
        Ok(lines)
    }
}

impl Source for DockerSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        self.agree_on_version()?;
        loop {
            let mut events = self.events()?;
            let until = Instant::now() + EVENTS_MAX;
            let mut has_changed = false;
            while has_changed || Instant::now() < until {
                report(self.list()?)?;
                let again = if has_changed { Instant::now() + CONFIRM } else { until };
                has_changed = has_event(&mut events, again)?;
                let settled = Instant::now() + SETTLE;
                while has_changed && has_event(&mut events, settled)? {}
            }
        }
    }
}

/// Waits for an event.
fn has_event(events: &mut JsonLines, until: Instant) -> Result<bool, String> {
    match events.next(until) {
        Ok(Some(_)) => Ok(true),
        Ok(None) => Err("the stream of events has ended".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Ok(false),
        Err(error) => Err(format!("the stream of events was cut: {error}")),
    }
}

/// Why the engine refuses a request.
fn refusal(reply: &HttpReply) -> String {
    let value: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let why = value["message"].as_str().unwrap_or_default();
    format!("the engine answered {} {why}", reply.status).trim_end().to_owned()
}

/// Adds the servers of a container. Returns why it is none although it is to be.
fn add(
    container: &Value,
    environment: &[String],
    grouped: &mut GroupedServers,
) -> Result<Option<String>, String> {
    let labels = labelled(container)?;
    let hosts = virtual_hosts(container, environment)?;
    if labels.is_empty() && hosts.is_empty() {
        return Ok(None);
    }
    let network = container["Labels"]["angie.network"].as_str();
    let Some(address) = address(container, network) else {
        let of = network.map_or(String::new(), |network| format!(" in the network {network}"));
        return Ok(Some(format!("it has no address{of}, so it is no server")));
    };
    for LabelledServer { group, port, parameters } in labels {
        let mut server = ServerEntry::new(&host_port(&address, port.into()));
        for (name, value) in parameters {
            let name = if name == "sid" { "route" } else { name };
            server.set(name, value)?;
        }
        grouped.add(&group, [server]);
    }
    for (group, port) in hosts {
        grouped.add(&group, [ServerEntry::new(&host_port(&address, port))]);
    }
    Ok(None)
}

/// A server as labels describe it.
struct LabelledServer<'a> {
    group: GroupKey,
    port: u16,
    parameters: BTreeMap<&'a str, &'a str>,
}

fn labelled(container: &Value) -> Result<Vec<LabelledServer<'_>>, String> {
    let mut servers = BTreeMap::<(&str, &str), BTreeMap<&str, &str>>::new();
    for (name, value) in container["Labels"].as_object().into_iter().flatten() {
        let mut parts = name.strip_prefix("angie.").unwrap_or_default().splitn(4, '.');
        if let (
            Some(block @ ("http" | "stream")),
            Some("upstreams"),
            Some(group),
            Some(parameter),
        ) = (parts.next(), parts.next(), parts.next(), parts.next())
        {
            let value = value.as_str().unwrap_or_default();
            servers.entry((block, group)).or_default().insert(parameter, value);
        }
    }
    let servers = servers.into_iter().map(|((block, group), mut parameters)| {
        let port = parameters.remove("port").and_then(port);
        let port = port.ok_or_else(|| format!("group {group}: a port is missing"))?;
        let group = GroupKey::parse(&format!("{block}/{group}"))?;
        Ok(LabelledServer { group, port, parameters })
    });
    servers.collect()
}

/// nginx-proxy's `VIRTUAL_HOST`: the groups have the names of the hosts.
fn virtual_hosts(
    container: &Value,
    environment: &[String],
) -> Result<Vec<(GroupKey, u64)>, String> {
    let value = |name: &str| {
        let mut lines = environment.iter().filter_map(|line| line.split_once('='));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value)
    };
    let Some(hosts) = value("VIRTUAL_HOST") else { return Ok(Vec::new()) };
    let said = value("VIRTUAL_PORT").map(|text| port(text.trim()).ok_or("invalid VIRTUAL_PORT"));
    let said = said.transpose()?;
    let ports = container["Ports"].as_array().into_iter().flatten();
    let open: BTreeSet<u64> = ports
        .filter(|port| port["Type"] == "tcp")
        .filter_map(|port| port["PrivatePort"].as_u64())
        .collect();
    let only = open.first().copied().filter(|_| open.len() == 1).unwrap_or(80);
    let port = said.map_or(only, u64::from);
    let hosts = hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts.map(|host| Ok((GroupKey::parse(host)?, port))).collect()
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

/// The address in the named network, or in the first one that has any.
fn address(container: &Value, network: Option<&str>) -> Option<String> {
    let networks = container["NetworkSettings"]["Networks"].as_object()?;
    let of = |settings: &Value| {
        let texts = [settings["IPAddress"].as_str(), settings["GlobalIPv6Address"].as_str()];
        texts.into_iter().flatten().find(|address| !address.is_empty()).map(str::to_owned)
    };
    match network {
        Some(network) => of(networks.get(network)?),
        None => networks.values().find_map(of),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testing::Peer;

    use super::*;
    use crate::sources::testing::{lists, place, shown};

    fn added(container: Value, environment: &[&str]) -> Result<String, String> {
        let mut grouped = GroupedServers::default();
        let environment: Vec<String> = environment.iter().map(|line| line.to_string()).collect();
        let note = add(&container, &environment, &mut grouped)?;
        Ok(note.unwrap_or(shown(&grouped.into_wanted()?)))
    }

    fn container(labels: Value) -> Value {
        json!({"Id": "abc", "Labels": labels, "Ports": [{"PrivatePort": 3000, "Type": "tcp"}],
            "NetworkSettings": {"Networks": {"front": {"IPAddress": "172.17.0.2"},
                "host": {"IPAddress": ""}, "six": {"GlobalIPv6Address": "fd00::2"}}}})
    }

    #[test]
    fn labels_are_read_as_by_angie() {
        let labels = json!({"angie.http.upstreams.app.port": "8080",
            "angie.http.upstreams.app.weight": "2", "angie.http.upstreams.app.sid": "a",
            "angie.stream.upstreams.db.port": "5432", "other": "x"});
        let expected = "app=[{\"route\":\"a\",\"server\":\"172.17.0.2:8080\",\"weight\":2}] \
            stream/db=[{\"server\":\"172.17.0.2:5432\"}]";
        assert_eq!(added(container(labels), &[]).unwrap(), expected);
        let six = json!({"angie.http.upstreams.app.port": "1", "angie.network": "six"});
        assert_eq!(added(container(six), &[]).unwrap(), r#"app=[{"server":"[fd00::2]:1"}]"#);
        for wrong in [
            json!({"angie.http.upstreams.app.weight": "2"}),
            json!({"angie.http.upstreams.app.port": "x"}),
            json!({"angie.http.upstreams.app.port": "1", "angie.http.upstreams.app.what": "1"}),
        ] {
            assert!(added(container(wrong.clone()), &[]).is_err(), "{wrong}");
        }
        assert_eq!(added(json!({"Labels": null}), &[]), Ok(String::new()), "none of ours");
        let cut = json!({"Labels": {"angie.http.upstreams.app.port": "1"},
            "NetworkSettings": {"Networks": null}});
        assert_eq!(added(cut, &[]).unwrap(), "it has no address, so it is no server");
        for network in ["host", "none"] {
            let labels = json!({"angie.http.upstreams.app.port": "1", "angie.network": network});
            let note = added(container(labels), &[]).unwrap();
            assert!(note.contains(&format!("no address in the network {network}")), "{note}");
        }
    }

    #[test]
    fn virtual_hosts_are_groups() {
        let plain = || container(json!({}));
        let hosts = added(plain(), &["VIRTUAL_HOST=a.test, b.test"]).unwrap();
        let server = r#"[{"server":"172.17.0.2:3000"}]"#;
        assert_eq!(hosts, format!("a.test={server} b.test={server}"));
        let port = added(plain(), &["VIRTUAL_HOST=a.test", "VIRTUAL_PORT=81"]).unwrap();
        assert_eq!(port, r#"a.test=[{"server":"172.17.0.2:81"}]"#);
        assert!(added(plain(), &["VIRTUAL_HOST=a.test", "VIRTUAL_PORT=x"]).is_err());
    }

    /// An engine that answers lists with this text and has one event for each connection.
    fn engine(oldest: &'static str, list: impl Into<String>) -> Peer {
        let list = list.into();
        Peer::answering(move |request| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let body = match path.strip_prefix(&format!("/v{oldest}")) {
                None if path == "/version" => json!({"MinAPIVersion": oldest}).to_string(),
                None => {
                    return "HTTP/1.1 400 X\nContent-Length: 19\n\n{\"message\":\"old\"}\r\n"
                        .into();
                }
                Some(path) if path.starts_with("/events?filters=%7B%22type") => {
                    let events = "3\r\n{}\n\r\n".repeat(2);
                    return format!(
                        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{events}0\r\n\r\n"
                    );
                }
                Some(path) if path.starts_with("/containers/json?") => list.clone(),
                Some(_) => json!({"Config": {"Env": ["A=b", "VIRTUAL_HOST=v.test"]}}).to_string(),
            };
            format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len())
        })
    }

    fn told(peer: &Peer, reads_environment: bool) -> (Vec<String>, String) {
        let client = HttpClient::new(place(peer));
        lists(&mut DockerSource::new(client, reads_environment), 9)
    }

    #[test]
    fn events_that_come_together_list_everything_once_more() {
        let labels = json!({"angie.http.upstreams.app.port": "80"});
        let peer = engine("1.24", json!([container(labels)]).to_string());
        let (lists, error) = told(&peer, false);
        assert_eq!(lists.len(), 1, "the stream ended before the events had settled");
        assert!(error.contains("has ended"), "{error}");
        let asked = [(); 3].map(|()| peer.asked());
        let paths = ["/version ", "/v1.24/events", "/v1.24/containers/json"];
        let is_asked = |(asked, path): (&String, _)| asked.starts_with(&format!("GET {path}"));
        assert!(asked.iter().zip(paths).all(is_asked), "{asked:?}");
        peer.expect_unasked();
    }

    #[test]
    fn engines_without_old_versions_of_the_api_are_asked_for_their_oldest() {
        let (lists, _) = told(&engine("1.44", "[]"), false);
        assert_eq!(lists, [""]);
        let (lists, error) = told(&engine("1.4", "[]"), false);
        assert_eq!((lists.len(), &*error), (0, "the engine answered 400 old"));
    }

    #[test]
    fn a_strange_name_of_a_container_is_told() {
        let list = json!([{"Id": "a\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
            "Labels": {"angie.http.upstreams.app.port": "x"}}]);
        let (_, error) = told(&engine("1.24", list.to_string()), false);
        assert!(error.starts_with("container a\u{e9}\u{e9}"), "{error}");
    }

    #[test]
    fn answers_of_real_engines_are_read() {
        let docker = include_str!("testdata/docker-20.10.24.json");
        let podman = include_str!("testdata/podman-4.3.1.json");
        for (list, front, back, others) in [
            (docker, "172.17.0.2", "172.18.0.2", ["172.17.0.2:80", "172.17.0.4:3000"]),
            (podman, "10.89.0.9", "10.89.1.2", ["10.89.0.12:80", "10.89.0.9:80"]),
        ] {
            let server = |address: &str| format!(r#"{{"server":"{address}"}}"#);
            let first = format!(r#"{{"route":"a","server":"{front}:8080","weight":2}}"#);
            let both = format!("[{first},{}]", server(&format!("{back}:8080")));
            let all = [others[0], others[1], &format!("{back}:80")].map(server).join(",");
            let db = server(&format!("{back}:5432"));
            let (lists, _) = told(&engine("1.24", list), true);
            assert_eq!(lists[0], format!("app={both} v.test=[{all}] stream/db=[{db}]"));
        }
    }
}
