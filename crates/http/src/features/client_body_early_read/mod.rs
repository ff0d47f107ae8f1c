//! `client_body_early_read`: reads a request's body before other handlers run.

use net::LentFuture;
use std::sync::Arc;

use conf::{Predicates, Result};

use crate::admit;
use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER;

    /// Reads the request body before any other processing if one of these values is neither empty
    /// nor `0`.
    client_body_early_read: Option<Predicates>,
}

/// Adds a handler that runs before the server's own rewrite rules.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.client_body_early_read.is_some() {
        let conf = conf.clone();
        location.rewrite(move |x| read_early(&conf, x));
    }
    Ok(())
}

fn read_early(conf: &Conf, x: &mut Exchange) -> Flow {
    let predicates = conf.client_body_early_read.as_ref().expect("installed with it");
    // Locations have this handler as well, but it only acts in the server's own block.
    if x.location != x.server().outer || !x.request.body.is_unread() || !predicates.any(x) {
        return Flow::Next;
    }
    match admit::admit_body(x) {
        Flow::Next => Flow::wait(|x| {
            LentFuture::new(async { x.read_body().await.err().unwrap_or(Flow::Next) })
        }),
        refused => refused,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::site;

    #[test]
    fn a_body_is_read_if_a_predicate_is_true() {
        let site = site(
            "server {
                client_max_body_size 5;
                client_body_early_read $arg_one $arg_two;
                location / { client_max_body_size 50; return 200 x; }
            }",
        );
        let post = |target: &str| {
            let head = format!("POST {target} HTTP/1.1\nHost: a\nContent-Length: 6\n\n");
            site.send(&head).status()
        };
        assert_eq!(post("/"), 200);
        assert_eq!(post("/?one=0"), 200);
        assert_eq!(post("/?one=0&two=1"), 413);
    }
}
