//! Errors of the API, in the form of NGINX Plus.

use session::steering::{SteeringReply, SteeringRequest};
use upstream::api::SpecRefusal;
use wire::json::write_text;

/// Where the codes are explained.
const HREF: &str = "https://nginx.org/en/docs/http/ngx_http_api_module.html";

/// The reply to a request that is refused.
pub fn refusal(refused: &SpecRefusal, request: &SteeringRequest) -> SteeringReply {
    let SpecRefusal { status, text, code } = refused;
    let mut json = format!("{{\"error\":{{\"status\":{status},\"text\":").into_bytes();
    write_text(text.as_bytes(), &mut json);
    json.extend_from_slice(format!(",\"code\":\"{code}\"}},\"request_id\":").as_bytes());
    write_text(&request.request_id, &mut json);
    json.extend_from_slice(format!(",\"href\":\"{HREF}\"}}").as_bytes());
    SteeringReply { status: *status, json, fields: Vec::new() }
}

pub(super) fn overloaded(request: &SteeringRequest) -> SteeringReply {
    let refused = SpecRefusal::new(503, "too many changes are under way", "TooManyChanges");
    refusal(&refused, request)
}

pub(super) fn not_stored(why: &str, request: &SteeringRequest) -> SteeringReply {
    refusal(&SpecRefusal::new(500, why, "StateNotWritten"), request)
}
