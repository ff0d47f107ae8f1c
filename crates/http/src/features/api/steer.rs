//! The part of the API that changes servers of groups, and lists them as they are configured: the
//! master process answers.

use std::os::unix::fs::FileExt;

use ::session::steering::{self, CHANGE_BODY_MAX, SteeringReply, SteeringRequest};
use ::upstream::api::ServersPath;
use conf::Template;
use net::LentFuture;
use wire::Known;

use crate::exchange::{Exchange, FileSlice, Flow, StoredContent};
use crate::status_page;

/// Whether a path after the version is about the servers of a group, as they are configured.
pub(super) fn is_of_servers(path: &[u8]) -> bool {
    ServersPath::parse(path).is_some()
}

/// A decoded path, as the master process expects it.
pub(super) fn percent_encoded(path: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len());
    for byte in path {
        encoded.extend_from_slice(if *byte == b'%' { b"%25" } else { std::slice::from_ref(byte) });
    }
    encoded
}

/// Asks the master process about a path after the version.
pub(super) fn ask(x: &mut Exchange, path: Vec<u8>, who: &Template, request_id: &Template) -> Flow {
    let rendered = |x: &mut Exchange, template: &Template| {
        let mut text = Vec::new();
        template.render(x, &mut text);
        Box::from(text.trim_ascii_end())
    };
    let (who, request_id) = (rendered(x, who), rendered(x, request_id));
    let known = |known| Box::from(x.request.field(known).unwrap_or_default());
    let request = SteeringRequest {
        method: x.request.method_name().into(),
        path: path.into(),
        args: x.request.args[..].into(),
        body: Box::default(),
        content_type: known(Known::ContentType),
        origin: field(x, b"origin"),
        host: known(Known::Host),
        owner: field(x, b"weir-owner"),
        version: field(x, b"weir-version"),
        who,
        request_id,
        store: Box::default(),
    };
    Flow::wait(move |x| LentFuture::new(send(x, request)))
}

fn field(x: &Exchange, name: &[u8]) -> Box<[u8]> {
    let mut fields = x.request.head.fields.iter();
    let found = fields.find(|field| x.request.text(field.name).eq_ignore_ascii_case(name));
    found.map_or(Box::default(), |field| x.request.text(field.value).into())
}

async fn send(x: &mut Exchange, request: SteeringRequest) -> Flow {
    if let Err(flow) = x.read_body().await {
        return flow;
    }
    let body = match x.request.body.kept().map(|kept| &kept.content) {
        None => Box::default(),
        Some(StoredContent::Memory(bytes)) => bytes[..].into(),
        Some(StoredContent::File(file)) => match read(&file.slice()) {
            Ok(body) => body,
            Err(flow) => return flow,
        },
    };
    match steering::ask(SteeringRequest { body, ..request }).await {
        Some(reply) => give(x, reply),
        None => Flow::Status(503),
    }
}

/// Reads a body that was put aside just now, so that it is in the system's memory.
fn read(file: &FileSlice) -> Result<Box<[u8]>, Flow> {
    let length = usize::try_from(file.len()).ok().filter(|length| *length <= CHANGE_BODY_MAX);
    let mut body = vec![0; length.ok_or(Flow::Status(413))?];
    file.file.read_exact_at(&mut body, file.start).map_err(|_| Flow::Status(500))?;
    Ok(body.into())
}

fn give(x: &mut Exchange, reply: SteeringReply) -> Flow {
    let SteeringReply { status, json, fields } = reply;
    for field in &fields {
        if let Some((name, value)) = field.split_once(": ") {
            x.reply.fields.append(name.as_bytes(), value.as_bytes());
        }
    }
    status_page::text(x, status, b"application/json", json)
}
