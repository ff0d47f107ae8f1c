//! What a run asks of its driver, and what it is told.

use alloc::string::String;
use alloc::vec::Vec;

use super::challenge::AcmeChallenge;
use super::failure::AcmeFailure;
use super::reply::AcmeReply;
use crate::Method;

/// What the driver has to do next.
#[derive(Debug)]
pub enum AcmeStep<T> {
    /// Send the request with a field `User-Agent` (RFC 8555, section 6.1), and return the reply
    /// whatever its status. Redirects are not followed, and a body larger than
    /// [`REPLY_BYTES_MAX`](super::REPLY_BYTES_MAX) is a failure.
    Send(AcmeRequest),
    /// Wait for this number of seconds.
    Wait(u64),
    /// Publish the answers, and return once the server can see all of them.
    Publish(Vec<AcmeChallenge>),
    /// Withdraw these answers, whether their publication succeeded or not. A failure here does not
    /// end the run.
    Withdraw(Vec<AcmeChallenge>),
    /// Write the record to stable storage.
    Store(AcmeRecord),
    /// The run has ended.
    Finished(Result<T, AcmeFailure>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeRequest {
    pub method: Method,
    /// `https://`, or `http://` if the directory's URL is.
    pub url: String,
    /// The field `Content-Type`, if there is a body.
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}

/// What must outlive the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcmeRecord {
    /// The account's URL: [`AcmeAccount::url`](super::AcmeAccount::url) next time.
    Account(String),
    /// The URL of the order under way, with the key of its certificate:
    /// [`OrderPlan::stored_order`](super::OrderPlan::stored_order) next time. The server knows how
    /// far it is. It ends with the certificate.
    Order(String),
    /// There is no order under way any more.
    NoOrder,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum AcmeInput {
    /// The step is done; or, at first, begin.
    Done,
    /// The reply to the request.
    Reply(AcmeReply),
    /// The step could not be done, for this reason.
    Failed(String),
}
