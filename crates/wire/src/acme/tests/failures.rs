//! Servers and connections that fail, and how many requests that costs.

use super::fake_server::{Fault, FaultKind};
use super::*;

/// Every step of an order by its path.
const STEPS: [&str; 9] = [
    "/directory",
    "/nonce",
    "/account",
    "/order",
    "/authorization/",
    "/challenge/",
    "/order/",
    "/finalize/",
    "/certificate/",
];
const FOR_EVER: usize = usize::MAX;

#[test]
fn a_failing_server_is_left_alone_in_every_step() {
    for (step, path) in STEPS.into_iter().enumerate() {
        for what in [FaultKind::Problem(503, "serverInternal"), FaultKind::CutBefore] {
            let expected = match what {
                FaultKind::CutBefore => AcmeFailureKind::Unreachable,
                _ => AcmeFailureKind::Server,
            };
            let mut server = FakeServer::with_fault(path, FOR_EVER, what);
            assert_eq!(kind(obtain(&mut server, |_| ())), expected, "{path}");
            // Only polls are repeated, with a new nonce if there was no reply.
            let repeated = match (path, expected) {
                ("/order/", AcmeFailureKind::Unreachable) => 4,
                ("/order/", _) => 2,
                _ => 0,
            };
            assert_eq!(server.requests.len(), step + 1 + repeated, "{path}");
        }
    }
}

#[test]
fn a_rate_limit_says_when_to_come_again() {
    for path in STEPS {
        let what = FaultKind::Problem(429, "rateLimited");
        let mut server = FakeServer::with_fault(path, FOR_EVER, what);
        server.retry_after = Some("3600");
        let failure = obtain(&mut server, |_| ()).expect_err("a failure");
        assert_eq!(failure.kind, AcmeFailureKind::RateLimited, "{path}");
        assert_eq!(failure.retry_after_s, Some(3600), "{path}");
        assert_eq!(count(&server, path), 1, "{path}");
    }
}

#[test]
fn a_refused_nonce_is_replaced_a_few_times() {
    let what = FaultKind::Problem(400, "badNonce");
    let mut server = FakeServer::with_fault("/order", 5, what.clone());
    obtain(&mut server, |_| ()).expect("a chain");
    assert_eq!(count(&server, "/nonce"), 1, "every reply has a nonce");
    let mut server = FakeServer::with_fault("/order", FOR_EVER, what);
    assert_eq!(kind(obtain(&mut server, |_| ())), AcmeFailureKind::BadNonce);
    assert_eq!(count(&server, "/order"), 6);
}

#[test]
fn an_order_that_is_never_done_is_given_up_and_resumed() {
    for is_finalized in [false, true] {
        let mut server = FakeServer::new();
        let until = if is_finalized {
            &mut server.reads_until_valid
        } else {
            &mut server.reads_until_ready
        };
        *until = usize::MAX;
        let mut journal = Journal::default();
        let mut plan = plan(&["a.test"]);
        let failure = kind(drive(order(plan.clone()), &mut server, &mut journal));
        assert_eq!(failure, AcmeFailureKind::StillProcessing);
        assert!(count(&server, "/order/0") <= 26 && journal.waited_s <= 600, "{journal:?}");
        assert!(server.requests.len() < 40, "{}", server.requests.len());
        (server.reads_until_ready, server.reads_until_valid) = (0, 0);
        plan.account.url = journal.account.clone();
        plan.stored_order = journal.order.clone();
        drive(order(plan), &mut server, &mut journal).expect("a chain");
        assert_eq!((server.orders(), count(&server, "/finalize")), (1, 1));
    }
}

#[test]
fn a_server_that_asks_for_too_much_patience_is_left_alone() {
    let mut server = FakeServer::new();
    (server.reads_until_valid, server.retry_after) = (usize::MAX, Some("86400"));
    let failure = obtain(&mut server, |_| ()).expect_err("a failure");
    assert_eq!(failure.kind, AcmeFailureKind::StillProcessing);
    assert_eq!((failure.retry_after_s, count(&server, "/order/0")), (Some(86_400), 1));
}

#[test]
fn an_order_cut_after_its_finalization_is_not_repeated() {
    for path in ["/finalize/", "/certificate/", "/challenge/"] {
        let mut server = FakeServer::with_fault(path, 1, FaultKind::CutAfter);
        let mut journal = Journal::default();
        let mut plan = plan(&["a.test", "b.test"]);
        let failure = kind(drive(order(plan.clone()), &mut server, &mut journal));
        assert_eq!(failure, AcmeFailureKind::Unreachable);
        plan.account.url = journal.account.clone();
        plan.stored_order = journal.order.clone();
        drive(order(plan), &mut server, &mut journal).expect("a chain");
        assert_eq!((server.orders(), count(&server, "/finalize")), (1, 1), "{path}");
    }
}

#[test]
fn a_stored_order_of_other_names_or_that_is_gone_is_replaced() {
    let mut server = FakeServer::new();
    let mut journal = Journal::default();
    drive(order(plan(&["a.test"])), &mut server, &mut journal).expect("a chain");
    for url in [journal.order, Some("https://ca.test/order/9".to_string())] {
        let mut plan = plan(&["b.test"]);
        (plan.account.url, plan.stored_order) = (journal.account.clone(), url);
        let mut journal = Journal::default();
        let before = server.orders();
        drive(order(plan), &mut server, &mut journal).expect("a chain");
        assert_eq!(server.orders(), before + 1);
        assert_ne!(journal.order.as_deref(), Some("https://ca.test/order/0"));
    }
}

