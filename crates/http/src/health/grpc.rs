//! `health_check type=grpc`: the reply to a call of the health checking protocol of gRPC.

use ::session::health::{CheckFailure, Verdict};
use observe::Text;
use wire::grpc::{SERVING, health_status};

use super::matching::unexpected_status;
use crate::exchange::{Exchange, Fields};

/// The parameters of a check by gRPC.
#[derive(Clone, Default)]
pub(crate) struct GrpcCheck {
    /// The service that is asked for; empty: the whole server.
    pub(crate) service: Box<[u8]>,
    /// The status of a call that passes, too, such as that of a server without the protocol; 0:
    /// none.
    pub(crate) status: u32,
}

const CHECKING_CALL: &str = "checking gRPC status";
const CHECKING_SERVING: &str = "checking serving status";

/// The field with the status of a call: after the body, or in the head of a reply without one.
const GRPC_STATUS: &[u8] = b"grpc-status";

impl GrpcCheck {
    /// Judges a reply, whose head is in the exchange.
    pub(super) fn judge(&self, x: &Exchange, trailers: Option<&Fields>, body: &[u8]) -> Verdict {
        let status = x.backends.head.status;
        if status != 200 {
            return Err(unexpected_status(status));
        }
        let called = call_status(x, trailers);
        let called = called.ok_or_else(|| CheckFailure::new(CHECKING_CALL, "no grpc-status"))?;
        if self.status != 0 && called == self.status.to_string().as_bytes() {
            return Ok(CHECKING_CALL);
        }
        if called != b"0" {
            let called = Text(called);
            return Err(CheckFailure::new(CHECKING_CALL, format!("unexpected status {called}")));
        }
        match health_status(body) {
            Ok(SERVING) => Ok(CHECKING_SERVING),
            Ok(status) => {
                Err(CheckFailure::new(CHECKING_SERVING, format!("unexpected status {status}")))
            }
            Err(_) => Err(CheckFailure::new(CHECKING_SERVING, "invalid message")),
        }
    }
}

fn call_status<'a>(x: &'a Exchange, trailers: Option<&'a Fields>) -> Option<&'a [u8]> {
    let trailer = trailers
        .and_then(|fields| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(GRPC_STATUS)));
    let (head, text) = (&x.backends.head, &x.backends.head_text);
    trailer.map(|(_, value)| value).or_else(|| {
        let mut fields = head.fields.iter();
        let field = fields.find(|field| field.name.of(text).eq_ignore_ascii_case(GRPC_STATUS));
        field.map(|field| field.value.of(text))
    })
}
