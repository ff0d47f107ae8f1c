//! Errors of the API.

use session::steering::{SteeringReply, SteeringRequest, refusal};
use upstream::api::SpecRefusal;

pub(super) fn overloaded(request: &SteeringRequest) -> SteeringReply {
    let refused = SpecRefusal::new(503, "too many changes are under way", "TooManyChanges");
    refusal(&refused, request)
}

pub(super) fn not_stored(why: &str, request: &SteeringRequest) -> SteeringReply {
    refusal(&SpecRefusal::new(500, why, "StateNotWritten"), request)
}

pub(super) fn not_found() -> SpecRefusal {
    SpecRefusal::new(404, "path not found", "PathNotFound")
}
