//! The API of NGINX Plus: versions, lists of what there is, objects, and its errors.

use ::session::status::published;
use ::session::status::shapes::plus;
use conf::{Subsystem, Template};
use metrics::tree::{Items, PathPart, StatusTree, find, only};
use wire::Method;
use wire::json::write_text;
use wire::uri::{Unescape, unescape};

use super::steer;
use crate::exchange::{Exchange, Flow};
use crate::status_page::{self, argument_of, parts, server_address};

const VERSION_MAX: u32 = 9;

/// What is below the version, `http` and `stream`.
const ROOT: [&str; 8] =
    ["nginx", "processes", "connections", "slabs", "http", "resolvers", "ssl", "workers"];
const HTTP: [&str; 8] = [
    "requests",
    "server_zones",
    "location_zones",
    "caches",
    "limit_conns",
    "limit_reqs",
    "keyvals",
    "upstreams",
];
const STREAM: [&str; 4] = ["server_zones", "limit_conns", "keyvals", "upstreams"];

/// Collections of named objects, and the error about a name that is not in one.
const COLLECTIONS: [(&str, &str, &str); 9] = [
    ("slabs", "slab not found", "SlabNotFound"),
    ("server_zones", "server zone not found", "ServerZoneNotFound"),
    ("location_zones", "location zone not found", "LocationZoneNotFound"),
    ("caches", "cache not found", "CacheNotFound"),
    ("limit_conns", "limit_conn not found", "LimitConnNotFound"),
    ("limit_reqs", "limit_req not found", "LimitReqNotFound"),
    ("keyvals", "keyval not found", "KeyvalNotFound"),
    ("upstreams", "upstream not found", "UpstreamNotFound"),
    ("resolvers", "resolver zone not found", "ResolverZoneNotFound"),
];

/// The parts of `api` as NGINX Plus has it.
pub(super) struct PlusLine<'a> {
    pub(super) request_id: &'a Template,
    pub(super) who: &'a Template,
    pub(super) writes: bool,
}

/// Answers a request below the location `name`.
pub(super) fn answer(x: &mut Exchange, name: &[u8], line: &PlusLine<'_>) -> Flow {
    match page(x, name, line) {
        Ok(flow) => flow,
        Err(refused) => error(x, &refused, line.request_id),
    }
}

fn page(x: &mut Exchange, name: &[u8], line: &PlusLine<'_>) -> Result<Flow, Refused> {
    let uri = x.request.uri.clone();
    let below = uri.strip_prefix(name).unwrap_or(&uri);
    let path = parts(below);
    let reads = matches!(x.request.head.method, Method::Get | Method::Head);
    if !reads && (!line.writes || path.is_empty()) {
        return Err(Refused { status: 405, text: "method disabled", code: "MethodDisabled" });
    }
    let Some((version, path)) = path.split_first() else { return Ok(text(x, versions())) };
    check_version(version)?;
    let rest = steer::percent_encoded(&path.join(&b'/'));
    if !reads || steer::is_of_servers(&rest) {
        return Ok(steer::ask(x, rest, line.who, line.request_id));
    }
    let (args, address) = (x.request.args.clone(), server_address(x));
    Ok(match read(&PlusQuery { path, args: &args, address: &address })? {
        PlusPage::Tree(tree) => status_page::json(x, tree),
        PlusPage::Text(json) => text(x, json),
    })
}

/// The list of versions.
pub(crate) fn versions() -> Vec<u8> {
    let versions: Vec<String> = (1..=VERSION_MAX).map(|version| version.to_string()).collect();
    format!("[{}]", versions.join(",")).into_bytes()
}

/// Refuses a version that there is not.
pub(crate) fn check_version(version: &[u8]) -> Result<(), Refused> {
    match conf::units::number(version) {
        Some(version) if (1..=u64::from(VERSION_MAX)).contains(&version) => Ok(()),
        _ => Err(not_found("unknown version", "UnknownVersion")),
    }
}

/// What is asked for.
pub(crate) struct PlusQuery<'a> {
    /// The decoded names below the version.
    pub path: &'a [&'a [u8]],
    pub args: &'a [u8],
    /// The address of the server that answers.
    pub address: &'a [u8],
}

pub(crate) enum PlusPage {
    Tree(StatusTree),
    Text(Vec<u8>),
}

