//! Where the time of streams goes.

use super::{Http2Client, Server};
use crate::testing::TestSite;

/// More than the windows of a stream.
const LARGE: usize = 1 << 20;

#[test]
fn a_stream_waits_for_its_client() {
    let site = "log_format phases '$uri $request_timing'; http2 on; \
                server { access_log e.log phases; }";
    let files = |site: &TestSite| drop(site.file("large", vec![b'x'; LARGE]));
    let server = Server::with(site, |_| {}, files);
    let mut client = Http2Client::connect(&server);
    client.reads = false;
    let stream = client.get("/large");
    client.until(|client| !client.answers[&stream].body.is_empty());
    server.advance(14);
    client.socket.end();
    server.logged();
    assert_eq!(server.log_text(), "/large {\"total\":14,\"send\":14}\n");
}
