//! Large header blocks do not keep other tasks from running.

use super::{Http2Client, Server};

/// Requests of a client, all sent at once.
const REQUESTS: usize = 100;
/// The most work of one poll: the task's share, plus the step that exceeds it.
const POLL_MAX: u64 = 512 * 1024;

const SITE: &str = "http2 on; server { location / { return 200 hello; } }";

/// The most work in one poll while requests with these fields are answered.
fn longest_poll(fields: &[(&str, &str)]) -> u64 {
    let server = Server::start(SITE.to_owned());
    let mut client = Http2Client::connect(&server);
    let streams: Vec<_> = (0..REQUESTS).map(|_| client.ask("/", fields, true).id).collect();
    for stream in streams {
        assert_eq!(client.answer(stream), ("200", "hello".to_owned()));
    }
    server.longest_poll()
}

#[test]
fn header_blocks_with_many_fields_yield_to_other_tasks() {
    let long = "v".repeat(3000);
    let churned = [("a", &long[..]), ("b", &long), ("c", &long)];
    for (name, fields) in [("empty values", &[("x", ""); 900][..]), ("table churn", &churned)] {
        let longest = longest_poll(fields);
        // All requests together exceed the limit several times, so the work was counted.
        assert!((POLL_MAX / 4..=POLL_MAX).contains(&longest), "{name}: {longest}");
    }
}
