//! Problem documents (RFC 8555, section 6.7): the server's reasons.

use alloc::string::String;

use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::object;
use super::reply::AcmeReply;
use crate::json::JsonObject;

/// The most bytes of a failure's detail.
const DETAIL_BYTES_MAX: usize = 500;
/// The most subproblems that a detail names.
const SUBPROBLEMS_MAX: usize = 3;

const ERRORS: &str = "urn:ietf:params:acme:error:";

/// A problem, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AcmeProblem {
    /// Without its prefix, for example `badNonce`. Empty if it is unknown.
    pub(super) error: String,
    pub(super) detail: String,
}

impl AcmeProblem {
    pub(super) fn read(document: &JsonObject<'_>) -> Self {
        let error = error_of(document).unwrap_or_default();
        let mut detail = String::new();
        push_clean(object::text(document, "detail").unwrap_or_default(), &mut detail);
        for sub in object::list(document, "subproblems").iter().take(SUBPROBLEMS_MAX) {
            let Some(sub) = sub.as_object() else { continue };
            let name = object::object(sub, "identifier").and_then(|id| object::text(id, "value"));
            for part in ["; ", name.unwrap_or("?"), ": "] {
                push_clean(part, &mut detail);
            }
            push_clean(object::text(sub, "detail").unwrap_or_default(), &mut detail);
        }
        // The kind of a compound is that of its first part.
        let first = object::list(document, "subproblems").first();
        let inner = first.and_then(|sub| sub.as_object()).and_then(error_of);
        let error = match (error, inner) {
            ("compound", Some(inner)) => inner,
            _ => error,
        };
        let mut name = String::new();
        push_clean(error, &mut name);
        Self { error: name, detail }
    }

    /// The failure that this problem of an authorization means.
    pub(super) fn of_authorization(self) -> AcmeFailure {
        let kind = match self.error.as_str() {
            "caa" => AcmeFailureKind::Caa,
            "rateLimited" => AcmeFailureKind::RateLimited,
            "serverInternal" => AcmeFailureKind::Server,
            "rejectedIdentifier" => AcmeFailureKind::RejectedName,
            _ => AcmeFailureKind::Challenge,
        };
        AcmeFailure::new(kind, AcmeActivity::Challenge, self.detail)
    }

    /// The failure that this problem in an order means.
    pub(super) fn of_order(self, activity: AcmeActivity) -> AcmeFailure {
        let kind = kind_of(&self.error).unwrap_or(AcmeFailureKind::Refused);
        AcmeFailure::new(kind, activity, self.detail)
    }

    /// The failure that a reply of this status with this problem means.
    fn of_status(self, reply: &AcmeReply, activity: AcmeActivity) -> AcmeFailure {
        let kind = match (kind_of(&self.error), reply.status) {
            (_, 429) => AcmeFailureKind::RateLimited,
            (Some(kind), _) => kind,
            (None, 500..) => AcmeFailureKind::Server,
            (None, 401 | 403) => AcmeFailureKind::Unauthorized,
            (None, 400..=499) => AcmeFailureKind::Refused,
            (None, _) => AcmeFailureKind::InvalidReply,
        };
        let detail = match self.detail.is_empty() {
            true => alloc::format!("status {} {}", reply.status, self.error),
            false => self.detail,
        };
        let detail = detail.trim_end().into();
        AcmeFailure { kind, activity, detail, retry_after_s: reply.retry_after_s }
    }
}

/// The problem in a reply's body, if it has one.
pub(super) fn in_reply(reply: &AcmeReply) -> Option<AcmeProblem> {
    Some(AcmeProblem::read(&object::parse(&reply.body).ok()?))
}

/// The failure that a reply without success means.
pub(super) fn failure(reply: &AcmeReply, activity: AcmeActivity) -> AcmeFailure {
    let nothing = AcmeProblem { error: String::new(), detail: String::new() };
    in_reply(reply).unwrap_or(nothing).of_status(reply, activity)
}

fn error_of<'o>(document: &'o JsonObject<'_>) -> Option<&'o str> {
    object::text(document, "type")?.strip_prefix(ERRORS)
}

fn kind_of(error: &str) -> Option<AcmeFailureKind> {
    Some(match error {
        "rateLimited" => AcmeFailureKind::RateLimited,
        "serverInternal" => AcmeFailureKind::Server,
        "badNonce" => AcmeFailureKind::BadNonce,
        "caa" => AcmeFailureKind::Caa,
        "connection" | "dns" | "incorrectResponse" | "tls" => AcmeFailureKind::Challenge,
        "rejectedIdentifier" | "unsupportedIdentifier" => AcmeFailureKind::RejectedName,
        "unauthorized" => AcmeFailureKind::Unauthorized,
        "accountDoesNotExist" => AcmeFailureKind::UnknownAccount,
        "userActionRequired" => AcmeFailureKind::UserAction,
        "externalAccountRequired" => AcmeFailureKind::ExternalAccount,
        "invalidProfile" => AcmeFailureKind::Profile,
        _ => return None,
    })
}

/// Appends a text without anything that could break a line of a log.
pub(super) fn push_clean(text: &str, out: &mut String) {
    for character in text.chars() {
        if out.len() + character.len_utf8() > DETAIL_BYTES_MAX {
            return;
        }
        out.push(if character.is_control() { ' ' } else { character });
    }
}
