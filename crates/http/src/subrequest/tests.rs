//! Tests of the mechanism; features that use it have their own.

use net::LentFuture;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::exchange::{Bytes, Chunk, FilteredBody, StoredBody};
use crate::site::Exclusive;
use crate::site::Site;
use crate::testing::{TestSite, site_with};

/// A site whose `/` is handled by this handler.
fn answered_by(http: &str, handler: fn(&mut Exchange) -> Flow) -> TestSite {
    let answer = |site: &mut Site| {
        let location = site.locations.iter_mut().find(|location| &*location.name == b"/");
        location.expect("it is there").exclusive = Some(Exclusive::Handler(Box::new(handler)));
    };
    site_with(http, answer)
}

fn answer(x: &mut Exchange, body: Vec<u8>) -> Flow {
    x.reply.status = 200;
    x.reply.set_bytes(Bytes::Owned(body));
    Flow::Done
}

/// Answers with the reply of `/in`.
fn whole(_: &mut Exchange) -> Flow {
    Flow::wait(|x| {
        LentFuture::new(async {
            let args = x.request.args.clone();
            let Some(mut inner) = x.subrequest(b"/in", &args) else { return Flow::Status(500) };
            if let Err(flow) = inner.run().await {
                return flow;
            }
            let mut source = FilteredBody::take(&mut inner.x.reply);
            let mut body = Vec::new();
            while let Some(chunk) = poll_fn(|cx| source.poll_chunk(&mut inner.x, cx)).await.unwrap()
            {
                match chunk {
                    Chunk::Bytes(bytes) => body.extend_from_slice(bytes.as_ref()),
                    Chunk::File(slice) => {
                        let start = body.len();
                        body.resize(start + slice.len() as usize, 0);
                        slice.file.read_exact_at(&mut body[start..], slice.start).unwrap();
                    }
                    Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => {}
                }
            }
            x.end(inner);
            answer(x, body)
        })
    })
}

#[test]
fn uri_is_its_own_and_the_request_is_its_parents() {
    let http = "log_format it '$uri $status';
         server {
            access_log main it;
            listen 80; server_name s;
            set $server_says '<$uri>';
            location / { }
            location /in {
                log_subrequest on;
                set $inner '$request $request_uri $request_method $uri $args $arg_a $http_x $host \
                    $connection_requests $server_name';
                return 200 '$server_says $inner';
            }
         }";
    let site = answered_by(http, whole);
    let reply = site.send("POST /out?a=1 HTTP/1.1\nHost: h\nX: y\nContent-Length: 0\n\n");
    assert_eq!(reply.body(), "</in> POST /out?a=1 HTTP/1.1 /out?a=1 POST /in a=1 1 y h 0 s");
    assert_eq!(site.log("main").matches("/in 200\n").count(), 1);
}

#[test]
fn variables_are_shared_both_ways() {
    let http = "map $uri $seen { default $uri; }
         server {
            location = /start { set $x outer; rewrite ^ /; }
            location / { add_header X $x,$seen; }
            location /in { set $y '$x,$seen'; set $x inner; return 200 $y; }
         }";
    let site = answered_by(http, whole);
    for _ in 0..2 {
        let reply = site.get("/start");
        assert_eq!(reply.body(), "outer,/in");
        assert_eq!(reply.field("X").unwrap(), "inner,/in");
    }
}

#[test]
fn filters_for_the_client_do_not_apply() {
    let http = "server {
            location / { max_ranges 0; }
            location /in { alias html/file; expires 1h; add_header X y; userid on; }
         }";
    let site = answered_by(http, whole);
    site.file("file", "0123456789");
    let fields = "Range: bytes=1-2\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\n";
    let reply = site.get_with("/", fields);
    assert_eq!((reply.status(), reply.body().as_str()), (200, "0123456789"));
}

#[test]
fn a_subrequest_that_is_dropped_drops_its_parent() {
    let http = "server { location / { } location /in { return 444; } }";
    assert!(!answered_by(http, whole).get("/").replied);
}

#[test]
fn nesting_is_limited() {
    static DEEPEST: AtomicU32 = AtomicU32::new(0);
    fn dive(_: &mut Exchange) -> Flow {
        DEEPEST.fetch_add(1, Ordering::Relaxed);
        Flow::wait(|x| {
            LentFuture::new(async {
                let Some(mut inner) = x.subrequest(b"/deeper", b"") else {
                    return Flow::Status(508);
                };
                let ran = inner.run().await;
                let status = inner.x.reply.status;
                x.end(inner);
                ran.err().unwrap_or(Flow::Status(status))
            })
        })
    }
    let site = answered_by("error_log log; server { location / { } }", dive);
    assert_eq!(site.get("/").status(), 508);
    assert_eq!(DEEPEST.load(Ordering::Relaxed), 1 + u32::from(DEPTH_MAX) + 1);
    let cycle = "[error] subrequests cycle while processing \"/deeper\"";
    assert_eq!(site.messages("log"), [cycle]);
}

#[test]
fn a_background_subrequest_has_its_parents_variables_and_body() {
    fn send_beside(x: &mut Exchange) -> Flow {
        x.request.body.keep(StoredBody::in_memory(b"abc".to_vec()));
        let inner = x.subrequest(b"/in", b"").expect("not too deep");
        x.run_in_background(inner);
        Flow::Status(204)
    }
    let http = "log_format it '$uri $x $request_body'; server {
            access_log log it;
            set $x outer;
            location / { }
            location /in { log_subrequest on; set $x inner; return 200; }
         }";
    let site = answered_by(http, send_beside);
    assert_eq!(site.get("/").status(), 204);
    assert_eq!(site.log("log"), "/in inner abc\n/ inner abc\n");
}