#[test]
fn a_failed_challenge_is_told_from_a_refusal_by_caa() {
    for (error, expected) in [
        ("connection", AcmeFailureKind::Challenge),
        ("unauthorized", AcmeFailureKind::Challenge),
        ("caa", AcmeFailureKind::Caa),
        ("rateLimited", AcmeFailureKind::RateLimited),
    ] {
        let mut server = FakeServer::new();
        server.challenge_error = Some(error);
        let mut journal = Journal::default();
        let result = drive(order(plan(&["a.test"])), &mut server, &mut journal);
        let failure = result.expect_err("a failure");
        assert_eq!((failure.kind, failure.detail.as_str()), (expected, "a.test: no answer"));
        assert_eq!(journal.published_ever, 1);
    }
}

#[test]
fn an_order_that_cannot_succeed_is_forgotten() {
    let mut server = FakeServer::new();
    server.challenge_error = Some("connection");
    let mut journal = Journal::default();
    let result = drive(order(plan(&["a.test"])), &mut server, &mut journal);
    assert_eq!((kind(result), journal.order), (AcmeFailureKind::Challenge, None));
}

#[test]
fn a_wrong_chain_is_not_taken() {
    let mut server = FakeServer::new();
    server.certificate_key = 2;
    let mut journal = Journal::default();
    let failure =
        drive(order(plan(&["a.test"])), &mut server, &mut journal).expect_err("a failure");
    assert_eq!(failure.detail, "the certificate is for another key");
    assert_eq!((failure.kind, journal.order), (AcmeFailureKind::InvalidReply, None));
    for text in ["", "{}", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let mut server = FakeServer::with_fault("/certificate/", 1, FaultKind::Text(text));
        assert_eq!(kind(obtain(&mut server, |_| ())), AcmeFailureKind::InvalidReply, "{text}");
    }
}

#[test]
fn a_server_of_nonsense_ends_the_run() {
    for path in STEPS {
        for text in ["", "<html>", "[]", "{\"status\":\"lost\"}"] {
            let mut server = FakeServer::with_fault(path, FOR_EVER, FaultKind::Text(text));
            let result = obtain(&mut server, |_| ());
            // Their bodies do not matter.
            if !["/nonce", "/challenge/"].contains(&path) {
                assert_eq!(kind(result), AcmeFailureKind::InvalidReply, "{path} {text}");
            }
            assert!(server.requests.len() <= 36, "{path}");
        }
    }
}

#[test]
fn terms_that_nobody_accepted_are_named() {
    let mut server = FakeServer::new();
    server.meta = "\"termsOfService\":\"https://ca.test/terms\"";
    let result = obtain(&mut server, |plan| plan.account.accepts_terms = false);
    let failure = result.expect_err("a failure");
    assert_eq!(failure.kind, AcmeFailureKind::UserAction);
    assert_eq!(failure.detail, "because; terms of service: https://ca.test/terms");
    let result = obtain(&mut server, |plan| plan.account.only_existing = true);
    assert_eq!(kind(result), AcmeFailureKind::UnknownAccount);
}

#[test]
fn a_challenge_that_nobody_can_answer_is_not_tried() {
    let mut server = FakeServer::new();
    let result = obtain(&mut server, |plan| {
        plan.names = vec![SubjectName::of("*.a.test")];
        plan.challenges = vec![ChallengeKind::Http01];
    });
    let failure = result.expect_err("a failure");
    assert_eq!(failure.kind, AcmeFailureKind::NoChallenge);
    assert_eq!(failure.detail, "a.test: the server offers dns-01");
    assert_eq!(count(&server, &challenge_path(0)), 0);
}

#[test]
fn a_name_that_was_not_ordered_is_not_published() {
    let text = "{\"identifier\":{\"type\":\"dns\",\"value\":\"b.test\"},\"status\":\"pending\",\
                \"challenges\":[{\"type\":\"http-01\",\"url\":\"https://ca.test/challenge/0/0\",\
                \"token\":\"t\",\"status\":\"pending\"}]}";
    let mut server = FakeServer::with_fault("/authorization", 1, FaultKind::Text(text));
    let mut journal = Journal::default();
    let result = drive(order(plan(&["a.test"])), &mut server, &mut journal);
    assert_eq!((kind(result), journal.published_ever), (AcmeFailureKind::InvalidReply, 0));
}

#[test]
fn answers_that_cannot_be_published_are_withdrawn() {
    let mut server = FakeServer::new();
    let mut run = order(plan(&["a.test"]));
    let mut outcome = AcmeInput::Done;
    let mut withdrawn = 0;
    let result = loop {
        outcome = match run.resume(outcome) {
            AcmeStep::Send(request) => AcmeInput::Reply(server.answer(&request).expect("a reply")),
            AcmeStep::Publish(_) => AcmeInput::Failed("hook timed out".to_string()),
            AcmeStep::Withdraw(answers) => {
                withdrawn += answers.len();
                AcmeInput::Done
            }
            AcmeStep::Finished(result) => break result,
            _ => AcmeInput::Done,
        };
    };
    let failure = result.expect_err("a failure");
    assert_eq!((failure.kind, withdrawn), (AcmeFailureKind::Publication, 1));
    assert_eq!(failure.detail, "hook timed out");
    assert_eq!(count(&server, &challenge_path(0)), 0);
}

#[test]
fn two_faults_at_once_are_two_failures_at_most() {
    let mut server = FakeServer::with_fault("/order/", 2, FaultKind::CutBefore);
    let what = FaultKind::Problem(400, "badNonce");
    server.faults.push(Fault { path: "/finalize/", times: 3, what });
    obtain(&mut server, |_| ()).expect("a chain");
    assert_eq!(server.orders(), 1);
}
