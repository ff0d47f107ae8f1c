//! Kubernetes: the EndpointSlices of a service, listed once and watched from that version on.
//!
//! An endpoint that terminates and still serves drains.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Report, Source, host_port};
use crate::http::{HttpClient, HttpRequest};
use crate::json_lines::JsonLines;
use crate::server_entry::ServerEntry;
use crate::wanted::{GroupKey, GroupedServers, percent_encoded};

const REPLY_MAX: Duration = Duration::from_secs(30);
/// How long the API server keeps a watch open.
const WATCH_SECONDS: u64 = 60;
/// How long a watch may be silent, its end included.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS + 30);

/// Between watches, should the server end them at once.
const PAUSE: Duration = Duration::from_millis(100);

pub struct KubernetesSource {
    client: HttpClient,
    service: KubernetesService,
    group: GroupKey,
    /// Read for each list and watch, because the token is replaced now and then.
    token: Option<PathBuf>,
    slices: BTreeMap<String, Value>,
}

/// `NAMESPACE/SERVICE`, `NAMESPACE/SERVICE:PORT`
#[derive(Clone, Debug, PartialEq)]
pub struct KubernetesService {
    namespace: String,
    name: String,
    /// The name or the number of the port; `None`: the first one.
    port: Option<String>,
}

impl KubernetesService {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (place, port) = match text.split_once(':') {
            Some((place, port)) => (place, Some(port.to_owned())),
            None => (text, None),
        };
        let parts = place.split_once('/').filter(|(namespace, name)| {
            !namespace.is_empty() && !name.is_empty() && !name.contains('/')
        });
        let (namespace, name) =
            parts.ok_or_else(|| format!("\"{text}\" is not NAMESPACE/SERVICE"))?;
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), port })
    }

    /// The group that has no other name.
    pub fn default_group(&self) -> &str {
        &self.name
    }

    fn path(&self) -> String {
        let label = percent_encoded(&format!("kubernetes.io/service-name={}", self.name));
        let namespace = percent_encoded(&self.namespace);
        format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector={label}"
        )
    }
}

/// What comes after a message of a watch.
#[derive(Debug, PartialEq)]
enum WatchState {
    /// Whether something has changed.
    Goes(bool),
    /// The version is too old: everything is to be listed again.
    Expired,
}

impl KubernetesSource {
    pub fn new(
        client: HttpClient,
        service: KubernetesService,
        group: GroupKey,
        token: Option<PathBuf>,
    ) -> Self {
        Self { client, service, group, token, slices: BTreeMap::new() }
    }

    fn authorization(&self) -> Result<Option<String>, String> {
        let read = self.token.as_ref().map(|file| {
            std::fs::read_to_string(file)
                .map(|token| format!("Bearer {}", token.trim()))
                .map_err(|error| format!("{}: {error}", file.display()))
        });
        read.transpose()
    }

    /// Lists everything; returns the version.
    fn list(&mut self) -> Result<String, String> {
        let (path, authorization) = (self.service.path(), self.authorization()?);
        let fields: Vec<_> =
            authorization.iter().map(|value| ("Authorization", &**value)).collect();
        let request = HttpRequest { fields: &fields, ..HttpRequest::get(&path, REPLY_MAX) };
        let reply = self.client.ask(&request).map_err(|error| error.to_string())?;
        if reply.status != 200 {
            return Err(format!("the API server answered {}", reply.status));
        }
        let list: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        let version = version(&list).ok_or("the list has no resourceVersion")?;
        self.slices.clear();
        for slice in list["items"].as_array().ok_or("the list has no items")? {
            self.slices.insert(name(slice)?, slice.clone());
        }
        Ok(version)
    }

    /// `None`: the version is too old.
    fn open(&self, version: &str) -> Result<Option<JsonLines>, String> {
        let path = format!(
            "{}&watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
             &resourceVersion={}",
            self.service.path(),
            percent_encoded(version)
        );
        let authorization = self.authorization()?;
        let fields: Vec<_> =
            authorization.iter().map(|value| ("Authorization", &**value)).collect();
        let request = HttpRequest { fields: &fields, ..HttpRequest::get(&path, REPLY_MAX) };
        let (reply, body) = self.client.stream(&request).map_err(|error| error.to_string())?;
        match reply.status {
            200 => Ok(Some(JsonLines::new(body))),
            410 => Ok(None),
            status => Err(format!("the API server answered {status} to a watch")),
        }
    }

