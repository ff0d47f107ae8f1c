//! The head of a request to a gRPC server.

use observe::Level;
use wire::uri::{EscapeSet, escape};
use wire::{Known, Method};

use super::Grpc;
use crate::backend::address::RequestTarget;
use crate::backend::request_fields::Length;
use crate::backend::{GrpcRequest, StreamRequest};
use crate::exchange::Exchange;
use crate::header_text::{self, FORBIDDEN};

impl Grpc {
    /// Writes the head; `None`, with a line in the log: the request would be invalid.
    pub(super) fn write_head(
        &self,
        x: &mut Exchange,
        target: &RequestTarget<'_>,
        length: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Option<GrpcRequest> {
        out.extend_from_slice(x.request.method_name());
        out.push(b' ');
        self.write_uri(x, out)?;
        out.extend_from_slice(b" HTTP/2.0\r\n");
        self.fields.write_host(x, authority(target.host()), true, out)?;
        self.fields.write_set(x, length.map_or(Length::None, Length::Known), out)?;
        if self.passes_te && accepts_trailers(x) {
            out.extend_from_slice(b"TE: trailers\r\n");
        }
        self.fields.write_passed(x, out);
        out.extend_from_slice(b"\r\n");
        Some(self.stream(target, x.request.head.method == Method::Head))
    }

    /// Writes the head of a call of Weir's own, with the fields that the location sets.
    pub(super) fn write_call(
        &self,
        x: &mut Exchange,
        target: &RequestTarget<'_>,
        path: &[u8],
        message_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Option<GrpcRequest> {
        out.extend_from_slice(b"POST ");
        out.extend_from_slice(path);
        out.extend_from_slice(b" HTTP/2.0\r\n");
        self.fields.write_host(x, authority(target.host()), true, out)?;
        self.fields.write_set(x, Length::Known(message_bytes as u64), out)?;
        for (name, value) in [("TE", "trailers"), ("Content-Type", "application/grpc")] {
            if !self.fields.sets(name.as_bytes()) {
                out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        Some(self.stream(target, false))
    }

    fn stream(&self, target: &RequestTarget<'_>, to_head: bool) -> GrpcRequest {
        let trailers_max = Some(self.family.trailer_bytes_max());
        GrpcRequest(StreamRequest { to_head, is_secured: target.is_tls, trailers_max })
    }

    fn write_uri(&self, x: &Exchange, out: &mut Vec<u8>) -> Option<()> {
        let (request, start) = (&x.request, out.len());
        if request.uri_unchanged && !request.head.empty_path {
            out.extend_from_slice(request.text(request.head.target));
            return Some(());
        }
        escape(EscapeSet::Uri, &request.uri, out);
        if !request.args.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&request.args);
        }
        let encoded = header_text::encode_target(out, start);
        if encoded.is_err() {
            x.log(Level::Error, format_args!("the URI of the request {FORBIDDEN}"));
        }
        encoded.ok()
    }
}

/// The name that a server is asked for: `localhost` behind a Unix socket, as in nginx.
fn authority(host: &[u8]) -> &[u8] {
    match host.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case(b"unix:") => b"localhost",
        _ => host,
    }
}

/// Whether the client accepts trailers, which clients of gRPC must.
pub(super) fn accepts_trailers(x: &Exchange) -> bool {
    let value = x.request.field(Known::Te).unwrap_or_default();
    value.windows(8).any(|part| part.eq_ignore_ascii_case(b"trailers"))
}
