//! etcd v3 by its JSON gateway: a prefix is read once, and then watched from that revision on.
//!
//! Keys are `PREFIX` `GROUP/ID`; a value is an object of the API, or an address with parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wire::base64;

use super::{Report, Source};
use crate::http::{HttpClient, HttpRequest};
use crate::json_lines::JsonLines;
use crate::secret::read_secret;
use crate::server_entry::{ServerEntry, ServerList};
use crate::wanted::{GROUPS_MAX, GroupKey, WantedGroups};

const REPLY_MAX: Duration = Duration::from_secs(30);
/// How long a watch goes on before it is begun anew: it tells nothing while nothing changes, so
/// this is how a connection is noticed that is dead.
const WATCH_MAX: Duration = Duration::from_secs(60);

pub struct EtcdSource {
    client: HttpClient,
    prefix: String,
    user: Option<EtcdUser>,
    /// The user's token, fetched for each read and each watch, so that it does not expire in use.
    token: Option<String>,
    /// Servers by their keys.
    entries: BTreeMap<GroupKey, BTreeMap<String, ServerEntry>>,
    /// The lists of all groups, except those that have changed since they were made.
    lists: WantedGroups,
    changed: BTreeSet<GroupKey>,
}

/// The user who authenticates to etcd.
#[derive(Clone, Debug)]
pub struct EtcdUser {
    pub name: String,
    /// The file with the password.
    pub password: PathBuf,
}

/// What a message of a watch means.
#[derive(Debug, PartialEq)]
enum WatchMessage {
    /// Whether something has changed, and the revision that is known now.
    Events(bool, u64),
    /// The revision is no longer there: everything is to be read again.
    Compacted,
}

