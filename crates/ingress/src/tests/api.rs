//! An API server in memory: lists, watches with versions and bookmarks, statuses and Leases that
//! conflict, and everything that goes wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex};

use discover::{ApiServerPlace, HttpPlace};
use serde_json::{Value, json};
use testing::{PATIENCE, Peer, PeerConnection};

#[derive(Default)]
struct ApiState {
    version: u64,
    /// By the path of their collection, and by namespace and name.
    objects: BTreeMap<String, BTreeMap<(String, String), Value>>,
    /// The version after an event, its collection, and the event.
    events: Vec<(u64, String, Value)>,
    /// Versions before this one are too old for a watch.
    oldest: u64,
    /// Collections that do not exist.
    absent: BTreeSet<String>,
    /// Watches that began before are cut.
    cut: u64,
    /// Changes of statuses that are refused because somebody else was faster.
    conflicts: u64,
    lists: u64,
}

#[derive(Clone, Default)]
struct SharedState(Arc<(Mutex<ApiState>, Condvar)>);

impl SharedState {
    fn with<T>(&self, act: impl FnOnce(&mut ApiState) -> T) -> T {
        let done = act(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        done
    }
}

pub(super) struct FakeApi {
    state: SharedState,
    address: SocketAddr,
    peer: Option<Peer>,
}

pub(super) const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/gateways";
pub(super) const SERVICES: &str = "/api/v1/services";
pub(super) const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
pub(super) const CONFIG_MAPS: &str = "/api/v1/configmaps";
pub(super) const INGRESSES: &str = "/apis/networking.k8s.io/v1/ingresses";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

impl FakeApi {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = SharedState::default();
        state.with(|state| state.version = 10);
        let peer = Some(serve(listener, state.clone()));
        Self { state, address, peer }
    }

    pub(super) fn place(&self) -> ApiServerPlace {
        let url = format!("http://{}", self.address);
        ApiServerPlace::new(HttpPlace::parse(&url, std::path::Path::new("")).unwrap(), None)
    }

    pub(super) fn put(&self, collection: &str, name: &str, object: Value) {
        self.state.with(|state| state.put(collection, ("a", name), object));
    }

    pub(super) fn delete(&self, collection: &str, name: &str) {
        self.state.with(|state| state.delete(collection, ("a", name)));
    }

    pub(super) fn object(&self, collection: &str, name: &str) -> Value {
        let key = ("a".to_owned(), name.to_owned());
        self.state.with(|state| state.objects[collection][&key].clone())
    }

    pub(super) fn set_absent(&self, collection: &str) {
        self.state.with(|state| state.absent.insert(collection.to_owned()));
    }

    /// Cuts all watches.
    pub(super) fn cut(&self) {
        self.state.with(|state| state.cut += 1);
    }

    /// Forgets all events, so that watches from before are refused with 410.
    pub(super) fn compact(&self) {
        self.state.with(|state| {
            state.version += 1;
            (state.oldest, state.events) = (state.version, Vec::new());
            state.cut += 1;
        });
    }

    pub(super) fn refuse_statuses(&self, times: u64) {
        self.state.with(|state| state.conflicts = times);
    }

    pub(super) fn lists(&self) -> u64 {
        self.state.with(|state| state.lists)
    }

    pub(super) fn holder(&self) -> Option<String> {
        self.state.with(|state| {
            let lease = state.objects.get(LEASES)?.values().next()?;
            Some(lease["spec"]["holderIdentity"].as_str()?.to_owned())
        })
    }

    pub(super) fn kill(&mut self) {
        self.state.with(|state| state.cut += 1);
        self.peer.take().unwrap().kill();
    }

    /// Starts again at the same address, with the same objects.
    pub(super) fn start(&mut self) {
        let listener = testing::eventually("free address", || TcpListener::bind(self.address).ok());
        self.peer = Some(serve(listener, self.state.clone()));
    }
}

