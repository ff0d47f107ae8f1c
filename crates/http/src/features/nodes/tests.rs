//! Which lines are accepted, and the limits that hold until the store has told the number.

use crate::testing::{refusal, site};

const ZONES: &str = "limit_conn_zone $arg_a zone=a:1m; limit_upstream_zone u 1m;";

#[test]
fn until_the_store_has_told_it_the_number_is_that_of_the_address() {
    for (nodes, expected) in [("", 6), ("?nodes=3", 2), ("?nodes=7", 1)] {
        // The line may follow the limits.
        let site = site(&format!(
            "{ZONES} server {{ limit_conn a 6/nodes; }} nodes valkey://127.0.0.1:1{nodes};"
        ));
        let held: Vec<_> = (0..expected).map(|_| site.get("/?a=1")).collect();
        assert!(held.iter().all(|x| x.status() == 403), "{nodes}");
        assert_eq!(site.get("/?a=1").status(), 503, "{nodes}");
    }
}

#[test]
fn a_limit_in_shares_needs_someone_who_counts_the_nodes() {
    let upstream = |limit: &str| {
        format!("{ZONES} upstream a {{ server 127.0.0.1:1; limit_upstream_conn zone=u {limit}; }}")
    };
    let server = |limit: &str| format!("{ZONES} server {{ limit_conn a {limit}; }}");
    for (text, expected) in [
        (server("6/nodes"), "nobody counts the nodes of \"6/nodes\":1"),
        (upstream("limit=6/nodes"), "nobody counts the nodes of \"limit=6/nodes\":1"),
        (server("0/nodes"), "invalid number of connections \"0/nodes\":1"),
        (server("/nodes"), "invalid number of connections \"/nodes\":1"),
        (server("65536/nodes"), "connection limit must be less 65536:1"),
        (server("6/node"), "invalid number of connections \"6/node\":1"),
        (server("6/nodes/nodes"), "invalid number of connections \"6/nodes/nodes\":1"),
        (upstream("limit=0/nodes"), "invalid limit \"limit=0/nodes\":1"),
        (upstream("limit=6 backlog=6/nodes"), "invalid backlog \"backlog=6/nodes\":1"),
        (
            "nodes valkey://127.0.0.1; nodes valkey://127.0.0.1;".into(),
            "\"nodes\" directive is duplicate:1",
        ),
        (
            "nodes 127.0.0.1;".into(),
            "no \"valkey://\" or \"valkeys://\" in the address of the store of \"nodes\":1",
        ),
    ] {
        assert_eq!(refusal(&text), expected, "{text}");
    }
}
