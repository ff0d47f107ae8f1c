//! Docker and Podman: running containers with labels as Angie reads them, and with `VIRTUAL_HOST`
//! as nginx-proxy does.
//!
//! Events only tell that something has changed; all containers are then listed again. The stream of
//! events is opened before the first list, so that nothing is missed between them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Report, Source, host_port};
use crate::http::{HttpClient, HttpRequest};
use crate::json_lines::JsonLines;
use crate::server_entry::ServerEntry;
use crate::wanted::{GroupKey, GroupedServers, WantedGroups, percent_encoded};

const REPLY_MAX: Duration = Duration::from_secs(20);
/// How long events are awaited before everything is listed again.
const EVENTS_MAX: Duration = Duration::from_secs(60);
/// The version of the API, which both engines have.
const VERSION: &str = "/v1.24";

pub struct DockerSource {
    client: HttpClient,
    /// Whether environments are looked at for `VIRTUAL_HOST`.
    reads_environment: bool,
    /// The environments of containers, which never change.
    environments: BTreeMap<String, Vec<String>>,
}

impl DockerSource {
    pub fn new(client: HttpClient, reads_environment: bool) -> Self {
        Self { client, reads_environment, environments: BTreeMap::new() }
    }

    fn events(&self) -> Result<JsonLines, String> {
        let filters = percent_encoded(r#"{"type":["container","network"]}"#);
        let path = format!("{VERSION}/events?filters={filters}");
        let opened = self.client.stream(&HttpRequest::get(&path, REPLY_MAX));
        let (reply, body) = opened.map_err(|error| error.to_string())?;
        match reply.status {
            200 => Ok(JsonLines::new(body)),
            status => Err(format!("the engine answered {status} to events")),
        }
    }

    fn get(&mut self, path: &str) -> Result<Option<Value>, String> {
        let reply = self.client.ask(&HttpRequest::get(path, REPLY_MAX));
        let reply = reply.map_err(|error| error.to_string())?;
        match reply.status {
            200 => serde_json::from_slice(&reply.body).map(Some).map_err(|error| error.to_string()),
            404 => Ok(None),
            status => Err(format!("the engine answered {status}")),
        }
    }

    fn list(&mut self) -> Result<WantedGroups, String> {
        let filters = percent_encoded(r#"{"status":["running"]}"#);
        let all = self.get(&format!("{VERSION}/containers/json?filters={filters}"))?;
        let all = all.as_ref().and_then(Value::as_array).ok_or("the engine lists nothing")?;
        let mut grouped = GroupedServers::default();
        let ids: Vec<&str> = all.iter().filter_map(|one| one["Id"].as_str()).collect();
        self.environments.retain(|id, _| ids.contains(&&**id));
        for container in all {
            let id = container["Id"].as_str().unwrap_or_default();
            let environment = self.environment(id)?;
            add(container, &environment, &mut grouped)
                .map_err(|why| format!("container {}: {why}", &id[..id.len().min(12)]))?;
        }
        grouped.into_wanted()
    }

    fn environment(&mut self, id: &str) -> Result<Vec<String>, String> {
        if !self.reads_environment {
            return Ok(Vec::new());
        }
        if let Some(known) = self.environments.get(id) {
            return Ok(known.clone());
        }
        let path = format!("{VERSION}/containers/{}/json", percent_encoded(id));
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
        loop {
            let mut events = self.events()?;
            let until = Instant::now() + EVENTS_MAX;
            loop {
                report(self.list()?)?;
                match events.next(until) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Err("the stream of events has ended".to_owned()),
                    Err(error) if error.kind() == std::io::ErrorKind::TimedOut => break,
                    Err(error) => return Err(format!("the stream of events was cut: {error}")),
                }
            }
        }
    }
}

/// Adds the servers of a container.
fn add(
    container: &Value,
    environment: &[String],
    grouped: &mut GroupedServers,
) -> Result<(), String> {
    let labels = container["Labels"].as_object();
    let label = |name: &str| labels.and_then(|labels| labels.get(name)?.as_str());
    let mut servers = BTreeMap::<(&str, &str), BTreeMap<&str, &str>>::new();
    for (name, value) in labels.into_iter().flatten() {
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
    let address = || address(container, label("angie.network"));
    for ((block, group), mut parameters) in servers {
        let port = parameters.remove("port").and_then(|port| port.parse::<u16>().ok());
        let port = port.ok_or_else(|| format!("group {group}: a port is missing"))?;
        let mut server = ServerEntry::new(&host_port(&address()?, port.into()));
        for (name, value) in parameters {
            let name = if name == "sid" { "route" } else { name };
            server.set(name, value)?;
        }
        grouped.add(&GroupKey::parse(&format!("{block}/{group}"))?, [server]);
    }
    add_virtual_hosts(container, environment, address, grouped)
}

/// nginx-proxy's `VIRTUAL_HOST`: the groups have the names of the hosts.
fn add_virtual_hosts(
    container: &Value,
    environment: &[String],
    address: impl Fn() -> Result<String, String>,
    grouped: &mut GroupedServers,
) -> Result<(), String> {
    let value = |name: &str| {
        let lines = environment.iter().filter_map(|line| line.split_once('='));
        lines.clone().find(|(other, _)| *other == name).map(|(_, value)| value)
    };
    let Some(hosts) = value("VIRTUAL_HOST") else { return Ok(()) };
    let said = value("VIRTUAL_PORT").map(|port| port.trim().parse::<u16>());
    let said = said.transpose().map_err(|_| "invalid VIRTUAL_PORT".to_owned())?;
    let ports = container["Ports"].as_array().into_iter().flatten();
    let mut open: Vec<u64> = ports
        .filter(|port| port["Type"] == "tcp")
        .filter_map(|port| port["PrivatePort"].as_u64())
        .collect();
    open.sort_unstable();
    open.dedup();
    let only = if let [only] = open[..] { only } else { 80 };
    let server = ServerEntry::new(&host_port(&address()?, said.map_or(only, u64::from)));
    for host in hosts.split(',').map(str::trim).filter(|host| !host.is_empty()) {
        grouped.add(&GroupKey::parse(host)?, [server.clone()]);
    }
    Ok(())
}

/// The address in the named network, or in the only one.
fn address(container: &Value, network: Option<&str>) -> Result<String, String> {
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let of = |settings: &Value| {
        let texts = [settings["IPAddress"].as_str(), settings["GlobalIPv6Address"].as_str()];
        texts.into_iter().flatten().find(|address| !address.is_empty()).map(str::to_owned)
    };
    let found = match network {
        Some(network) => networks.and_then(|networks| of(networks.get(network)?)),
        None => networks.into_iter().flatten().find_map(|(_, settings)| of(settings)),
    };
    found.ok_or_else(|| match network {
        Some(network) => format!("it has no address in the network {network}"),
        None => "it has no address".to_owned(),
    })
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
        add(&container, &environment, &mut grouped)?;
        Ok(shown(&grouped.into_wanted()?))
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
            json!({"angie.http.upstreams.app.port": "1", "angie.network": "host"}),
            json!({"angie.http.upstreams.app.port": "1", "angie.network": "none"}),
        ] {
            assert!(added(container(wrong.clone()), &[]).is_err(), "{wrong}");
        }
        assert_eq!(added(json!({"Labels": null}), &[]), Ok(String::new()), "none of ours");
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

    #[test]
    fn an_event_lists_everything_again() {
        let peer = Peer::playing(|mut connection| {
            let request = connection.request()?;
            let reply = if request.starts_with("GET /v1.24/events?filters=%7B%22type") {
                "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\r\n{}\n\r\n".to_owned()
            } else {
                let labels = json!({"angie.http.upstreams.app.port": "80"});
                let body = json!([container(labels)]).to_string();
                format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len())
            };
            connection.send(&reply);
            Some(())
        });
        let mut source = DockerSource::new(HttpClient::new(place(&peer)), false);
        let (told, error) = lists(&mut source, 9);
        assert_eq!(told.len(), 2, "at the start and after the event");
        assert!(error.contains("was cut"), "{error}");
        assert!(peer.asked().starts_with("GET /v1.24/events"), "before the list");
    }
}
