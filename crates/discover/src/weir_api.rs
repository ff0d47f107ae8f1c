//! The server's API, at its control socket or in a location with `api write=on`.

use std::time::Duration;

use serde_json::Value;

use crate::core::{AnsweringServer, PutList, ServerAnswer};
use crate::http::{HttpClient, HttpPlace, HttpReply, HttpRequest};
use crate::wanted::GroupKey;

/// How long the server may take; its workers have five seconds for a change.
const REPLY_MAX: Duration = Duration::from_secs(15);

pub struct WeirApi {
    client: HttpClient,
    owner: String,
    /// Which server has answered last.
    server: Option<String>,
}

impl WeirApi {
    pub fn new(place: HttpPlace, owner: String) -> Self {
        Self { client: HttpClient::new(place), owner, server: None }
    }

    pub fn which(&mut self) -> Result<AnsweringServer, String> {
        let is_socket = self.client.place().is_socket();
        let value = self.get(if is_socket { "/status" } else { "/9/nginx" })?;
        let process = if is_socket { &value["pid"] } else { &value["ppid"] };
        let server = format!("{process} {}", value["generation"]);
        let mut owned = Vec::new();
        if is_socket && self.server.as_ref() != Some(&server) {
            let all = self.get("/upstreams")?;
            owned = owned_by(&self.owner, &all);
        }
        self.server = Some(server.clone());
        Ok(AnsweringServer { server, owned })
    }

    fn get(&mut self, path: &str) -> Result<Value, String> {
        let reply = self.client.ask(&HttpRequest::get(path, REPLY_MAX));
        let reply = reply.map_err(|error| error.to_string())?;
        if reply.status != 200 {
            return Err(format!("{path} was answered {}", reply.status));
        }
        serde_json::from_slice(&reply.body).map_err(|error| error.to_string())
    }

    pub fn put(&mut self, put: &PutList) -> ServerAnswer {
        let argument = if put.allows_empty { "?allow_empty=1" } else { "" };
        let path = format!("{}/servers{argument}", put.group.path());
        let owner = self.owner.clone();
        let fields = [
            ("Content-Type", "application/json"),
            ("Weir-Owner", &*owner),
            ("Weir-Version", &*put.version),
        ];
        self.ask("PUT", &path, &fields, &put.json)
    }

    pub fn release(&mut self, group: &GroupKey) -> ServerAnswer {
        self.ask("DELETE", &format!("{}/owner", group.path()), &[], "")
    }

    fn ask(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> ServerAnswer {
        let request = HttpRequest { method, path, fields, body, reply_max: REPLY_MAX };
        match self.client.ask(&request) {
            Ok(reply) => answer(&reply),
            Err(error) => ServerAnswer::Failed(error.to_string()),
        }
    }
}

/// The groups of an owner in the list of all groups.
fn owned_by(owner: &str, all: &Value) -> Vec<GroupKey> {
    let blocks = ["http", "stream"].into_iter().filter_map(|block| {
        let groups = all[block].as_object()?;
        Some(
            groups
                .iter()
                .filter(|(_, group)| group["owner"] == owner)
                .filter_map(move |(name, _)| GroupKey::parse(&format!("{block}/{name}")).ok()),
        )
    });
    blocks.flatten().collect()
}

fn answer(reply: &HttpReply) -> ServerAnswer {
    let error = serde_json::from_slice::<Value>(&reply.body).unwrap_or_default();
    let error = &error["error"];
    let why = match error["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("the server answered {}", reply.status),
    };
    match (reply.status, error["code"].as_str()) {
        (200..=299, _) => ServerAnswer::Made,
        (404, Some("UpstreamNotFound")) => ServerAnswer::Unknown,
        (409, Some("UpstreamOwned")) => ServerAnswer::Owned(why),
        (500, Some("StateNotWritten")) => ServerAnswer::Unmade(why),
        // Somebody may change what these depend on.
        (401 | 403 | 404 | 405 | 429, _) => ServerAnswer::Unmade(why),
        (400..=499, _) => ServerAnswer::Refused(why),
        _ => ServerAnswer::Failed(why),
    }
}

#[cfg(test)]
mod tests {
    use testing::Peer;

    use super::*;

    fn api(peer: &Peer) -> WeirApi {
        let url = format!("http://{}/api", peer.address);
        let place = HttpPlace::parse(&url, std::path::Path::new("")).unwrap();
        WeirApi::new(place, "me".to_owned())
    }

    fn reply(status: u16, json: &str) -> String {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{json}", json.len())
    }

    #[test]
    fn a_list_is_one_request_with_owner_and_version() {
        let peer = Peer::replying(&reply(200, "{}"));
        let put = PutList {
            group: GroupKey::parse("stream/a b").unwrap(),
            version: "v".to_owned(),
            json: "[]".into(),
            allows_empty: true,
        };
        assert_eq!(api(&peer).put(&put), ServerAnswer::Made);
        let asked = peer.asked();
        let path = "PUT /api/9/stream/upstreams/a%20b/servers?allow_empty=1 HTTP/1.1\n";
        assert!(asked.starts_with(path), "{asked}");
        assert!(asked.contains("\nWeir-Owner: me\nWeir-Version: v\n"), "{asked}");
        assert!(asked.ends_with("\n\n[]"), "{asked}");
    }

    #[test]
    fn answers_mean_different_things() {
        let told = |status: u16, code: &str| {
            let json = format!(r#"{{"error":{{"text":"why","code":"{code}"}}}}"#);
            let peer = Peer::replying(&reply(status, &json));
            api(&peer).release(&GroupKey::parse("a").unwrap())
        };
        let why = || "why".to_owned();
        assert_eq!(told(204, ""), ServerAnswer::Made);
        assert_eq!(told(404, "UpstreamNotFound"), ServerAnswer::Unknown);
        assert_eq!(told(409, "UpstreamOwned"), ServerAnswer::Owned(why()));
        assert_eq!(told(500, "StateNotWritten"), ServerAnswer::Unmade(why()));
        assert_eq!(told(405, "MethodDisabled"), ServerAnswer::Unmade(why()));
        assert_eq!(told(400, "UpstreamBadWeight"), ServerAnswer::Refused(why()));
        assert_eq!(told(503, "TooManyChanges"), ServerAnswer::Failed(why()));
    }

    #[test]
    fn groups_of_an_owner_are_found() {
        let all = serde_json::json!({"http": {"a": {"owner": "me"}, "b": {"owner": "you"},
            "c": {}}, "stream": {"d": {"owner": "me"}}});
        let names: Vec<_> = owned_by("me", &all).iter().map(GroupKey::to_string).collect();
        assert_eq!(names, ["a", "stream/d"]);
    }

    #[test]
    fn a_server_that_was_started_again_or_reloaded_is_another() {
        let peer = Peer::replying(&reply(200, r#"{"pid":7,"ppid":3,"generation":2}"#));
        let which = api(&peer).which().map(|which| which.server);
        assert_eq!(which, Ok("3 2".to_owned()));
        assert!(peer.asked().starts_with("GET /api/9/nginx "));
        assert!(api(&Peer::replying(&reply(200, "x"))).which().is_err());
        assert!(api(&Peer::replying(&reply(404, "{}"))).which().is_err());
    }
}
