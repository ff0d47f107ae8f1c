//! One server's part in a case: every request played, every log line given to its request.

use std::path::Path;

use super::case::{Case, CaseConnection, ConnectionStep};
use super::client::{self, ConnectionReplies};
use super::curl;
use super::place::ServerEnvironment;
use super::server::{ComparedProgram, ComparedServer, LogLine};
use super::{reply, text, times};

/// All that one server did in one case, in lines.
pub(super) struct ServerTranscript {
    /// For each request: the answer, how the connection ended, what was logged.
    pub(super) transcripts: Vec<Vec<String>>,
    /// What belongs to no request.
    pub(super) whole: Vec<String>,
}

impl ServerTranscript {
    /// Starts `program` for `case` in `dir`, plays the requests in order and stops it.
    pub(super) fn play(
        program: &ComparedProgram,
        case: &Case,
        dir: &Path,
        any_order: bool,
    ) -> Result<ServerTranscript, String> {
        let server = ComparedServer::start(program, case, dir)?;
        let place = server.place.clone();
        let mut ports = Vec::new();
        let mut transcripts = Vec::new();
        for request in &case.requests {
            server.backends.begin(&request.script, &place);
            let answer = play(request, &place, &ports);
            ports.push(answer.as_ref().map_or(0, |answer| answer.port));
            let mut lines = answer_lines(answer, &place, any_order, request.is_brief);
            if request.title.contains("mirror") {
                server.backends.wait_for_copies();
            }
            lines.extend(server.backends.received(&place, any_order));
            transcripts.push(lines);
        }
        let (logged, whole) = server.stop();
        let mut side = ServerTranscript { transcripts, whole };
        for line in logged {
            side.add(&line, &ports, &place);
        }
        Ok(side)
    }

    /// Only the lines of requests that are to be compared.
    pub(super) fn reduced(mut self, compared: fn(&str) -> bool) -> ServerTranscript {
        self.transcripts.iter_mut().for_each(|lines| lines.retain(|line| compared(line)));
        self
    }

    /// A log line that begins with the port of a client belongs to its request.
    fn add(&mut self, line: &LogLine, ports: &[u16], place: &ServerEnvironment) {
        let (number, text) = match line.text.iter().position(|&b| b == b' ') {
            Some(space) => (&line.text[..space], &line.text[space + 1..]),
            None => (&line.text[..0], &line.text[..]),
        };
        let port = ports.iter().position(|port| port.to_string().as_bytes() == number);
        let shown = |text| {
            let text = reply::without_boundary(text, text);
            text::shown(&place.blanked(&times::blanked(&text)))
        };
        let file = &line.file;
        match port {
            Some(index) => self.transcripts[index].push(format!("{file}: {}", shown(text))),
            None => self.whole.push(format!("{file}: {}", shown(&line.text))),
        }
    }
}

/// Plays a request by the client that it is for.
fn play(
    request: &CaseConnection,
    place: &ServerEnvironment,
    used: &[u16],
) -> Result<ConnectionReplies, String> {
    match &request.steps[..] {
        [ConnectionStep::Curl(asked)] => {
            let port = place.ports.get(request.port).ok_or("no such port")?;
            curl::play(asked, *port)
        }
        _ => client::play(request, place, used),
    }
}

fn answer_lines(
    answer: Result<ConnectionReplies, String>,
    place: &ServerEnvironment,
    any_order: bool,
    is_brief: bool,
) -> Vec<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return vec![error],
    };
    let replies = answer.replies.iter();
    let mut lines: Vec<String> =
        replies.flat_map(|reply| reply_lines(reply, place, any_order, is_brief)).collect();
    lines.push(answer.ending.into());
    lines
}

fn reply_lines(
    reply: &[u8],
    place: &ServerEnvironment,
    any_order: bool,
    is_brief: bool,
) -> Vec<String> {
    let mut lines = reply::lines(reply, place, any_order);
    if is_brief && reply::is_error(reply) {
        lines.truncate(1);
    }
    lines
}
