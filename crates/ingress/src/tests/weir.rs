//! A server as the controller sees it: its control socket, and the folder that it reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use discover::HttpPlace;
use serde_json::{Value, json};
use testing::Peer;

#[derive(Default)]
struct WeirState {
    process: u64,
    generation: u64,
    main_file: String,
    /// The servers of each group that the configuration has.
    groups: BTreeMap<String, Value>,
    puts: u64,
    emptied: u64,
    /// Lists for groups that the configuration does not have.
    unknown: u64,
}

pub(super) struct FakeWeir {
    folder: PathBuf,
    state: Arc<Mutex<WeirState>>,
    peer: Peer,
}

impl FakeWeir {
    pub(super) fn new(folder: &Path) -> Self {
        let state = Arc::<Mutex<WeirState>>::default();
        let (shared, read) = (state.clone(), folder.to_owned());
        let peer = Peer::answering(move |request| {
            let (status, body) = answer(&mut shared.lock().unwrap(), &read, request);
            let body = body.to_string();
            format!("HTTP/1.1 {status} X\nContent-Length: {}\n\n{body}", body.len())
        });
        Self { folder: folder.to_owned(), state, peer }
    }

    pub(super) fn place(&self) -> HttpPlace {
        HttpPlace::parse(&format!("http://{}", self.peer.address), Path::new("")).unwrap()
    }

    /// Begins anew with what is in the folder, without the lists that it was told.
    pub(super) fn restart(&self) {
        let mut state = self.state.lock().unwrap();
        state.process += 1;
        state.groups.clear();
        reload(&mut state, &self.folder).unwrap();
    }

    pub(super) fn main_file(&self) -> String {
        self.state.lock().unwrap().main_file.clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.state.lock().unwrap().generation
    }

    /// The addresses of a group.
    pub(super) fn servers(&self, group: &str) -> String {
        let state = self.state.lock().unwrap();
        let servers = state.groups.get(group).and_then(Value::as_array);
        let names = servers.into_iter().flatten().filter_map(|one| one["server"].as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    /// The lists for groups that it did not know.
    pub(super) fn unknown(&self) -> u64 {
        self.state.lock().unwrap().unknown
    }

    /// The lists that were taken, and those of them that were empty.
    pub(super) fn puts(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap();
        (state.puts, state.emptied)
    }
}

fn answer(state: &mut WeirState, folder: &Path, request: &str) -> (u16, Value) {
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path = target.split('?').next().unwrap();
    match (method, path) {
        ("GET", _) => (200, json!({"ppid": state.process, "generation": state.generation})),
        ("POST", "/reload") => match reload(state, folder) {
            Ok(()) => (200, json!({"success": true})),
            Err(why) => (422, json!({"success": false, "log": [why]})),
        },
        _ => {
            let group = path.split('/').nth(4).unwrap().to_owned();
            let Some(known) = state.groups.get_mut(&group) else {
                state.unknown += 1;
                return (404, json!({"error": {"code": "UpstreamNotFound"}}));
            };
            let body = request.split_once("\n\n").map_or("", |(_, body)| body);
            *known = serde_json::from_str(body).unwrap_or_default();
            let is_empty = known.as_array().is_none_or(Vec::is_empty);
            state.puts += 1;
            state.emptied += u64::from(is_empty);
            (200, json!({}))
        }
    }
}

/// An error names the file, as that of the real one.
fn reload(state: &mut WeirState, folder: &Path) -> Result<(), String> {
    let main_file = std::fs::read_to_string(folder.join("nginx.conf")).unwrap_or_default();
    let routes = std::fs::read_dir(folder.join("routes")).into_iter().flatten();
    let routes = routes.map(|route| route.unwrap().path().join("path-1.conf"));
    for file in routes.chain([folder.join("nginx.conf")]) {
        if std::fs::read_to_string(&file).is_ok_and(|text| text.contains("bad")) {
            return Err(format!("[emerg] bad in {}:1", file.display()));
        }
    }
    let names: Vec<String> = main_file.lines().map(str::to_owned).collect();
    state.groups.retain(|name, _| names.contains(name));
    for name in names {
        state.groups.entry(name).or_insert(Value::Null);
    }
    state.main_file = main_file;
    state.generation += 1;
    Ok(())
}
