//! Services, and names that are watched.

use std::cell::RefCell;
use std::rc::Rc;

use net::clock;

use super::super::testing::{ReceivedQuery, SRV, TestNameServer, TestResponse};
use super::{RESEND_MS, pause, resolver, resolver_of, run, settings};
use crate::resolver::{ResolvedPeer, ResolverSettings, ServiceTarget, WatchedName, watch};

fn services(asked: &ReceivedQuery) -> Option<TestResponse> {
    if asked.kind != SRV {
        return Some(match &asked.name[..] {
            "gone.net" => asked.reply().code(3),
            "failing.net" => asked.reply().code(2),
            _ => asked.addresses(300, &["127.0.0.1", "::1"]),
        });
    }
    let reply = asked.reply();
    Some(match &asked.name[..] {
        "_http._tcp.a.net" => reply
            .service(&asked.name, [2, 0, 8082], "two.net")
            .service(&asked.name, [1, 5, 8081], "one.net")
            .service(&asked.name, [0, 9, 8080], "gone.net"),
        "_http._tcp.b.net" => reply.service(&asked.name, [1, 1, 1], "failing.net").service(
            &asked.name,
            [2, 1, 1],
            "gone.net",
        ),
        "_http._tcp.c.net" => reply.service(&asked.name, [1, 1, 1], "failing.net"),
        "_sip._udp.a.net" => reply.service(&asked.name, [1, 1, 5060], "one.net"),
        "_http._tcp.alias.net" => reply.alias(&asked.name, 300, "_sip._udp.a.net"),
        _ => reply.code(3),
    })
}

#[test]
fn services_and_their_addresses() {
    let server = TestNameServer::start(services);
    let resolver = resolver(&[&server]);
    run(async {
        let found = resolver.services(b"A.net", b"http").await.unwrap();
        let shown: Vec<_> = found
            .targets
            .iter()
            .map(|target| {
                let ServiceTarget { name, priority, weight, .. } = target;
                let mut sockets: Vec<_> =
                    target.sockets().map(|socket| socket.to_string()).collect();
                sockets.sort_unstable();
                format!("{priority} {weight} {name} {}", sockets.join(" "))
            })
            .collect();
        let expected = [
            "0 9 gone.net ",
            "1 5 one.net 127.0.0.1:8081 [::1]:8081",
            "2 1 two.net 127.0.0.1:8082 [::1]:8082",
        ];
        assert_eq!(shown, expected);
        assert!(found.valid_until_ms <= clock::now_ms() + 60_000, "of the service, not of hosts");
        for (name, service) in [("a.net", "_sip._udp"), ("alias.net", "http")] {
            let found = resolver.services(name.as_bytes(), service.as_bytes()).await.unwrap();
            assert_eq!(found.targets[0].port, 5060);
        }
    });
}

#[test]
fn services_that_are_not_found() {
    let server = TestNameServer::start(services);
    let resolver = resolver(&[&server]);
    run(async {
        let error = async |name: &str| {
            resolver.services(name.as_bytes(), b"http").await.unwrap_err().to_string()
        };
        let expected = "service http of b.net could not be resolved (3: Host not found)";
        assert_eq!(error("b.net").await, expected, "a target that is gone says more");
        let expected = "service http of c.net could not be resolved (2: Server failure)";
        assert_eq!(error("c.net").await, expected);
        let expected = "service http of x.net could not be resolved (3: Host not found)";
        assert_eq!(error("x.net").await, expected);
        let expected = "service http of a..b could not be resolved (3: Host not found)";
        assert_eq!(error("a..b").await, expected);
    });
}

#[test]
fn a_watched_name_is_reported_when_it_changes() {
    let server = TestNameServer::start(|asked| {
        Some(match asked.times {
            1 | 2 => asked.addresses(0, &["127.0.0.2", "127.0.0.1"]),
            3 => asked.reply().code(2),
            4 => asked.addresses(0, &["127.0.0.1", "127.0.0.2"]),
            5 => asked.addresses(0, &["127.0.0.3"]),
            _ => asked.reply().code(3),
        })
    });
    let seen = reports(&server, None, 4);
    let expected = [
        "127.0.0.1:80 127.0.0.2:80",
        "a.net could not be resolved (2: Server failure)",
        "127.0.0.3:80",
        "",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_watched_service_has_backups() {
    let server = TestNameServer::start(services);
    let seen = reports(&server, Some("http"), 1);
    let expected = "127.0.0.1:8081 one.net 5 [::1]:8081 one.net 5 \
                    127.0.0.1:8082 two.net 1 backup [::1]:8082 two.net 1 backup";
    assert_eq!(seen, [expected]);
}

/// The first `count` reports about `a.net`.
fn reports(server: &TestNameServer, service: Option<&str>, count: usize) -> Vec<String> {
    let settings = ResolverSettings { valid_ms: Some(100), ..settings(&[server]) };
    let resolver = resolver_of(settings, RESEND_MS);
    let service = service.map(|service| service.as_bytes().into());
    let watched = WatchedName { name: (*b"a.net").into(), service, port: 80 };
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let into = seen.clone();
    run(async move {
        let task = net::spawn(watch(resolver, watched, 0, move |report| {
            let line = match report {
                Ok(peers) => peers.iter().map(show_peer).collect::<Vec<_>>().join(" "),
                Err(error) => error.to_string(),
            };
            into.borrow_mut().push(line);
        }));
        while seen.borrow().len() < count {
            pause(20).await;
        }
        task.stop();
        seen.take()
    })
}

fn show_peer(peer: &ResolvedPeer) -> String {
    match &peer.name {
        None => peer.address.to_string(),
        Some(name) => {
            let backup = if peer.backup { " backup" } else { "" };
            format!("{} {name} {}{backup}", peer.address, peer.weight)
        }
    }
}