impl ApiState {
    fn put(&mut self, collection: &str, (namespace, name): (&str, &str), mut object: Value) {
        self.version += 1;
        let version = self.version.to_string();
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(version);
        let key = (namespace.to_owned(), name.to_owned());
        let objects = self.objects.entry(collection.to_owned()).or_default();
        let known = objects.insert(key, object.clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        self.tell(collection, json!({"type": kind, "object": object}));
    }

    fn delete(&mut self, collection: &str, (namespace, name): (&str, &str)) {
        self.version += 1;
        let key = (namespace.to_owned(), name.to_owned());
        let mut object = self.objects.get_mut(collection).unwrap().remove(&key).unwrap();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell(collection, json!({"type": "DELETED", "object": object}));
    }

    fn tell(&mut self, collection: &str, event: Value) {
        self.events.push((self.version, collection.to_owned(), event));
    }

    /// Replaces an object if it has the version that the caller knows.
    fn replace(&mut self, collection: &str, key: (&str, &str), new: Value) -> (u16, Value) {
        let owned = (key.0.to_owned(), key.1.to_owned());
        let known = self.objects.get(collection).and_then(|objects| objects.get(&owned));
        match known {
            Some(known)
                if known["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"] =>
            {
                (409, json!({"message": "the object has been modified"}))
            }
            _ => {
                self.put(collection, key, new);
                (200, json!({}))
            }
        }
    }
}

fn serve(listener: TcpListener, state: SharedState) -> Peer {
    Peer::at(listener, move |mut connection| {
        while let Some(request) = connection.request() {
            let target = request.split(' ').nth(1)?.to_owned();
            if target.contains("watch=1") {
                return watch(&mut connection, &state, &target);
            }
            let (status, body) = state.with(|state| answer(state, &request, &target));
            let body = body.to_string();
            let length = body.len();
            connection.send(&format!("HTTP/1.1 {status} X\nContent-Length: {length}\n\n{body}"));
        }
        Some(())
    })
}

fn answer(state: &mut ApiState, request: &str, target: &str) -> (u16, Value) {
    let path = target.split('?').next().unwrap();
    let body = request.split_once("\n\n").map_or("", |(_, body)| body);
    let body = || serde_json::from_str::<Value>(body).unwrap();
    if let Some(place) = path.strip_prefix("/apis/coordination.k8s.io/v1/namespaces/a/leases") {
        return lease(state, request, place.trim_start_matches('/'), body);
    }
    if let Some(path) = path.strip_suffix("/status") {
        return status(state, path, &body());
    }
    if state.absent.contains(path) {
        return (404, json!({"message": "no such kind"}));
    }
    state.lists += 1;
    let items: Vec<_> = state.objects.get(path).into_iter().flatten().map(|(_, one)| one).collect();
    let metadata = json!({"resourceVersion": state.version.to_string()});
    (200, json!({"metadata": metadata, "items": items}))
}

fn lease(
    state: &mut ApiState,
    request: &str,
    name: &str,
    body: impl Fn() -> Value,
) -> (u16, Value) {
    let key = ("a".to_owned(), "weir".to_owned());
    let known = state.objects.get(LEASES).and_then(|leases| leases.get(&key)).cloned();
    match (request.split(' ').next().unwrap(), known) {
        ("GET", Some(lease)) if name == "weir" => (200, lease),
        ("GET", _) => (404, json!({})),
        ("POST", Some(_)) => (409, json!({"message": "already exists"})),
        _ => state.replace(LEASES, ("a", "weir"), body()),
    }
}

/// Takes a status of `…/namespaces/NAMESPACE/PLURAL/NAME`.
fn status(state: &mut ApiState, path: &str, patch: &Value) -> (u16, Value) {
    let (prefix, rest) = path.split_once("/namespaces/").unwrap();
    let parts: Vec<&str> = rest.split('/').collect();
    let [namespace, plural, name] = parts[..] else { panic!("{path}") };
    let collection = format!("{prefix}/{plural}");
    let key = (namespace.to_owned(), name.to_owned());
    let Some(mut object) = state.objects[&collection].get(&key).cloned() else {
        return (404, json!({}));
    };
    if state.conflicts > 0 {
        state.conflicts -= 1;
        state.put(&collection, (namespace, name), object);
        return (409, json!({"message": "the object has been modified"}));
    }
    object["metadata"]["resourceVersion"] = patch["metadata"]["resourceVersion"].clone();
    object["status"] = patch["status"].clone();
    state.replace(&collection, (namespace, name), object)
}

/// Sends events until the watch is cut.
fn watch(connection: &mut PeerConnection, state: &SharedState, target: &str) -> Option<()> {
    let collection = target.split('?').next()?.to_owned();
    let from = target.split_once("resourceVersion=")?.1.split('&').next()?.parse::<u64>().ok()?;
    let (oldest, cut) = state.with(|state| (state.oldest, state.cut));
    if from < oldest {
        connection.send("HTTP/1.1 410 Gone\nContent-Length: 2\n\n{}");
        return None;
    }
    connection.send("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n");
    let mut known = from;
    loop {
        let (lock, changed) = &*state.0;
        let waiting = lock.lock().unwrap();
        let is_idle = |state: &mut ApiState| state.version <= known && state.cut == cut;
        let (state, _) = changed.wait_timeout_while(waiting, PATIENCE, is_idle).unwrap();
        let is_new =
            |(version, of, _): &&(u64, String, Value)| *version > known && *of == collection;
        let mut lines: Vec<Value> =
            state.events.iter().filter(is_new).map(|(_, _, event)| event.clone()).collect();
        known = state.version;
        let metadata = json!({"resourceVersion": known.to_string()});
        lines.push(json!({"type": "BOOKMARK", "object": {"metadata": metadata}}));
        let is_cut = state.cut != cut;
        drop(state);
        if is_cut {
            return None;
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        connection.send_raw(format!("{:x}\r\n{text}\r\n", text.len()))?;
    }
}
