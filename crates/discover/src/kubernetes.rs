//! The API server of a Kubernetes cluster: requests, and collections of objects that are listed
//! once and watched from that version on.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{HttpClient, HttpPlace, HttpRequest, TlsIdentity};
use crate::json_lines::JsonLines;
use crate::secret::read_secret;
use crate::wanted::percent_encoded;

const REPLY_MAX: Duration = Duration::from_secs(30);
/// How long the API server keeps a watch open.
const WATCH_SECONDS: u64 = 60;
/// How long a watch may be silent, its end included.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS + 30);
/// Between watches, should the server end them at once.
const PAUSE: Duration = Duration::from_millis(100);
/// The folder with the service account of a pod.
const POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The longest explanation of an error that is passed on.
const WHY_CHARS_MAX: usize = 300;

/// The options about the API server. Those that are not given are the pod's.
#[derive(Clone, Debug, Default)]
pub struct ApiServerOptions {
    pub url: Option<String>,
    /// A file with the certificates that are trusted.
    pub roots: Option<PathBuf>,
    pub identity: Option<TlsIdentity>,
    pub token: Option<PathBuf>,
}

/// The address of the API server, and the credentials for it.
#[derive(Clone, Debug)]
pub struct ApiServerPlace {
    place: HttpPlace,
    /// Read for each request, because the token is replaced now and then.
    token: Option<PathBuf>,
}

impl ApiServerOptions {
    pub fn find(&self) -> Result<ApiServerPlace, String> {
        let in_pod = |file: &str| Path::new(POD).join(file);
        let url = self.url.clone().or_else(url_of_cluster);
        let url = url.ok_or("kubernetes: this is no pod; name the API server with --kube")?;
        let roots = self.roots.clone().unwrap_or_else(|| in_pod("ca.crt"));
        let of_pod = Some(in_pod("token")).filter(|token| self.url.is_none() || token.exists());
        let token = self.token.clone().or(of_pod);
        let place = HttpPlace::parse(&url, &roots)?.with_identity(self.identity.clone())?;
        Ok(ApiServerPlace::new(place, token))
    }
}

/// The API server as a pod's environment names it.
fn url_of_cluster() -> Option<String> {
    let host = std::env::var("KUBERNETES_SERVICE_HOST").ok()?;
    let port = std::env::var("KUBERNETES_SERVICE_PORT").unwrap_or("443".to_owned());
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Some(format!("https://{host}:{port}"))
}

