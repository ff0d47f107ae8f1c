//! Authorizations: what the server wants to see before it believes that a name is ours (RFC 8555,
//! section 7.1.4).

use alloc::string::String;

use super::challenge::ChallengeKind;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::object;
use super::problem::AcmeProblem;
use super::reply::is_base64url;
use crate::dns::NAME_BYTES_MAX;
use crate::json::JsonObject;
use crate::x509::SubjectName;

/// The most bytes of a token.
const TOKEN_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Authorization {
    Valid,
    /// The name, and the challenge that was chosen.
    Pending(SubjectName, OfferedChallenge),
    Failed(AcmeFailure),
}

/// A challenge that the server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfferedChallenge {
    pub(super) kind: ChallengeKind,
    pub(super) url: String,
    pub(super) token: String,
    /// Whether the server has yet to be told that the answer is published.
    pub(super) is_pending: bool,
}

impl Authorization {
    /// Reads a reply, and chooses the first of `kinds` that is offered.
    pub(super) fn parse(
        body: &[u8],
        kinds: &[ChallengeKind],
        directory: &str,
    ) -> Result<Self, String> {
        let document = object::parse(body)?;
        let name = object::object(&document, "identifier").and_then(name_of);
        let name = name.ok_or("no name in an authorization")?;
        Ok(match object::text(&document, "status") {
            Some("valid") => Self::Valid,
            Some("pending") => match choose(&document, kinds, directory) {
                Some(challenge) => Self::Pending(name, challenge),
                None => Self::Failed(nothing_to_choose(&document, &name)),
            },
            Some(status) => Self::Failed(reason(&document, &name, status)),
            None => return Err("no status of an authorization".into()),
        })
    }
}

/// The name that an identifier stands for. Nothing else in it can break a line or become a second
/// argument.
pub(super) fn name_of(identifier: &JsonObject<'_>) -> Option<SubjectName> {
    let value = object::text(identifier, "value")?;
    let is_name = value.bytes().all(|byte| byte.is_ascii_graphic());
    (is_name && (1..=NAME_BYTES_MAX).contains(&value.len())).then_some(())?;
    match object::text(identifier, "type")? {
        "dns" => Some(SubjectName::Dns(value.to_ascii_lowercase())),
        "ip" => value.parse().ok().map(SubjectName::Ip),
        _ => None,
    }
}

fn choose(
    document: &JsonObject<'_>,
    kinds: &[ChallengeKind],
    directory: &str,
) -> Option<OfferedChallenge> {
    kinds.iter().find_map(|kind| {
        let offered = object::list(document, "challenges").iter();
        let mut offered = offered.filter_map(|challenge| challenge.as_object());
        let offer = offered.find(|offer| object::text(offer, "type") == Some(kind.name()))?;
        let token = object::text(offer, "token")?;
        let is_token = is_base64url(token) && (1..=TOKEN_BYTES_MAX).contains(&token.len());
        is_token.then_some(OfferedChallenge {
            kind: *kind,
            url: object::url(offer, "url", directory)?,
            token: token.into(),
            is_pending: object::text(offer, "status") == Some("pending"),
        })
    })
}

fn nothing_to_choose(document: &JsonObject<'_>, name: &SubjectName) -> AcmeFailure {
    let mut detail = alloc::format!("{name}: the server offers");
    for challenge in object::list(document, "challenges").iter().take(8) {
        let kind = challenge.as_object().and_then(|challenge| object::text(challenge, "type"));
        detail.push(' ');
        super::problem::push_clean(kind.unwrap_or("?"), &mut detail);
    }
    AcmeFailure::new(AcmeFailureKind::NoChallenge, AcmeActivity::Authorization, detail)
}

/// The problem of the challenge that failed.
fn reason(document: &JsonObject<'_>, name: &SubjectName, status: &str) -> AcmeFailure {
    let mut challenges = object::list(document, "challenges").iter();
    let error = challenges.find_map(|one| object::object(one.as_object()?, "error"));
    let failure = match error {
        Some(error) => AcmeProblem::read(error).of_authorization(),
        None => {
            let mut detail = String::from("the authorization is ");
            super::problem::push_clean(status, &mut detail);
            AcmeFailure::new(AcmeFailureKind::Challenge, AcmeActivity::Challenge, detail)
        }
    };
    AcmeFailure { detail: alloc::format!("{name}: {}", failure.detail), ..failure }
}
