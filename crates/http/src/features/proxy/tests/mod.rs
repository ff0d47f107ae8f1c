//! A backend behind a server, both in this process.

mod cookies;
mod redirects;
mod requests;
mod variables;

use crate::site::Exclusive;
use std::rc::Rc;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::testing::{refusal, site};

/// The largest block that glibc's allocator takes from the thread's own cache: a larger one costs
/// ten times the instructions.
const SMALL_MAX: usize = 1168;

#[test]
fn sizes_that_do_not_fit_are_refused_in_their_block() {
    let refusal = refusal("server {\nlocation / {\nproxy_buffers 1 4k; } }");
    assert_eq!(refusal, "there must be at least 2 \"proxy_buffers\":2");
}

#[test]
fn a_waiting_request_is_small() {
    let site = site("server { location / { proxy_pass http://127.0.0.1:1; } }");
    let client = Rc::new(Client::new(1, None, net::SocketProbe::NONE, 0));
    let mut x = Exchange::new(client, site.generation.clone());
    let exclusive = site.generation.locations.iter().find_map(|place| place.exclusive.as_ref());
    let Some(Exclusive::Backend(backend)) = exclusive else { panic!("there is a backend") };
    let size = backend.answer(&mut x).size();
    assert!(size <= SMALL_MAX, "{size} bytes");
}