    fn take(&mut self, event: &Value, known: &mut String) -> Result<WatchState, String> {
        let object = &event["object"];
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ERROR" {
            return match object["code"].as_u64() {
                Some(410) => Ok(WatchState::Expired),
                _ => Err(format!("the watch ended: {}", object["message"])),
            };
        }
        let new = object["metadata"]["resourceVersion"].as_str();
        *known = new.ok_or("an event has no resourceVersion")?.to_owned();
        match kind {
            "ADDED" | "MODIFIED" => _ = self.slices.insert(name(object)?, object.clone()),
            "DELETED" => _ = self.slices.remove(&name(object)?),
            "BOOKMARK" => return Ok(WatchState::Goes(false)),
            other => return Err(format!("an unknown event: {other}")),
        }
        Ok(WatchState::Goes(true))
    }

    fn tell(&self, report: Report<'_>) -> Result<(), String> {
        // An endpoint that moves from one slice to another may be in both for a moment.
        let mut drains = BTreeMap::new();
        for slice in self.slices.values() {
            for (address, is_draining) in endpoints(slice, self.service.port.as_deref())? {
                let known = drains.entry(address).or_insert(is_draining);
                *known = *known && is_draining;
            }
        }
        let servers = drains.into_iter().map(|(address, is_draining)| {
            let mut server = ServerEntry::new(&address);
            let set = if is_draining { server.set("drain", "true") } else { Ok(()) };
            set.map(|()| server)
        });
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let mut grouped = GroupedServers::default();
        grouped.add(&self.group, servers);
        report(grouped.into_wanted()?)
    }
}

impl Source for KubernetesSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        loop {
            let mut version = self.list()?;
            self.tell(report)?;
            while let Some(mut events) = self.open(&version)? {
                let state = loop {
                    let event = events.next(Instant::now() + SILENCE_MAX);
                    // Its time is over; the next one goes on from here.
                    let event = event.map_err(|error| format!("the watch was cut: {error}"))?;
                    let Some(event) = event else { break WatchState::Goes(true) };
                    match self.take(&event, &mut version)? {
                        WatchState::Goes(true) => self.tell(report)?,
                        WatchState::Goes(false) => {}
                        WatchState::Expired => break WatchState::Expired,
                    }
                };
                if state == WatchState::Expired {
                    break;
                }
                // The lists are known to be right.
                self.tell(report)?;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn version(list: &Value) -> Option<String> {
    let version = list["metadata"]["resourceVersion"].as_str();
    version.filter(|version| !version.is_empty()).map(str::to_owned)
}

fn name(slice: &Value) -> Result<String, String> {
    let name = slice["metadata"]["name"].as_str();
    name.map(str::to_owned).ok_or_else(|| "a slice has no name".to_owned())
}

/// The addresses of a slice, and whether each drains.
fn endpoints(slice: &Value, port: Option<&str>) -> Result<Vec<(String, bool)>, String> {
    if slice["addressType"] == "FQDN" {
        return Err(format!("slice {}: names are not supported", name(slice)?));
    }
    let ports = slice["ports"].as_array().into_iter().flatten();
    let is_it = |one: &&Value| match port {
        None => true,
        Some(port) => {
            one["name"].as_str() == Some(port) || one["port"].as_u64() == port.parse().ok()
        }
    };
    let port = ports.clone().find(is_it).and_then(|one| one["port"].as_u64());
    // A slice without the port has none of its endpoints.
    let Some(port) = port else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        let condition = |name: &str| endpoint["conditions"][name].as_bool();
        let terminates = condition("terminating") == Some(true);
        let is_ready = condition("ready") != Some(false) && !terminates;
        let is_draining = terminates && condition("serving") != Some(false);
        if !is_ready && !is_draining {
            continue;
        }
        // All addresses of an endpoint are the same; the first is used, as by kube-proxy.
        let address = endpoint["addresses"][0].as_str();
        let address = address.ok_or_else(|| "an endpoint has no address".to_owned())?;
        found.push((host_port(address, port), is_draining));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testing::Peer;

    use super::*;
    use crate::sources::testing::{lists, place};

    fn slice(name: &str, version: u64, endpoints: Value) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": version.to_string()},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "metrics", "port": 9100}, {"name": "http", "port": 8080}]})
    }

    fn ready(address: &str) -> Value {
        json!({"addresses": [address], "conditions": {"ready": true}})
    }

    fn list(version: u64, slices: &[Value]) -> String {
        let metadata = json!({"resourceVersion": version.to_string()});
        let body = json!({"metadata": metadata, "items": slices}).to_string();
        format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len())
    }

