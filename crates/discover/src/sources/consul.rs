//! Consul: blocking queries for the instances of a service that pass their checks.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{Report, Source, host_port};
use crate::http::{HttpClient, HttpReply, HttpRequest};
use crate::secret::read_secret;
use crate::server_entry::ServerEntry;
use crate::wanted::{GroupKey, GroupedServers, percent_encoded};

/// How long Consul waits for a change; it adds up to a sixteenth.
const WAIT: &str = "55s";
const WAIT_MAX: Duration = Duration::from_secs(75);
/// How long an answer may take that is not waited for.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// How much of Consul's reason for a refusal is told.
const WHY_CHARS_MAX: usize = 200;

/// Between queries, should they not block.
const PAUSE: Duration = Duration::from_millis(50);

pub struct ConsulSource {
    pub client: HttpClient,
    /// After the host: the path of the service, with arguments.
    pub path: String,
    pub group: GroupKey,
    pub token: Option<PathBuf>,
}

impl ConsulSource {
    /// The path of a service.
    pub fn path(service: &str, tag: Option<&str>) -> String {
        let encode = percent_encoded;
        let tag = tag.map_or(String::new(), |tag| format!("&tag={}", encode(tag)));
        format!("/v1/health/service/{}?passing=1{tag}", encode(service))
    }

    fn ask(&mut self, index: u64) -> Result<HttpReply, String> {
        let (blocks, reply_max) = match index {
            0 => (String::new(), REPLY_MAX),
            _ => (format!("&index={index}&wait={WAIT}"), WAIT_MAX),
        };
        let path = format!("{}{blocks}", self.path);
        let token = self.token.as_deref().map(read_secret).transpose()?;
        let fields: Vec<_> = token.iter().map(|token| ("X-Consul-Token", &**token)).collect();
        let request = HttpRequest { fields: &fields, ..HttpRequest::get(&path, reply_max) };
        let reply = self.client.ask(&request).map_err(|error| error.to_string())?;
        // To a token that may read nothing, everything looks empty. Consul does not say so of
        // requests without one.
        if reply.field("X-Consul-Results-Filtered-By-ACLs") == Some("true") {
            return Err("Consul left out what the token may not read".to_owned());
        }
        if reply.status == 200 {
            return Ok(reply);
        }
        let why = String::from_utf8_lossy(&reply.body);
        let why: String = why.trim().chars().take(WHY_CHARS_MAX).collect();
        Err(format!("Consul answered {} {why}", reply.status).trim_end().to_owned())
    }
}

impl Source for ConsulSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        let mut index = 0;
        loop {
            let reply = self.ask(index)?;
            index = next_index(index, reply.field("X-Consul-Index"))?;
            let mut grouped = GroupedServers::default();
            grouped.add(&self.group, servers(&reply.body)?);
            report(grouped.into_wanted()?)?;
            std::thread::sleep(PAUSE);
        }
    }
}

/// An index that goes back means that Consul has lost its state: it is asked without one.
fn next_index(before: u64, field: Option<&str>) -> Result<u64, String> {
    let index = field.and_then(|text| text.parse().ok()).filter(|index| *index > 0);
    let index = index.ok_or("Consul's answer has no index")?;
    Ok(if index < before { 0 } else { index })
}

fn servers(body: &[u8]) -> Result<Vec<ServerEntry>, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let entries = value.as_array().ok_or("Consul's answer is no list")?;
    entries.iter().map(server).collect()
}