/// The namespace of the pod.
pub fn namespace_of_pod() -> Option<String> {
    let text = std::fs::read_to_string(Path::new(POD).join("namespace")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

impl ApiServerPlace {
    pub fn new(place: HttpPlace, token: Option<PathBuf>) -> Self {
        Self { place, token }
    }

    fn authorization(&self) -> Result<Option<String>, String> {
        let token = self.token.as_deref().map(read_secret).transpose()?;
        Ok(token.map(|token| format!("Bearer {token}")))
    }
}

/// A client of the API server.
pub struct ApiServer {
    place: ApiServerPlace,
    client: HttpClient,
}

/// A response of the API server.
#[derive(Debug)]
pub struct ApiReply {
    pub status: u16,
    /// Null if it is not JSON.
    pub body: Value,
}

impl ApiReply {
    /// The error message for a response that was not expected.
    pub fn unexpected(&self) -> String {
        match self.body["message"].as_str() {
            Some(why) => {
                let why: String = why.chars().take(WHY_CHARS_MAX).collect();
                format!("the API server answered {}: {why}", self.status)
            }
            None => format!("the API server answered {}", self.status),
        }
    }
}

impl ApiServer {
    pub fn new(place: ApiServerPlace) -> Self {
        let client = HttpClient::new(place.place.clone());
        Self { place, client }
    }

    pub fn get(&mut self, path: &str) -> Result<ApiReply, String> {
        self.send(&HttpRequest::get(path, REPLY_MAX))
    }

    /// Sends an object, or a change of one.
    pub fn change(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        object: &Value,
    ) -> Result<ApiReply, String> {
        let body = object.to_string();
        let fields = [("Content-Type", content_type)];
        let request =
            HttpRequest { method, path, fields: &fields, body: &body, reply_max: REPLY_MAX };
        self.send(&request)
    }

    fn send(&mut self, request: &HttpRequest<'_>) -> Result<ApiReply, String> {
        let authorization = self.place.authorization()?;
        let mut fields = request.fields.to_vec();
        fields.push(("Accept", "application/json"));
        fields.extend(authorization.iter().map(|value| ("Authorization", &**value)));
        let reply = self.client.ask(&HttpRequest { fields: &fields, ..*request });
        let reply = reply.map_err(|error| error.to_string())?;
        match serde_json::from_slice(&reply.body) {
            Ok(body) => Ok(ApiReply { status: reply.status, body }),
            Err(error) if reply.status == 200 => Err(error.to_string()),
            Err(_) => Ok(ApiReply { status: reply.status, body: Value::Null }),
        }
    }
}

/// Objects of a kind, perhaps chosen by a selector.
pub struct Collection {
    api: ApiServer,
    /// May have arguments.
    path: String,
    /// The version from which to watch; `None`: list first.
    version: Option<String>,
}

/// What becomes of a collection.
#[derive(Debug)]
pub enum CollectionChange {
    /// These are all objects.
    Listed(Vec<Value>),
    Put(Value),
    Deleted(Value),
    /// The objects have not changed.
    Confirmed,
}

/// Why a watch has ended.
#[derive(Debug, PartialEq)]
pub enum WatchEnd {
    /// The API server has no such collection.
    Absent,
    Failed(String),
}

impl From<String> for WatchEnd {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// How a watch continues after an event.
enum WatchStep {
    Told(CollectionChange),
    Nothing,
    /// The version is too old: everything is to be listed again.
    Expired,
}

type Take<'a> = &'a mut dyn FnMut(CollectionChange) -> Result<(), String>;

impl Collection {
    pub fn new(place: ApiServerPlace, path: String) -> Self {
        Self { api: ApiServer::new(place), path, version: None }
    }

    /// Tells all objects, and then every change, until something fails. Called again, it goes on
    /// from the last change if the watch was only cut.
    pub fn watch(&mut self, take: Take<'_>) -> Result<Infallible, WatchEnd> {
        loop {
            let version = match self.version.take() {
                Some(version) => version,
                None => self.list(take)?,
            };
            let Some(events) = self.open(&version)? else { continue };
            self.version = self.follow(events, version, take)?;
            if self.version.is_some() {
                take(CollectionChange::Confirmed)?;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the version.
    fn list(&mut self, take: Take<'_>) -> Result<String, WatchEnd> {
        let reply = self.api.get(&self.path)?;
        match reply.status {
            200 => {}
            404 => return Err(WatchEnd::Absent),
            _ => return Err(reply.unexpected().into()),
        }
        let mut list = reply.body;
        let version = version(&list).ok_or_else(|| "the list has no resourceVersion".to_owned())?;
        let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else {
            return Err("the list has no items".to_owned().into());
        };
        take(CollectionChange::Listed(items))?;
        Ok(version)
    }

    /// `None`: the version is too old.
    fn open(&self, version: &str) -> Result<Option<JsonLines>, String> {
        let path = format!(
            "{}{}watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
             &resourceVersion={}",
            self.path,
            if self.path.contains('?') { '&' } else { '?' },
            percent_encoded(version)
        );
        let authorization = self.api.place.authorization()?;
        let fields: Vec<_> =
            authorization.iter().map(|value| ("Authorization", &**value)).collect();
        let request = HttpRequest { fields: &fields, ..HttpRequest::get(&path, REPLY_MAX) };
        let (reply, body) = self.api.client.stream(&request).map_err(|error| error.to_string())?;
        match reply.status {
            200 => Ok(Some(JsonLines::new(body))),
            410 => Ok(None),
            status => Err(format!("the API server answered {status} to a watch")),
        }
    }

    /// Reports the changes of one watch. Returns the version from which the next watch continues;
    /// `None`: the objects must be listed again.
    fn follow(
        &mut self,
        mut events: JsonLines,
        mut known: String,
        take: Take<'_>,
    ) -> Result<Option<String>, String> {
        loop {
            let event = match events.next(Instant::now() + SILENCE_MAX) {
                Ok(Some(event)) => event,
                // Its time is over.
                Ok(None) => return Ok(Some(known)),
                Err(error) => {
                    self.version = Some(known);
                    return Err(format!("the watch was cut: {error}"));
                }
            };
            match step(event, &mut known)? {
                WatchStep::Told(change) => take(change)?,
                WatchStep::Nothing => {}
                WatchStep::Expired => return Ok(None),
            }
        }
    }
}

fn step(mut event: Value, known: &mut String) -> Result<WatchStep, String> {
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    if kind == "ERROR" {
        return match object["code"].as_u64() {
            Some(410) => Ok(WatchStep::Expired),
            _ => Err(format!("the watch ended: {}", object["message"])),
        };
    }
    *known = version(&object).ok_or("an event has no resourceVersion")?;
    match kind {
        "ADDED" | "MODIFIED" => Ok(WatchStep::Told(CollectionChange::Put(object))),
        "DELETED" => Ok(WatchStep::Told(CollectionChange::Deleted(object))),
        "BOOKMARK" => Ok(WatchStep::Nothing),
        other => Err(format!("an unknown event: {other}")),
    }
}

fn version(object: &Value) -> Option<String> {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.filter(|version| !version.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;
    use testing::Peer;

    use super::*;

    fn collection(peer: &Peer) -> Collection {
        let place = HttpPlace::parse(&format!("http://{}", peer.address), Path::new("")).unwrap();
        Collection::new(ApiServerPlace::new(place, None), "/api/v1/services".to_owned())
    }

    fn reply(status: u16, body: &Value) -> String {
        let body = body.to_string();
        format!("HTTP/1.1 {status} X\nContent-Length: {}\n\n{body}", body.len())
    }

    fn told(collection: &mut Collection) -> (Vec<String>, WatchEnd) {
        let mut told = Vec::new();
        let end = collection.watch(&mut |change| {
            told.push(match change {
                CollectionChange::Listed(items) => format!("{} listed", items.len()),
                CollectionChange::Put(object) => format!("put {}", object["metadata"]["name"]),
                CollectionChange::Deleted(_) => "deleted".to_owned(),
                CollectionChange::Confirmed => "confirmed".to_owned(),
            });
            Ok(())
        });
        let Err(end) = end;
        (told, end)
    }

    #[test]
    fn a_watch_that_was_cut_goes_on_without_another_list() {
        let lists = AtomicUsize::new(0);
        let peer = Peer::playing(move |mut connection| {
            let request = connection.request()?;
            if !request.contains("watch=1") {
                let items = vec![json!({}); lists.fetch_add(1, Ordering::SeqCst) + 1];
                let metadata = json!({"resourceVersion": "5"});
                connection.send(&reply(200, &json!({"metadata": metadata, "items": items})));
            } else if request.contains("resourceVersion=5 ") {
                let object = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
                let line = format!("{}\n", json!({"type": "ADDED", "object": object}));
                let head = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
                connection.send(&format!("{head}{:x}\r\n{line}\r\n", line.len()));
            } else {
                assert!(request.contains("resourceVersion=7 "), "{request}");
                connection.send(&reply(500, &json!({})));
            }
            Some(())
        });
        let mut collection = collection(&peer);
        let (first, end) = told(&mut collection);
        assert_eq!(first, ["1 listed", "put \"a\""]);
        assert!(matches!(&end, WatchEnd::Failed(why) if why.contains("cut")), "{end:?}");
        let (second, end) = told(&mut collection);
        assert_eq!(second, [""; 0], "it goes on from 7");
        assert!(matches!(&end, WatchEnd::Failed(why) if why.contains("500")), "{end:?}");
        assert_eq!(told(&mut collection).0[0], "2 listed", "what was refused is listed again");
    }

    #[test]
    fn a_collection_that_does_not_exist_is_no_failure() {
        let peer = Peer::replying(&reply(404, &json!({"message": "unknown"})));
        assert_eq!(told(&mut collection(&peer)), (Vec::new(), WatchEnd::Absent));
        let why = json!({"message": "no rights"});
        let peer = Peer::replying(&reply(403, &why));
        let (_, end) = told(&mut collection(&peer));
        assert_eq!(end, WatchEnd::Failed("the API server answered 403: no rights".to_owned()));
    }
}
