//! ACME (RFC 8555): obtains certificates from a certificate authority.
//!
//! An [`AcmeRun`] says step by step what its driver has to do, and is told the outcome:
//!
//! ```text
//! run.resume(Done) -> Send(request)      -> resume(Reply(reply)) or resume(Failed(why))
//!                  -> Wait(seconds)      -> resume(Done)
//!                  -> Publish(challenges)-> resume(Done) once visible, or resume(Failed(why))
//!                  -> Withdraw(challenges), Store(record) -> resume(Done) or resume(Failed(why))
//!                  -> Finished(result)   -> the end
//! ```
//!
//! An order ([`order`]) takes this way:
//!
//! ```text
//! directory -> account -> new order, or the stored one
//!   -> authorizations -> publish, respond, poll the order until it is "ready", withdraw
//!   -> finalize -> poll the order until it is "valid" -> certificate, and its alternates
//! ```
//!
//! Deliberately absent: sockets, clocks, files, and the arithmetic of keys, which [`AcmeCrypto`]
//! and [`Signer`](crate::signer::Signer) provide. A run makes at most [`REQUESTS_MAX`] requests
//! and a few more for each name; all its loops and texts have limits. It repeats a request only
//! if the server refused the nonce, and a poll of an order also if it failed, both a few times:
//! when to try again is for [`schedule`] to say.

mod account;
mod authorization;
mod certificate;
mod challenge;
mod conversation;
mod directory;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod issue;
mod jws;
mod object;
mod order;
mod plan;
mod problem;
mod renewal;
mod reply;
mod run;
pub mod schedule;
mod step;

#[cfg(test)]
mod tests;

pub use certificate::IssuedChain;
pub use challenge::{AcmeChallenge, ChallengeAnswer, ChallengeKind};
pub use conversation::REQUESTS_MAX;
pub use failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
pub use issue::order;
pub use jws::{AcmeCrypto, ExternalAccount, key_thumbprint};
pub use plan::{AcmeAccount, AcmeProfile, OrderPlan};
pub use renewal::{RenewalInfo, renewal_id, renewal_info};
pub use reply::{AcmeReply, REPLY_BYTES_MAX};
pub use run::AcmeRun;
pub use step::{AcmeInput, AcmeRecord, AcmeRequest, AcmeStep};