impl EtcdSource {
    pub fn new(client: HttpClient, prefix: &str, user: Option<EtcdUser>) -> Self {
        Self {
            client,
            prefix: prefix.to_owned(),
            user,
            token: None,
            entries: BTreeMap::new(),
            lists: WantedGroups::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Fetches a token for the user, if there is one.
    fn authenticate(&mut self) -> Result<(), String> {
        self.token = None;
        let Some(EtcdUser { name, password }) = &self.user else { return Ok(()) };
        let body = json!({"name": name, "password": read_secret(password)?});
        let value = self.ask("/v3/auth/authenticate", &body)?;
        let token = value["token"].as_str().ok_or("etcd gave no token")?;
        if token.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("etcd gave an invalid token".to_owned());
        }
        self.token = Some(token.to_owned());
        Ok(())
    }

    fn ask(&mut self, path: &str, body: &Value) -> Result<Value, String> {
        let (body, fields) = (body.to_string(), fields(self.token.as_deref()));
        let request = HttpRequest {
            method: "POST",
            path,
            fields: &fields,
            body: &body,
            reply_max: REPLY_MAX,
        };
        let reply = self.client.ask(&request).map_err(|error| error.to_string())?;
        if reply.status != 200 {
            return Err(refusal(reply.status, &reply.body));
        }
        serde_json::from_slice(&reply.body).map_err(|error| error.to_string())
    }

    fn range(&self) -> Value {
        json!({"key": encoded(self.prefix.as_bytes()), "range_end": encoded(&end_of(&self.prefix))})
    }

    /// Reads everything; returns the revision.
    fn read(&mut self) -> Result<u64, String> {
        self.authenticate()?;
        let value = self.ask("/v3/kv/range", &self.range())?;
        let revision = revision(&value).ok_or("etcd's answer has no revision")?;
        self.entries.clear();
        self.lists.clear();
        self.changed.clear();
        for pair in value["kvs"].as_array().into_iter().flatten() {
            self.put(pair)?;
        }
        Ok(revision)
    }

    fn put(&mut self, pair: &Value) -> Result<(), String> {
        let (key, value) = (decoded(&pair["key"])?, decoded(&pair["value"])?);
        let told = |why: String| format!("key {key}: {why}");
        let group = self.group_of(&key).map_err(told)?;
        let server = match value.trim_start().starts_with(['{', '"']) {
            true => serde_json::from_str(&value)
                .map_err(|error| error.to_string())
                .and_then(|value| ServerEntry::from_json(&value)),
            false => ServerEntry::from_words(&value.split_whitespace().collect::<Vec<_>>()),
        };
        let server = server.map_err(told)?;
        self.changed.insert(group.clone());
        self.entries.entry(group).or_default().insert(key, server);
        Ok(())
    }

    fn remove(&mut self, key: &str) {
        // A key that names no group was not taken.
        let Ok(group) = self.group_of(key) else { return };
        let Some(servers) = self.entries.get_mut(&group) else { return };
        servers.remove(key);
        if servers.is_empty() {
            self.entries.remove(&group);
        }
        self.changed.insert(group);
    }

    fn group_of(&self, key: &str) -> Result<GroupKey, String> {
        let name = key.strip_prefix(&self.prefix).and_then(|name| name.rsplit_once('/'));
        let (group, _) = name.ok_or("it is not GROUP/ID")?;
        GroupKey::parse(group.trim_start_matches('/'))
    }

    fn tell(&mut self, report: Report<'_>) -> Result<(), String> {
        for group in std::mem::take(&mut self.changed) {
            let Some(servers) = self.entries.get(&group) else {
                self.lists.remove(&group);
                continue;
            };
            let list = ServerList::new(servers.values().cloned().collect());
            let list = list.map_err(|why| format!("{group}: {why}"))?;
            self.lists.insert(group, list);
        }
        match self.lists.len() {
            0..=GROUPS_MAX => report(self.lists.clone()),
            _ => Err(format!("more than {GROUPS_MAX} groups")),
        }
    }

    fn open(&self, revision: u64) -> Result<JsonLines, String> {
        let mut create = self.range();
        create["start_revision"] = json!(revision.to_string());
        let body = json!({ "create_request": create }).to_string();
        let fields = fields(self.token.as_deref());
        let request = HttpRequest {
            method: "POST",
            path: "/v3/watch",
            fields: &fields,
            body: &body,
            reply_max: REPLY_MAX,
        };
        let (reply, body) = self.client.stream(&request).map_err(|error| error.to_string())?;
        match reply.status {
            200 => Ok(JsonLines::new(body)),
            status => Err(format!("etcd answered {status} to a watch")),
        }
    }

    fn take(&mut self, message: &Value, revision_before: u64) -> Result<WatchMessage, String> {
        if let Some(why) = message["error"]["message"].as_str() {
            return Err(format!("the watch ended: {why}"));
        }
        let result = &message["result"];
        if result.get("compact_revision").is_some() {
            return Ok(WatchMessage::Compacted);
        }
        if result["canceled"] == true {
            let why = result["cancel_reason"].as_str().unwrap_or("etcd does not say why");
            return Err(format!("the watch was ended: {why}"));
        }
        let mut has_changed = false;
        for event in result["events"].as_array().into_iter().flatten() {
            has_changed = true;
            match event["type"].as_str() {
                Some("DELETE") => self.remove(&decoded(&event["kv"]["key"])?),
                _ => self.put(&event["kv"])?,
            }
        }
        let revision = revision(result).filter(|_| has_changed).unwrap_or(revision_before);
        Ok(WatchMessage::Events(has_changed, revision))
    }
}

impl Source for EtcdSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        let mut revision = self.read()?;
        self.tell(report)?;
        loop {
            let mut messages = self.open(revision + 1)?;
            let until = Instant::now() + WATCH_MAX;
            loop {
                let message = match messages.next(until) {
                    Ok(Some(message)) => message,
                    Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                        self.authenticate()?;
                        break;
                    }
                    Ok(None) => return Err("the watch has ended".to_owned()),
                    Err(error) => return Err(format!("the watch was cut: {error}")),
                };
                match self.take(&message, revision)? {
                    WatchMessage::Events(false, _) => {}
                    WatchMessage::Events(true, now) => {
                        revision = now;
                        self.tell(report)?;
                    }
                    WatchMessage::Compacted => {
                        revision = self.read()?;
                        self.tell(report)?;
                        break;
                    }
                }
            }
        }
    }
}

fn fields(token: Option<&str>) -> Vec<(&str, &str)> {
    let token = token.map(|token| ("Authorization", token));
    std::iter::once(("Content-Type", "application/json")).chain(token).collect()
}

/// Why etcd refuses a request.
fn refusal(status: u16, body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let why = value["message"].as_str().or_else(|| value["error"].as_str()).unwrap_or_default();
    format!("etcd answered {status} {why}").trim_end().to_owned()
}

fn revision(value: &Value) -> Option<u64> {
    let revision = &value["header"]["revision"];
    revision.as_u64().or_else(|| revision.as_str()?.parse().ok())
}

/// The first key after all that begin with a prefix.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

