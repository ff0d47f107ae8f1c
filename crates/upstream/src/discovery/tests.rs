use std::sync::Arc;

use super::Discovery;
use crate::Group;
use crate::api::SpecPatch;
use crate::resolver::testing::TestNameServer;
use crate::roster::ServerOperation;
use crate::testing::group;

/// From one lookup of a name to the next: the answers are valid for no time. No query is repeated
/// so soon.
const PAUSE_MS: u64 = 1001;

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        net::yield_now().await;
    }
}

fn watching(server: &TestNameServer, name: &str) -> Arc<Group> {
    let resolver = format!("resolver {} ipv6=off;", server.address);
    group(&format!("{resolver} server {name}:81 resolve;"))
}

#[test]
fn names_are_looked_up_until_the_next_configuration_is_adopted() {
    let server = TestNameServer::start(|asked| Some(asked.addresses(0, &["127.0.0.2"])));
    let queries = |name: &str| server.log().iter().filter(|query| query.ends_with(name)).count();
    net::run(async {
        net::testing::stop_clock();
        let old = watching(&server, "old.test");
        let lookups = Discovery::of([&old]);
        until(|| old.servers().len() == 1).await;
        assert_eq!(queries("old.test"), 1);
        net::testing::advance(PAUSE_MS).await;
        until(|| queries("old.test") == 2).await;
        net::testing::settle().await;

        let new = watching(&server, "new.test");
        let next = Discovery::of([&new]);
        drop(lookups);
        until(|| new.servers().len() == 1).await;
        let before = queries("old.test");
        net::testing::advance(PAUSE_MS).await;
        until(|| queries("new.test") >= 2).await;
        assert_eq!(queries("old.test"), before, "a query for it would have come first");
        drop(next);
    })
    .unwrap();
}

#[test]
fn a_name_that_is_added_is_looked_up_until_it_is_removed() {
    let server = TestNameServer::start(|asked| Some(asked.addresses(0, &["127.0.0.2"])));
    let count = || server.log().iter().filter(|query| query.ends_with("added.test")).count();
    net::run(async {
        net::testing::stop_clock();
        let group = group(&format!("resolver {} ipv6=off; server 10.0.0.1;", server.address));
        let mut lookups = Discovery::of([&group]);
        let wanted = SpecPatch { server: Some((*b"added.test:81").into()), ..SpecPatch::default() };
        let added = group.rules().unwrap().add(&group.roster(), &wanted).unwrap();
        assert!(group.change(&added, true));
        lookups.changed(&group);
        until(|| group.servers().len() == 2).await;
        assert_eq!(group.servers()[1].name(), b"127.0.0.2:81");
        assert!(group.change(&ServerOperation::Remove { id: 1 }, true));
        lookups.changed(&group);
        assert_eq!(group.servers().len(), 1);
        let before = count();
        net::testing::advance(PAUSE_MS).await;
        net::testing::settle().await;
        assert_eq!(count(), before);
    })
    .unwrap();
}
