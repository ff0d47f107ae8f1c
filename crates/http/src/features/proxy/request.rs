//! The head of the request to a backend.

use observe::Level;
use wire::Method;
use wire::uri::{EscapeSet, escape};

use super::version::ProxyHttpVersion;
use super::{Proxy, ProxyTarget};
use crate::backend::BackendRequestBody;
use crate::backend::cache::CacheAttempt;
use crate::backend::protocol::http1;
use crate::backend::request_fields::{Compiled, Length};
use crate::exchange::Exchange;
use crate::header_text::{self, FORBIDDEN};

impl Proxy {
    /// Writes the head; `None`, with a line in the log: the request would be invalid.
    pub(crate) fn write_head(
        &self,
        x: &mut Exchange,
        target: &ProxyTarget,
        body: &BackendRequestBody,
        cache: Option<&CacheAttempt>,
        out: &mut Vec<u8>,
    ) -> Option<http1::Http1Start> {
        let start = out.len();
        match &self.conf.method {
            _ if is_converted(x, cache) => out.extend_from_slice(b"GET"),
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
            (BackendRequestBody::Streamed(_), None) => Length::Chunked,
            (BackendRequestBody::None, None) => Length::None,
        };
        let to = &mut x.backends.request_to;
        match length {
            Length::Known(bytes) => to.length = Some(bytes),
            Length::Chunked => to.chunked = true,
            Length::None => {}
        }
        let fields = self.fields(cache);
        let needs_host = self.conf.http_version != ProxyHttpVersion::Http10;
        fields.write_host(x, &target.host, needs_host, out)?;
        fields.write_set(x, length, out)?;
        if self.family.passes_fields() {
            fields.write_passed(x, out);
        }
        out.extend_from_slice(b"\r\n");
        Some(http1::Http1Start {
            to_head,
            chunked: length == Length::Chunked,
            announced: fields.announced(length),
            trailers_max: self.conf.pass_trailers.then(|| self.family.trailer_bytes_max()),
        })
    }

    /// The fields of a request, which asks for the whole reply if that is to be stored.
    fn fields(&self, cache: Option<&CacheAttempt>) -> &Compiled {
        match (&self.cache, cache) {
            (Some(own), Some(attempt)) if attempt.is_cacheable() => &own.fields,
            _ => &self.fields,
        }
    }

    /// nginx's key: the scheme, the backend's host as it is in `Host`, and the URI of the request.
    pub(super) fn write_key(&self, x: &Exchange, target: &ProxyTarget, out: &mut Vec<u8>) {
        out.extend_from_slice(if target.is_tls { b"https://" } else { b"http://" });
        match target.group.name() {
            path if path.starts_with(b"unix:") => {
                out.extend_from_slice(path);
                out.push(b':');
            }
            _ => out.extend_from_slice(&target.host),
        }
        self.write_uri(x, target, out);
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

/// Whether a HEAD request is sent as GET.
fn is_converted(x: &Exchange, cache: Option<&CacheAttempt>) -> bool {
    x.request.head.method == Method::Head && cache.is_some_and(CacheAttempt::converts_head)
}