fn encoded(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    base64::encode(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn decoded(value: &Value) -> Result<String, String> {
    let mut out = Vec::new();
    let text = value.as_str().unwrap_or_default();
    let good = base64::decode(text.as_bytes(), &mut out);
    good.and_then(|()| String::from_utf8(out).ok()).ok_or_else(|| "a key is not text".to_owned())
}

#[cfg(test)]
mod tests {
    use testing::Peer;

    use super::*;
    use crate::sources::testing::{lists, place};

    fn pair(key: &str, value: &str) -> Value {
        json!({"key": encoded(key.as_bytes()), "value": encoded(value.as_bytes())})
    }

    fn reply(value: &Value) -> String {
        let body = value.to_string();
        format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len())
    }

    /// A watch whose messages are these, and which is cut then.
    fn stream(messages: &[Value]) -> String {
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        format!("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{:x}\r\n{lines}\r\n", lines.len())
    }

    fn events(revision: u64, events: Value) -> Value {
        json!({"result": {"header": {"revision": revision.to_string()}, "events": events}})
    }

    #[test]
    fn a_prefix_is_read_and_then_watched() {
        let peer = Peer::playing(|mut connection| {
            let request = connection.request()?;
            if request.starts_with("POST /v3/kv/range") {
                let kvs = [
                    pair("/w/app/1", "10.0.0.1:80 weight=2"),
                    pair("/w/stream/db/1", "10.0.0.9:1"),
                ];
                connection.send(&reply(&json!({"header": {"revision": "5"}, "kvs": kvs})));
            } else if request.contains(r#""start_revision":"6""#) {
                let put = json!([{"kv": pair("/w/app/2", r#"{"server":"10.0.0.2:80"}"#)}]);
                let delete = json!([{"type": "DELETE", "kv": {"key": encoded(b"/w/app/1")}}]);
                let created = json!({"result": {"created": true, "header": {"revision": "7"}}});
                connection.send(&stream(&[created, events(6, put), events(7, delete)]));
            }
            Some(())
        });
        let mut source = EtcdSource::new(HttpClient::new(place(&peer)), "/w/", None);
        let (told, error) = lists(&mut source, 9);
        let db = r#" stream/db=[{"server":"10.0.0.9:1"}]"#;
        assert_eq!(told[0], format!(r#"app=[{{"server":"10.0.0.1:80","weight":2}}]{db}"#));
        let both = r#"app=[{"server":"10.0.0.1:80","weight":2},{"server":"10.0.0.2:80"}]"#;
        assert_eq!(told[1], format!("{both}{db}"));
        assert_eq!(told[2], format!(r#"app=[{{"server":"10.0.0.2:80"}}]{db}"#));
        assert_eq!(told.len(), 3);
        assert!(error.starts_with("the watch was cut"), "{error}");
    }

    #[test]
    fn a_compacted_revision_is_read_again_and_nonsense_is_an_error() {
        let mut source = EtcdSource::new(HttpClient::new(place(&Peer::replying(""))), "/w/", None);
        let compacted = json!({"result": {"canceled": true, "compact_revision": "9"}});
        assert_eq!(source.take(&compacted, 3), Ok(WatchMessage::Compacted));
        for wrong in [
            json!({"error": {"message": "no leader"}}),
            json!({"result": {"canceled": true}}),
            events(4, json!([{"kv": pair("/w/app", "10.0.0.1")}])),
            events(4, json!([{"kv": pair("/w/app/1", "10.0.0.1 x")}])),
            events(4, json!([{"kv": {"key": "?", "value": ""}}])),
        ] {
            assert!(source.take(&wrong, 3).is_err(), "{wrong}");
        }
        let nothing = json!({"result": {"header": {"revision": "9"}}});
        assert_eq!(source.take(&nothing, 3), Ok(WatchMessage::Events(false, 3)));
        assert_eq!((end_of("/w/"), end_of("")), (b"/w0".to_vec(), vec![0]));
    }
    #[test]
    fn a_user_gets_a_token_for_what_is_read_and_watched() {
        let peer = Peer::playing(|mut connection| {
            while let Some(request) = connection.request() {
                let has_token = request.contains("Authorization: secret.1\n");
                let answer = if request.starts_with("POST /v3/auth/authenticate") {
                    assert!(request.ends_with(r#"{"name":"weir","password":"pass word"}"#));
                    reply(&json!({"token": "secret.1"}))
                } else if !has_token {
                    "HTTP/1.1 401 X\nContent-Length: 22\n\n{\"message\":\"no token\"}".to_owned()
                } else if request.starts_with("POST /v3/watch") {
                    stream(&[json!({"result": {"canceled": true, "cancel_reason": "gone"}})])
                } else {
                    reply(&json!({"header": {"revision": "5"}, "kvs": []}))
                };
                connection.send(&answer);
            }
            Some(())
        });
        let folder = testing::Folder::new();
        let password = folder.write("password", "pass word\n");
        let user = Some(EtcdUser { name: "weir".to_owned(), password });
        let client = || HttpClient::new(place(&peer));
        let (told, error) = lists(&mut EtcdSource::new(client(), "/w/", user), 9);
        assert_eq!((told, &*error), (vec![String::new()], "the watch was ended: gone"));
        let (told, error) = lists(&mut EtcdSource::new(client(), "/w/", None), 9);
        assert_eq!((told.len(), &*error), (0, "etcd answered 401 no token"));
    }
}
