//! The head of the request to a backend.

use observe::Level;
use wire::uri::{EscapeSet, escape};

use super::fields::Length;
use super::version::ProxyHttpVersion;
use super::{Proxy, ProxyTarget};
use crate::backend::BackendRequestBody;
use crate::backend::protocol::http1;
use crate::exchange::Exchange;
use crate::header_text::{self, FORBIDDEN};

impl Proxy {
    /// Writes the head; `None`, with a line in the log: the request would be invalid.
    pub(crate) fn write_head(
        &self,
        x: &mut Exchange,
        target: &ProxyTarget,
        body: &BackendRequestBody,
        out: &mut Vec<u8>,
    ) -> Option<http1::Http1Start> {
        let start = out.len();
        match &self.conf.method {
            Some(method) => {
                method.render(x, out);
                if !out[start..].iter().all(u8::is_ascii_graphic) {
                    x.log(Level::Error, format_args!("invalid method in \"proxy_method\""));
                    return None;
                }
            }
            None => out.extend_from_slice(x.request.method_name()),
        }
        let to_head = out[start..].eq_ignore_ascii_case(b"HEAD");
        out.push(b' ');
        let uri = out.len();
        self.write_uri(x, target, out);
        if out.len() == uri {
            x.log(Level::Error, format_args!("zero length URI to proxy"));
            return None;
        }
        // Neither the client's text nor escaped text has spaces or control characters.
        if (target.uri_is_whole || !x.request.args.is_empty())
            && header_text::encode_target(out, uri).is_err()
        {
            x.log(Level::Error, format_args!("the URI to proxy {FORBIDDEN}"));
            return None;
        }
        x.backends.uri.clear();
        x.backends.uri.extend_from_slice(&out[uri..]);
        out.extend_from_slice(match self.conf.http_version {
            ProxyHttpVersion::Http10 => b" HTTP/1.0\r\n",
            ProxyHttpVersion::Http11 => b" HTTP/1.1\r\n",
            ProxyHttpVersion::Http2 => b" HTTP/2.0\r\n",
        });
        let length = match (body, x.request.body.length_left()) {
            (BackendRequestBody::Stored(body), _) => Length::Known(body.len()),
            (_, Some(bytes)) => Length::Known(bytes),
            (BackendRequestBody::Streamed, None) => Length::Chunked,
            (BackendRequestBody::None, None) => Length::None,
        };
        let to = &mut x.backends.request_to;
        match length {
            Length::Known(bytes) => to.length = Some(bytes),
            Length::Chunked => to.chunked = true,
            Length::None => {}
        }
        self.fields.write_host(x, &target.host, self.conf.http_version, out)?;
        self.fields.write_set(x, length, out)?;
        if self.family.passes_fields() {
            self.fields.write_passed(x, out);
        }
        out.extend_from_slice(b"\r\n");
        Some(http1::Http1Start {
            to_head,
            chunked: length == Length::Chunked,
            announced: self.fields.announced(length),
            trailers_max: self.conf.pass_trailers.then(|| self.family.trailer_bytes_max()),
        })
    }

    fn write_uri(&self, x: &Exchange, target: &ProxyTarget, out: &mut Vec<u8>) {
        let request = &x.request;
        if let Some(uri) = target.uri.as_deref().filter(|_| target.uri_is_whole) {
            return out.extend_from_slice(uri);
        }
        // A target without a path would be invalid: the normalised "/" is sent instead.
        if target.uri.is_none() && request.uri_unchanged && !request.head.empty_path {
            return out.extend_from_slice(request.text(request.head.target));
        }
        let replaced = match &target.uri {
            Some(uri) if request.valid_location => {
                out.extend_from_slice(uri);
                self.location.len().min(request.uri.len())
            }
            _ => 0,
        };
        let rest = &request.uri[replaced..];
        match request.head.quoted || x.internal {
            true => escape(EscapeSet::Uri, rest, out),
            false => out.extend_from_slice(rest),
        }
        if !request.args.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&request.args);
        }
    }
}
