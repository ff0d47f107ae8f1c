//! Errors of the API.

use session::steering::{SteeringReply, SteeringRequest, refusal};
use upstream::api::SpecRefusal;

pub(super) fn overloaded(request: &SteeringRequest) -> SteeringReply {
    let refused = SpecRefusal::new(503, "too many changes are under way", "TooManyChanges");
    refusal(&refused, request)
}

pub(super) fn not_made(request: &SteeringRequest) -> SteeringReply {
    let why = "no worker process has made the change so far; try again";
    refusal(&SpecRefusal::new(503, why, "ChangeNotMade"), request)
}

pub(super) fn not_kept(why: &str, request: &SteeringRequest) -> SteeringReply {
    refusal(&SpecRefusal::new(500, why, "CacheJournalNotWritten"), request)
}

pub(super) fn not_stored(why: &str, request: &SteeringRequest) -> SteeringReply {
    refusal(&SpecRefusal::new(500, why, "StateNotWritten"), request)
}

pub(super) fn not_found() -> SpecRefusal {
    SpecRefusal::new(404, "path not found", "PathNotFound")
}