/// What there is at a path below the version.
pub(crate) fn read(query: &PlusQuery<'_>) -> Result<PlusPage, Refused> {
    match query.path {
        [] => {
            let mut names = ROOT.to_vec();
            if published(Subsystem::Stream).is_configured {
                names.insert(5, "stream");
            }
            Ok(PlusPage::Text(list(&names)))
        }
        [b"http"] => Ok(PlusPage::Text(list(&HTTP))),
        [b"stream"] => Ok(PlusPage::Text(list(&STREAM))),
        [block, b"keyvals", zone] => match argument_of(query.args, b"key") {
            Some(key) => entry(block, zone, key),
            None => object(query),
        },
        _ => object(query),
    }
}

/// One entry of a table.
fn entry(block: &[u8], zone: &[u8], key: &[u8]) -> Result<PlusPage, Refused> {
    let subsystem = match block {
        b"http" => Subsystem::Http,
        b"stream" => Subsystem::Stream,
        _ => return Err(not_found("path not found", "PathNotFound")),
    };
    let status = published(subsystem);
    let found = status.keyvals.iter().find(|found| *found.name == *zone);
    let zone = found.ok_or(not_found("keyval not found", "KeyvalNotFound"))?;
    let (mut exact, mut json) = (Vec::new(), Vec::new());
    unescape(Unescape::All, key, &mut exact);
    let table = zone.table();
    let entry = table.get(&exact, net::clock::monotonic_ms());
    let entry = entry.ok_or(not_found("keyval key not found", "KeyvalKeyNotFound"))?;
    entry.write_json(&mut json);
    Ok(PlusPage::Text(json))
}

/// An object, or all objects of a collection.
fn object(query: &PlusQuery<'_>) -> Result<PlusPage, Refused> {
    let PlusQuery { path, args, address } = *query;
    let collection = |part: &[u8]| COLLECTIONS.iter().find(|(name, ..)| name.as_bytes() == part);
    let is_collection = path
        .last()
        .is_some_and(|last| *last == b"workers" || path.len() <= 2 && collection(last).is_some());
    match find(plus(address), path) {
        Some(PathPart::Tree(tree)) => Ok(match argument_of(args, b"fields") {
            None => PlusPage::Tree(tree),
            Some(b"") if is_collection => {
                let names = names(&tree);
                let names: Vec<_> = names.iter().map(|name| &**name).collect();
                PlusPage::Text(list_of(&names))
            }
            Some(fields) => {
                let fields = fields.split(|byte| *byte == b',').map(Into::into).collect();
                PlusPage::Tree(only(tree, fields, usize::from(is_collection)))
            }
        }),
        Some(PathPart::Value(json)) => Ok(PlusPage::Text(json)),
        None => match path {
            [.., part, _] if collection(part).is_some() => {
                let (_, text, code) = collection(part).expect("it was found just now");
                Err(not_found(text, code))
            }
            _ => Err(not_found("path not found", "PathNotFound")),
        },
    }
}

/// The names of a collection.
fn names(tree: &StatusTree) -> Vec<Box<[u8]>> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    for section in &tree.sections {
        match (section.path.first(), &section.items) {
            (Some(name), _) if !names.contains(name) => names.push(name.clone()),
            (None, Items::Named(items)) => names.extend(items.iter().map(|(name, _)| name.clone())),
            _ => {}
        }
    }
    names
}

fn list(names: &[&str]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
    list_of(&names)
}

fn list_of(names: &[&[u8]]) -> Vec<u8> {
    let mut json = b"[".to_vec();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        write_text(name, &mut json);
    }
    json.push(b']');
    json
}

fn text(x: &mut Exchange, json: Vec<u8>) -> Flow {
    status_page::text(x, 200, b"application/json", json)
}

/// Why there is no page.
pub(crate) struct Refused {
    pub status: u16,
    text: &'static str,
    code: &'static str,
}

pub(crate) fn not_found(text: &'static str, code: &'static str) -> Refused {
    Refused { status: 404, text, code }
}

fn error(x: &mut Exchange, refused: &Refused, request_id: &Template) -> Flow {
    let mut id = Vec::new();
    request_id.render(x, &mut id);
    status_page::text(x, refused.status, b"application/json", refused.to_json(&id))
}

impl Refused {
    pub(crate) fn to_json(&self, request_id: &[u8]) -> Vec<u8> {
        let Self { status, text, code } = self;
        let id = String::from_utf8_lossy(request_id);
        let json = format!(
            "{{\"error\":{{\"status\":{status},\"text\":\"{text}\",\"code\":\"{code}\"}},\
             \"request_id\":\"{id}\",\
             \"href\":\"https://nginx.org/en/docs/http/ngx_http_api_module.html\"}}"
        );
        json.into_bytes()
    }
}
