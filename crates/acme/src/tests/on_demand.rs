//! Certificates for names that only clients tell.

use tls::OnDemandCertificates as _;

use super::*;
use crate::on_demand::{OnDemandNames, OnDemandServer};
use crate::on_demand_keeper::OnDemandKeeper;
use crate::on_demand_plan::OnDemandPlan;
use crate::on_demand_rules::OnDemandRules;

/// The path of questions about the only name that the authority knows.
const ASKED: &str = "/ask?domain=a.test";
const WAIT_MS: u64 = 10_000;

/// A process with names that clients tell.
struct Demand {
    keeper: Rc<OnDemandKeeper>,
    server: Arc<OnDemandServer>,
}

fn rules(authority: &FakeAuthority) -> OnDemandRules {
    OnDemandRules {
        ask: authority.directory().replace("directory", "ask"),
        names_max: 2,
        new_per_hour_max: 60,
        wait_ms: WAIT_MS,
        unused_s: 30 * 24 * 60 * 60,
    }
}

impl Demand {
    fn start(authority: &FakeAuthority, folder: &Arc<StateFolder>, rules: OnDemandRules) -> Self {
        let issuer = issuer("a", authority, folder);
        let names = Arc::new(OnDemandNames::default());
        let (issuers, key) = (vec![issuer.clone()], NewKey::EcdsaP256);
        let plan = OnDemandPlan { names: names.clone(), rules, issuers, key };
        let keeper = OnDemandKeeper::start(plan, vec![IssuerInUse::new(issuer)]);
        Self { keeper, server: Arc::new(OnDemandServer { names, wait_ms: WAIT_MS }) }
    }

    /// A handshake that names the host. Returns whether it shows the host's certificate, and how
    /// long it has waited.
    async fn handshake(&self, name: &str) -> (bool, u64) {
        if self.server.known(name.as_bytes()).is_some() {
            return (true, 0);
        }
        let (done, mut over) = net::mailbox();
        let demanded = self.server.clone().demand(name.as_bytes().into());
        net::spawn(async move { done.send(demanded.await.is_some()) });
        let mut waited_ms = 0;
        loop {
            net::testing::settle().await;
            let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(over.poll_next(cx))).await;
            match poll {
                std::task::Poll::Ready(shown) => return (shown.unwrap(), waited_ms),
                std::task::Poll::Pending => {
                    net::testing::advance(WORKING_MS).await;
                    waited_ms += WORKING_MS;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Lets time pass while nothing is under way.
    async fn pass(&self, ms: u64, step_ms: u64) {
        for _ in 0..ms / step_ms {
            net::testing::settle().await;
            net::testing::advance(step_ms).await;
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn a_name_that_is_allowed_gets_a_certificate_during_the_handshake() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let demand = Demand::start(&authority, &folder, rules(&authority));
        let (is_shown, waited_ms) = demand.handshake("a.test").await;
        assert!(is_shown && waited_ms < WAIT_MS, "{waited_ms}");
        assert_eq!(demand.handshake("A.test").await, (true, 0));
        assert_eq!((authority.count(ASKED), authority.count("/new-order")), (1, 1));
        // It is shown before it is stored.
        while folder.names_with(".json").unwrap().is_empty() {
            demand.pass(WORKING_MS, WORKING_MS).await;
        }
        demand.keeper.stop();
        // After a restart, neither the endpoint nor the authority is asked.
        let next = Demand::start(&authority, &folder, rules(&authority));
        assert_eq!(next.handshake("a.test").await, (true, 0));
        assert_eq!((authority.count(ASKED), authority.count("/new-order")), (1, 1));
        next.keeper.stop();
    });
}

#[test]
fn a_name_that_is_refused_costs_one_question_in_ten_minutes_and_no_order() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail(ASKED, 1, 404, "");
        let demand = Demand::start(&authority, &folder, rules(&authority));
        for _ in 0..10 {
            assert!(!demand.handshake("a.test").await.0);
        }
        assert_eq!((authority.count(ASKED), authority.count("/new-order")), (1, 0));
        assert_eq!(folder.names("").unwrap(), [""; 0]);
        demand.pass(11 * MINUTE_MS, MINUTE_MS).await;
        assert!(demand.handshake("a.test").await.0);
        demand.keeper.stop();
    });
}

#[test]
fn an_endpoint_that_fails_allows_nothing() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail(ASKED, 1, 503, "");
        authority.fail(ASKED, 1, 302, "Location: /\r\n");
        let demand = Demand::start(&authority, &folder, rules(&authority));
        assert!(!demand.handshake("a.test").await.0);
        demand.pass(2 * MINUTE_MS, MINUTE_MS).await;
        assert!(!demand.handshake("a.test").await.0, "a redirect allows nothing");
        assert_eq!((authority.count(ASKED), authority.count("/new-order")), (2, 0));
        demand.keeper.stop();
    });
}

#[test]
fn a_handshake_does_not_wait_for_an_authority_that_fails() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail("/new-order", 1, 500, "");
        let demand = Demand::start(&authority, &folder, rules(&authority));
        let (is_shown, waited_ms) = demand.handshake("a.test").await;
        assert!(!is_shown && waited_ms < WAIT_MS, "{waited_ms}");
        let (is_shown, waited_ms) = demand.handshake("a.test").await;
        assert!(!is_shown && waited_ms <= WORKING_MS, "there is nothing to wait for: {waited_ms}");
        assert_eq!((authority.count(ASKED), authority.count("/new-order")), (1, 1));
        demand.keeper.stop();
    });
}

#[test]
fn names_have_a_limit_and_so_have_new_ones() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let few = OnDemandRules { names_max: 3, new_per_hour_max: 2, ..rules(&authority) };
        let demand = Demand::start(&authority, &folder, few);
        for name in ["b.test", "c.test", "d.test", "e.test"] {
            demand.handshake(name).await;
        }
        let mut stored = folder.names_with(".used").unwrap();
        stored.iter_mut().for_each(|name| name.truncate(6));
        assert_eq!(stored, ["b.test", "c.test"], "two in an hour");
        demand.pass(31 * MINUTE_MS, MINUTE_MS).await;
        demand.handshake("d.test").await;
        demand.pass(31 * MINUTE_MS, MINUTE_MS).await;
        demand.handshake("e.test").await;
        assert_eq!(folder.names_with(".used").unwrap().len(), 3, "three in all");
        demand.keeper.stop();
    });
}

#[test]
fn a_name_that_nobody_uses_is_not_renewed_and_forgotten_in_the_end() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let demand = Demand::start(&authority, &folder, rules(&authority));
        assert!(demand.handshake("a.test").await.0);
        demand.pass(80 * DAY_MS, 60 * MINUTE_MS).await;
        assert_eq!(authority.count("/new-order"), 1, "it is not renewed");
        let used = folder.names_with(".used").unwrap();
        assert_eq!(used.len(), 1, "it is still valid");
        // A process that has died held its lock.
        folder.write(&used[0].replace(".used", ".lock"), b"dead 0").unwrap();
        demand.pass(11 * DAY_MS, 60 * MINUTE_MS).await;
        assert_eq!(folder.names("a.test").unwrap(), [""; 0]);
        assert!(demand.server.known(b"a.test").is_none());
        demand.keeper.stop();
    });
}
