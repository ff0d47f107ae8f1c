//! Replies of the control socket that do not depend on who serves.

use http::ControlPage;
use session::steering::{SteeringReply, SteeringRequest};
use upstream::api::{ServersPath, SpecRefusal};
use wire::json::write_text;

use crate::log::notice;
use crate::readiness::Readiness;
use crate::steering;

/// The answer to `/ready`.
pub fn readiness(is_ready: bool, generation: u64) -> SteeringReply {
    let status = if is_ready { 200 } else { 503 };
    json(status, format!("{{\"ready\":{is_ready},\"generation\":{generation}}}"))
}

/// Turns readiness on (`POST`) or off (`DELETE`). `Err`: the answer to a request that may not.
pub fn turn_readiness(
    request: &SteeringRequest,
    readiness: &mut Readiness,
) -> Result<(), SteeringReply> {
    if let Some(foreign) = foreign(request) {
        return Err(foreign);
    }
    let is_on = *request.method == *b"POST";
    readiness.turn(is_on);
    let (state, who) =
        (if is_on { "ready" } else { "not ready" }, String::from_utf8_lossy(&request.who));
    notice!("load balancers are told that the server is {state}, by {who}");
    Ok(())
}

/// The answer to a request that a page of another site has caused.
pub fn foreign(request: &SteeringRequest) -> Option<SteeringReply> {
    let text = "the request comes from another site";
    let refused = SpecRefusal::new(403, text, "ForeignOrigin");
    (!request.origin.is_empty()).then(|| steering::refusal(&refused, request))
}

/// A page about the program, as a process that serves sees it.
pub fn page(request: &SteeringRequest) -> SteeringReply {
    let SteeringRequest { method, path, args, request_id, .. } = request;
    if !matches!(&**method, b"GET" | b"HEAD") {
        let refused = SpecRefusal::new(405, "method disabled", "MethodDisabled");
        return steering::refusal(&refused, request);
    }
    let ControlPage { status, content_type, text } = http::control_page(path, args, request_id);
    let content_type = String::from_utf8_lossy(content_type);
    let fields = vec![format!("Content-Type: {content_type}")];
    SteeringReply { status, json: text, fields }
}

/// The answer to a request while nobody serves who could.
pub fn unavailable(request: &SteeringRequest) -> SteeringReply {
    let refused = SpecRefusal::new(503, "no worker process answers", "NoWorkerProcess");
    steering::refusal(&refused, request)
}

/// What became of the last reload.
#[derive(Clone, Debug)]
pub struct LastReload {
    pub is_done: bool,
    /// When it was over, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What was logged meanwhile.
    pub log: Vec<String>,
}

impl LastReload {
    /// A reload that is over now.
    pub fn over(is_done: bool, log: Vec<String>) -> Self {
        Self { is_done, unix_ms: net::clock::unix_ms(), log }
    }

    /// The reason of a failure; what was logged last, after a success.
    pub fn message(&self) -> &str {
        const SEVERE: [&str; 4] = ["[emerg]", "[alert]", "[crit]", "[error]"];
        let is_severe = |line: &&String| SEVERE.iter().any(|level| line.starts_with(level));
        let severe = self.log.iter().find(is_severe).filter(|_| !self.is_done);
        severe.or(self.log.last()).map_or("", String::as_str)
    }

    /// `null`, or `{"success":true,"time":"…","message":"…"}`.
    pub fn to_json(last: Option<&Self>) -> String {
        let Some(last) = last else { return "null".to_owned() };
        let Self { is_done, unix_ms, .. } = last;
        let time = wire::date::iso8601((unix_ms / 1000) as i64, 0);
        let time = String::from_utf8_lossy(&time[..19]);
        let mut message = Vec::new();
        write_text(last.message().as_bytes(), &mut message);
        let message = String::from_utf8_lossy(&message);
        let ms = unix_ms % 1000;
        format!("{{\"success\":{is_done},\"time\":\"{time}.{ms:03}Z\",\"message\":{message}}}")
    }
}

/// The answer to `/reload`, with the lines that were logged meanwhile.
pub fn reloaded(last: &LastReload, generation: u64) -> SteeringReply {
    let LastReload { is_done, log, .. } = last;
    let mut lines = Vec::new();
    for (number, line) in log.iter().enumerate() {
        lines.extend_from_slice(if number > 0 { b"," } else { b"" });
        write_text(line.as_bytes(), &mut lines);
    }
    let log = String::from_utf8_lossy(&lines);
    let text = format!("{{\"success\":{is_done},\"generation\":{generation},\"log\":[{log}]}}");
    json(if *is_done { 200 } else { 422 }, text)
}

pub fn json(status: u16, json: String) -> SteeringReply {
    SteeringReply { status, json: json.into_bytes(), fields: Vec::new() }
}

/// The path after the version of the API.
pub fn api_path(path: &[u8]) -> Result<&[u8], SpecRefusal> {
    let unknown = |what: &str, code| Err(SpecRefusal::new(404, what, code));
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let Some(slash) = path.iter().position(|byte| *byte == b'/') else {
        return unknown("path not found", "PathNotFound");
    };
    let (version, rest) = path.split_at(slash);
    match conf::units::number(version) {
        Some(1..=9) => Ok(&rest[1..]),
        Some(_) => unknown("unknown version", "UnknownVersion"),
        None => unknown("path not found", "PathNotFound"),
    }
}

/// Whether a path with its version is about the servers of a group, as they are configured.
pub fn is_of_servers(path: &[u8]) -> bool {
    api_path(path).is_ok_and(|rest| ServersPath::parse(rest).is_some())
}