fn server(entry: &Value) -> Result<ServerEntry, String> {
    let (service, node) = (&entry["Service"], &entry["Node"]);
    let own = service["Address"].as_str().filter(|address| !address.is_empty());
    let address = own.or(node["Address"].as_str()).filter(|address| !address.is_empty());
    let id = service["ID"].as_str().unwrap_or_default();
    let told = |why: String| format!("service {id}: {why}");
    let address = address.ok_or_else(|| told("it has no address".to_owned()))?;
    let port = service["Port"].as_u64().filter(|port| (1..=65535).contains(port));
    let port = port.ok_or_else(|| told("it has no port".to_owned()))?;
    let mut server = ServerEntry::new(&host_port(address, port));
    let weight = service["Weights"]["Passing"].as_u64().filter(|weight| *weight > 1);
    if let Some(weight) = weight {
        server.set("weight", &weight.to_string()).map_err(told)?;
    }
    for (name, value) in service["Meta"].as_object().into_iter().flatten() {
        if let Some(name) = name.strip_prefix("weir_") {
            server.set(name, value.as_str().unwrap_or_default()).map_err(told)?;
        }
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use testing::Peer;

    use super::*;
    use crate::sources::testing::{lists, place};

    fn source(peer: &Peer, folder: &testing::Folder) -> ConsulSource {
        ConsulSource {
            client: HttpClient::new(place(peer)),
            path: ConsulSource::path("web a", Some("blue")),
            group: GroupKey::parse("app").unwrap(),
            token: Some(folder.write("token", "secret\n")),
        }
    }

    fn reply(index: u64, ports: &[u16]) -> String {
        let entry = |port: &u16| {
            format!(
                r#"{{"Node":{{"Address":"10.0.0.1"}},"Service":{{"ID":"x","Address":"",
                "Port":{port},"Weights":{{"Passing":1}},"Meta":{{"a":"b"}}}}}}"#
            )
        };
        let body = format!("[{}]", ports.iter().map(entry).collect::<Vec<_>>().join(","));
        let length = body.len();
        format!("HTTP/1.1 200 OK\nX-Consul-Index: {index}\nContent-Length: {length}\n\n{body}")
    }

    #[test]
    fn queries_block_on_the_last_index_and_begin_anew_if_it_goes_back() {
        let peer = Peer::answering(|request| {
            if request.contains("index=9&") {
                reply(3, &[81])
            } else if request.contains("index=3&") {
                reply(4, &[81, 82])
            } else if request.contains("index=4&") {
                "HTTP/1.1 500 X\nContent-Length: 0\n\n".to_owned()
            } else if request.contains("X-Consul-Token: secret") {
                reply(9, &[80])
            } else {
                panic!("{request}")
            }
        });
        let (lists, error) = lists(&mut source(&peer, &testing::Folder::new()), 2);
        assert_eq!(
            lists,
            [r#"app=[{"server":"10.0.0.1:80"}]"#, r#"app=[{"server":"10.0.0.1:81"}]"#]
        );
        assert_eq!(error, "enough");
        let first = peer.asked();
        assert!(first.starts_with("GET /v1/health/service/web%20a?passing=1&tag=blue HTTP"));
        assert!(peer.asked().contains("&index=9&wait=55s HTTP"));
        assert_eq!((next_index(9, Some("3")), next_index(3, Some("4"))), (Ok(0), Ok(4)));
        assert!(next_index(3, Some("0")).is_err() && next_index(3, None).is_err());
    }

    #[test]
    fn an_answer_of_a_real_agent_is_read() {
        let expected = ServerEntry::from_words(&["10.0.0.1:81"]).unwrap();
        assert_eq!(servers(include_bytes!("testdata/consul-1.13.9.json")), Ok(vec![expected]));
    }

    #[test]
    fn refusals_and_filtered_answers_are_errors() {
        let folder = testing::Folder::new();
        for (reply, expected) in [
            ("403 Forbidden\nContent-Length: 13\n\nACL not found", "answered 403 ACL not found"),
            (
                "200 OK\nX-Consul-Index: 18\nX-Consul-Results-Filtered-By-Acls: true\n\
                 Content-Length: 3\n\n[]\n",
                "what the token may not read",
            ),
            ("200 OK\nContent-Length: 2\n\n[]", "has no index"),
        ] {
            let peer = Peer::replying(&format!("HTTP/1.1 {reply}"));
            let (lists, error) = lists(&mut source(&peer, &folder), 1);
            assert!(lists.is_empty() && error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn nonsense_is_an_error_and_an_empty_answer_an_empty_list() {
        for wrong in ["{}", "[", r#"[{"Service":{"Port":1}}]"#, r#"[{"Node":{"Address":"a"}}]"#] {
            assert!(servers(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(servers(b"[]"), Ok(Vec::new()));
        let whole = r#"[{"Node":{"Address":"a"},"Service":{"Address":"fd00::1","Port":80,
            "Weights":{"Passing":5},"Meta":{"weir_backup":"true"}}}]"#;
        let expected = ServerEntry::from_words(&["[fd00::1]:80", "weight=5", "backup"]).unwrap();
        assert_eq!(servers(whole.as_bytes()), Ok(vec![expected]));
    }
}
