//! Replies of the control socket that do not depend on who serves.

use session::steering::SteeringReply;
use upstream::api::SpecRefusal;
use wire::json::write_text;

/// The answer to `/ready`.
pub fn readiness(is_ready: bool, generation: u64) -> SteeringReply {
    let status = if is_ready { 200 } else { 503 };
    json(status, format!("{{\"ready\":{is_ready},\"generation\":{generation}}}"))
}

/// The answer to `/reload`, with the lines that were logged meanwhile.
pub fn reloaded(is_done: bool, generation: u64, log: &[String]) -> SteeringReply {
    let mut lines = Vec::new();
    for (number, line) in log.iter().enumerate() {
        lines.extend_from_slice(if number > 0 { b"," } else { b"" });
        write_text(line.as_bytes(), &mut lines);
    }
    let log = String::from_utf8_lossy(&lines);
    let text = format!("{{\"success\":{is_done},\"generation\":{generation},\"log\":[{log}]}}");
    json(if is_done { 200 } else { 422 }, text)
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
        Some(4..=9) => Ok(&rest[1..]),
        Some(_) => unknown("unknown version", "UnknownVersion"),
        None => unknown("path not found", "PathNotFound"),
    }
}
