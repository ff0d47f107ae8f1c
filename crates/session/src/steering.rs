//! Requests for changes at run time, on their way from whoever received them to the one process
//! that decides: the master.
//!
//! A worker calls [`ask`]; its process passes the request on and returns the answer. Deliberately
//! absent: what a request means.

use std::sync::OnceLock;
use std::time::Duration;

use ::upstream::api::SpecRefusal;
use net::{MailboxSender, Timer};
use wire::json;

/// The longest body of a request.
pub const CHANGE_BODY_MAX: usize = 1 << 20;
/// How long a worker waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A request of the API. Texts that the client did not send are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringRequest {
    pub method: Box<[u8]>,
    /// The path after the version of the API, with percent escapes:
    /// `http/upstreams/app/servers/3`.
    pub path: Box<[u8]>,
    pub args: Box<[u8]>,
    pub body: Box<[u8]>,
    pub content_type: Box<[u8]>,
    pub origin: Box<[u8]>,
    pub host: Box<[u8]>,
    /// `Weir-Owner`: who claims the group.
    pub owner: Box<[u8]>,
    /// `Weir-Version`: which list of servers this is.
    pub version: Box<[u8]>,
    /// Who asks, for the log.
    pub who: Box<[u8]>,
    /// The id of the request in errors.
    pub request_id: Box<[u8]>,
    /// The store whose changes the body has (`KeyvalMerge`). Empty for requests of the API.
    pub store: Box<[u8]>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringReply {
    pub status: u16,
    /// Empty: the reply has no body.
    pub json: Vec<u8>,
    /// Header fields beyond those of every reply: `Name: value`.
    pub fields: Vec<String>,
}

/// A request, and where its answer goes.
pub struct SteeringCall {
    pub request: SteeringRequest,
    pub reply: MailboxSender<SteeringReply>,
}

type PassOn = Box<dyn Fn(SteeringCall) + Send + Sync>;

static PASS_ON: OnceLock<PassOn> = OnceLock::new();

/// Sets what passes this process's requests on. Called once, before any worker starts.
pub fn pass_on_by(pass_on: impl Fn(SteeringCall) + Send + Sync + 'static) {
    // Only the first counts.
    let _ = PASS_ON.set(Box::new(pass_on));
}

/// Asks the process that decides. `None`: there is none, or it does not answer in time.
pub async fn ask(request: SteeringRequest) -> Option<SteeringReply> {
    let pass_on = PASS_ON.get()?;
    let (reply, mut answers) = net::mailbox();
    pass_on(SteeringCall { request, reply });
    let timer = Timer::new();
    timer.set(ANSWER_MAX.as_millis() as u64);
    timer.limit(answers.next()).await.flatten()
}

/// Where the codes of errors are explained.
const HREF: &str = "https://nginx.org/en/docs/http/ngx_http_api_module.html";

/// The reply to a request that is refused, in the form of NGINX Plus.
pub fn refusal(refused: &SpecRefusal, request: &SteeringRequest) -> SteeringReply {
    let SpecRefusal { status, text, code } = refused;
    let mut json = format!("{{\"error\":{{\"status\":{status},\"text\":").into_bytes();
    json::write_text(text.as_bytes(), &mut json);
    json.extend_from_slice(format!(",\"code\":\"{code}\"}},\"request_id\":").as_bytes());
    json::write_text(&request.request_id, &mut json);
    json.extend_from_slice(format!(",\"href\":\"{HREF}\"}}").as_bytes());
    SteeringReply { status: *status, json, fields: Vec::new() }
}

impl SteeringRequest {
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { method, path, args, body, content_type, origin, host, .. } = self;
        let Self { owner, version, who, request_id, store, .. } = self;
        let about = [method, path, args, body, content_type, origin, host];
        let texts = about.into_iter().chain([owner, version, who, request_id, store]);
        let mut out = Vec::new();
        texts.for_each(|text| write_text(&mut out, text));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut next = || Some(Box::from(read_text(&mut bytes)?));
        Some(Self {
            method: next()?,
            path: next()?,
            args: next()?,
            body: next()?,
            content_type: next()?,
            origin: next()?,
            host: next()?,
            owner: next()?,
            version: next()?,
            who: next()?,
            request_id: next()?,
            store: next()?,
        })
    }
}

impl SteeringReply {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.status.to_le_bytes().to_vec();
        write_text(&mut out, &self.json);
        self.fields.iter().for_each(|field| write_text(&mut out, field.as_bytes()));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (status, mut rest) = bytes.split_first_chunk()?;
        let json = read_text(&mut rest)?.to_vec();
        let mut fields = Vec::new();
        while !rest.is_empty() {
            fields.push(String::from_utf8(read_text(&mut rest)?.to_vec()).ok()?);
        }
        Some(Self { status: u16::from_le_bytes(*status), json, fields })
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

fn read_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u64::from_le_bytes(*length).try_into().ok()?)?;
    *bytes = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_arrive_as_they_were_sent() {
        let request = SteeringRequest {
            method: (*b"PATCH").into(),
            path: (*b"http/upstreams/a/servers/0").into(),
            body: (*b"{\"down\":true}").into(),
            version: (*b"7").into(),
            who: (*b"127.0.0.1").into(),
            ..SteeringRequest::default()
        };
        let bytes = request.to_bytes();
        assert_eq!(SteeringRequest::from_bytes(&bytes), Some(request));
        for end in 0..bytes.len() {
            assert_eq!(SteeringRequest::from_bytes(&bytes[..end]), None, "{end}");
        }
        let fields = vec!["Weir-Persistence: none".to_owned()];
        let reply = SteeringReply { status: 200, json: b"[]".to_vec(), fields };
        assert_eq!(SteeringReply::from_bytes(&reply.to_bytes()), Some(reply));
    }
}