    /// A watch with these events; `is_ended`: in order, otherwise it is cut.
    fn watch(events: &[(&str, Value)], is_ended: bool) -> String {
        let line = |(kind, object): &(&str, Value)| {
            format!("{}\n", json!({"type": kind, "object": object}))
        };
        let lines: String = events.iter().map(line).collect();
        let end = if is_ended { "0\r\n\r\n" } else { "" };
        let length = lines.len();
        format!("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{length:x}\r\n{lines}\r\n{end}")
    }

    fn source(peer: &Peer, service: &str) -> KubernetesSource {
        let service = KubernetesService::parse(service).unwrap();
        let group = GroupKey::parse("app").unwrap();
        KubernetesSource::new(HttpClient::new(place(peer)), service, group, None)
    }

    #[test]
    fn slices_are_listed_and_watched_over_bookmarks_ends_and_an_old_version() {
        let peer = Peer::playing(|mut connection| {
            let request = connection.request()?;
            let bookmark = json!({"metadata": {"resourceVersion": "20"}});
            let reply = if !request.contains("watch=1") {
                let first = slice("a", 1, json!([ready("10.0.0.1")]));
                list(10, &[first])
            } else if request.contains("resourceVersion=10 ") {
                let added = slice("b", 12, json!([ready("10.0.0.2")]));
                watch(&[("ADDED", added), ("BOOKMARK", bookmark)], true)
            } else if request.contains("resourceVersion=20 ") {
                let deleted = slice("b", 21, json!([]));
                watch(&[("DELETED", deleted), ("ERROR", json!({"code": 410}))], false)
            } else {
                "HTTP/1.1 500 X\nContent-Length: 0\n\n".to_owned()
            };
            connection.send(&reply);
            Some(())
        });
        let (told, _) = lists(&mut source(&peer, "shop/web:http"), 5);
        let one = r#"app=[{"server":"10.0.0.1:8080"}]"#;
        let two = r#"app=[{"server":"10.0.0.1:8080"},{"server":"10.0.0.2:8080"}]"#;
        assert_eq!(told, [one, two, two, one, one], "listed, added, ended, deleted, listed again");
        let path = "GET /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices\
            ?labelSelector=kubernetes.io%2Fservice-name%3Dweb HTTP";
        let asked = peer.asked();
        assert!(asked.starts_with(path), "{asked}");
    }

    #[test]
    fn cut_streams_and_nonsense_are_errors() {
        let bookmark = json!({"metadata": {"resourceVersion": "2"}});
        for (second, expected) in [
            (watch(&[("BOOKMARK", bookmark)], false), "the watch was cut"),
            (watch(&[("ERROR", json!({"code": 500, "message": "no"}))], true), "the watch ended"),
            (watch(&[("ADDED", json!({}))], true), "an event has no resourceVersion"),
            ("HTTP/1.1 403 No\nContent-Length: 0\n\n".to_owned(), "answered 403"),
        ] {
            let peer = Peer::playing(move |mut connection| {
                let request = connection.request()?;
                let reply = if request.contains("watch=1") { second.clone() } else { list(1, &[]) };
                connection.send(&reply);
                Some(())
            });
            let (told, error) = lists(&mut source(&peer, "a/b"), 5);
            assert_eq!(told, ["app=[]"]);
            assert!(error.contains(expected), "{error}");
        }
        for wrong in ["{}", r#"{"metadata":{"resourceVersion":"1"}}"#, "x"] {
            let length = wrong.len();
            let reply = format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\n{wrong}");
            let (told, _) = lists(&mut source(&Peer::replying(&reply), "a/b"), 5);
            assert!(told.is_empty(), "{wrong}");
        }
    }

    #[test]
    fn endpoints_are_used_as_their_conditions_say() {
        let endpoints_of = |port: Option<&str>| {
            let all = json!([
                ready("10.0.0.1"),
                {"addresses": ["10.0.0.2"], "conditions": {}},
                {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.4"],
                    "conditions": {"ready": false, "serving": true, "terminating": true}},
                {"addresses": ["10.0.0.5"],
                    "conditions": {"ready": false, "serving": false, "terminating": true}}
            ]);
            endpoints(&slice("a", 1, all), port).unwrap()
        };
        let expected =
            [("10.0.0.1:8080", false), ("10.0.0.2:8080", false), ("10.0.0.4:8080", true)];
        let expected = expected.map(|(address, drains)| (address.to_owned(), drains));
        assert_eq!(endpoints_of(Some("http")), expected);
        assert_eq!(endpoints_of(Some("8080")), expected);
        assert!(endpoints_of(None)[0].0.ends_with(":9100"));
        assert_eq!(endpoints_of(Some("none")), []);
        assert!(KubernetesService::parse("web").is_err());
    }
}
