//! Orders that succeed.

use super::*;

#[test]
fn an_order_takes_nine_requests() {
    let mut server = FakeServer::new();
    let mut journal = Journal::default();
    let chain = drive(order(plan(&["a.test"])), &mut server, &mut journal).expect("a chain");
    assert_eq!(chain.validity.not_after_s, 1_100_000_000);
    let paths = [
        "/directory",
        "/nonce",
        "/account",
        "/order",
        "/authorization/0/0",
        "/challenge/0/0",
        "/order/0",
        "/finalize/0",
        "/certificate/0",
    ];
    assert_eq!(server.requests, paths);
    assert_eq!((journal.waited_s, journal.published_ever), (0, 1));
    assert_eq!(journal.account.as_deref(), Some("https://ca.test/account/1"));
}

#[test]
fn a_known_account_is_not_looked_up() {
    let mut server = FakeServer::new();
    let mut journal = Journal::default();
    drive(order(plan(&["a.test"])), &mut server, &mut journal).expect("a chain");
    obtain(&mut server, |plan| plan.account.url = journal.account).expect("a chain");
    assert_eq!(count(&server, "/account"), 1);
}

#[test]
fn a_forgotten_account_is_created_again() {
    let mut server = FakeServer::new();
    let mut journal = Journal::default();
    let mut plan = plan(&["a.test"]);
    drive(order(plan.clone()), &mut server, &mut journal).expect("a chain");
    (plan.account.url, plan.stored_order) = (journal.account.take(), journal.order.take());
    server.forget();
    drive(order(plan), &mut server, &mut journal).expect("a chain");
    assert_eq!((server.orders(), count(&server, "/account")), (1, 2));
    assert!(journal.account.is_some() && journal.order.is_some());
}

#[test]
fn every_name_has_its_answer() {
    let mut server = FakeServer::new();
    let mut run = order(plan(&["a.test", "*.a.test", "192.0.2.1"]));
    let mut outcome = AcmeInput::Done;
    let answers = loop {
        outcome = match run.resume(outcome) {
            AcmeStep::Send(request) => AcmeInput::Reply(server.answer(&request).expect("a reply")),
            AcmeStep::Publish(answers) => break answers,
            _ => AcmeInput::Done,
        };
    };
    let names: Vec<_> = answers.iter().map(|answer| answer.name.to_string()).collect();
    assert_eq!(names, ["a.test", "a.test", "192.0.2.1"]);
    let thumbprint = key_thumbprint(&FakeKey(0), &FakeCrypto).expect("a thumbprint");
    let authorization = |token: &str| format!("{token}.{thumbprint}");
    let token = "token-http-01-0".to_string();
    let key_authorization = authorization(&token);
    assert_eq!(answers[0].answer, ChallengeAnswer::Http01 { token, key_authorization });
    let digest = FakeCrypto.sha256(authorization("token-dns-01-1").as_bytes());
    let (record, value) = ("_acme-challenge.a.test".to_string(), jws::base64url(&digest));
    assert_eq!(answers[1].answer, ChallengeAnswer::Dns01 { record, value });
    assert_eq!(answers[2].answer.kind(), ChallengeKind::Http01);
}

#[test]
fn the_handshake_for_an_address_has_a_name() {
    for (name, expected) in [("192.0.2.1", "1.2.0.192.in-addr.arpa"), ("a.test", "a.test")] {
        let kind = ChallengeKind::TlsAlpn01;
        let challenge = AcmeChallenge::new(kind, SubjectName::of(name), "t", "k", &FakeCrypto);
        let digest = FakeCrypto.sha256(b"t.k");
        let server_name = expected.to_string();
        assert_eq!(challenge.answer, ChallengeAnswer::TlsAlpn01 { server_name, digest });
    }
}

#[test]
fn polls_wait_longer_and_longer_or_as_long_as_the_server_says() {
    for (retry_after, waited_s) in [(None, 6 + 2), (Some("7"), 3 * 7 + 2 * 7)] {
        let mut server = FakeServer::new();
        (server.reads_until_ready, server.reads_until_valid) = (3, 1);
        server.retry_after = retry_after;
        let mut journal = Journal::default();
        drive(order(plan(&["a.test"])), &mut server, &mut journal).expect("a chain");
        assert_eq!(count(&server, "/order/0"), 4 + 2);
        assert_eq!(journal.waited_s, waited_s);
    }
}

#[test]
fn the_preferred_chain_may_be_an_alternate() {
    let mut server = FakeServer::new();
    for (preferred, root, requests) in
        [("Root 0", "Root 0", 1), ("Root 1", "Root 1", 2), ("?", "Root 0", 2)]
    {
        server.requests.clear();
        let preferred = Some(preferred.to_string());
        let chain = obtain(&mut server, |plan| plan.preferred_chain = preferred).expect("a chain");
        assert_eq!(chain.root.as_deref(), Some(root));
        assert_eq!(count(&server, "/certificate"), requests);
    }
}

#[test]
fn a_profile_is_sent_only_if_it_is_offered() {
    let profile =
        |name: &str, is_required| Some(AcmeProfile { name: name.to_string(), is_required });
    let mut server = FakeServer::new();
    server.meta = "\"profiles\":{\"short\":\"6 days\"}";
    obtain(&mut server, |plan| plan.profile = profile("short", true)).expect("a chain");
    assert!(server.payload("/order").contains("\"profile\":\"short\""));
    server.payloads.clear();
    obtain(&mut server, |plan| plan.profile = profile("long", false)).expect("a chain");
    assert!(!server.payload("/order").contains("profile"));
    let orders = server.orders();
    let missing = obtain(&mut server, |plan| plan.profile = profile("long", true));
    assert_eq!((kind(missing), server.orders()), (AcmeFailureKind::Profile, orders));
}

#[test]
fn an_external_account_is_bound() {
    let external = ExternalAccount { key_id: "kid-1".to_string(), key: b"secret".to_vec() };
    let mut server = FakeServer::new();
    obtain(&mut server, |plan| plan.account.external = Some(external)).expect("a chain");
    let payload = object::parse(server.payload("/account").as_bytes()).expect("an object");
    let binding = object::object(&payload, "externalAccountBinding").expect("a binding");
    let mut protected = Vec::new();
    let text = object::text(binding, "protected").expect("a text");
    crate::base64::decode_url(text.as_bytes(), &mut protected).expect("base64url");
    let expected = "{\"alg\":\"HS256\",\"kid\":\"kid-1\",\"url\":\"https://ca.test/account\"}";
    assert_eq!(protected, expected.as_bytes());
}

#[test]
fn a_certificate_that_was_replaced_already_is_no_obstacle() {
    let mut server = FakeServer::new();
    server.renewal = Some("{}");
    obtain(&mut server, |plan| plan.replaces = Some("replaced".to_string())).expect("a chain");
    assert_eq!(count(&server, "/order"), 2 + 1);
    assert_eq!(server.orders(), 1);
}
