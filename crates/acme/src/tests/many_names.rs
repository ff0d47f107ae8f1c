//! Many names whose certificates are due at the same time.

use std::collections::VecDeque;

use super::*;

/// What starts at once, and the limit of starts in ten seconds: those of `orders`.
const STARTS_MAX: usize = 10;
const WINDOW_MS: u64 = 10_000;
/// Steps in which it is not looked whether all are idle, which takes time.
const STEPS_UNSEEN: u64 = 64;

/// Runs so many names until each has its first certificate, and then its second. Returns the
/// memory of the process before the renewals and behind them, in bytes.
async fn renew(names: usize) -> (u64, u64) {
    let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
    let issuer = issuer("a", &authority, &folder);
    let in_use = IssuerInUse::new(issuer.clone());
    let mut keepers = Vec::new();
    for number in 0..names {
        let names = vec![SubjectName::of(&format!("{number}.test"))];
        let certificate = AcmeCertificate::sample(names, NewKey::EcdsaP256, vec![issuer.clone()]);
        let keeper = CertificateKeeper::new(certificate, vec![in_use.clone()]);
        keepers.push((keeper.clone(), net::spawn(keeper.run())));
    }
    let keepers_done = |wanted: u64| {
        let number = |keeper: &CertificateKeeper| keeper.certificate.kept.progress().number;
        let is_idle = keepers.iter().all(|(keeper, _)| keeper.is_waiting.get());
        (is_idle && keepers.iter().all(|(keeper, _)| number(keeper) >= wanted), is_idle)
    };
    // The clock does not wait for the authority: on a busy machine, a few requests get no reply in
    // time, and their orders are made again.
    let most = names + names / 100 + 4;
    orders_in_turn(&authority, || keepers_done(1)).await;
    let (before, ordered) = (net::ProcessUsage::now().memory, authority.count("/new-order"));
    assert!((names..=most).contains(&ordered), "{ordered} orders");
    // All are due within the few days around two thirds of their lifetime.
    let mut passed_ms = 0;
    while passed_ms < 57 * DAY_MS {
        net::testing::advance(DAY_MS / 2).await;
        passed_ms += DAY_MS / 2;
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(authority.count("/new-order"), ordered, "nothing is renewed early");
    authority.set_time((clock::unix_ms() / 1000) as i64);
    orders_in_turn(&authority, || keepers_done(2)).await;
    let renewed = authority.count("/new-order") - ordered;
    assert!((names..=most).contains(&renewed), "{renewed} orders");
    let number = |keeper: &CertificateKeeper| keeper.certificate.kept.progress().number;
    assert!(keepers.iter().all(|(keeper, _)| number(keeper) == 2), "each is renewed once");
    let after = net::ProcessUsage::now().memory;
    keepers.into_iter().for_each(|(_, task)| task.stop());
    (before, after)
}

/// Lets time pass until all are done: slowly, unless all are idle. No window has more orders than
/// are allowed.
async fn orders_in_turn(authority: &FakeAuthority, state: impl Fn() -> (bool, bool)) {
    let mut starts: VecDeque<(u64, usize)> = VecDeque::new();
    let began = Instant::now();
    let mut is_idle = false;
    for step in 0_u64.. {
        if is_idle || step % STEPS_UNSEEN == 0 {
            let (is_done, is_idle_now) = state();
            if is_done {
                return;
            }
            is_idle = is_idle_now;
        }
        assert!(began.elapsed() < Duration::from_secs(1800), "it takes too long");
        let now_ms = clock::now_ms();
        starts.push_back((now_ms, authority.count("/new-order")));
        while starts.front().is_some_and(|(at_ms, _)| at_ms + WINDOW_MS <= now_ms) {
            starts.pop_front();
        }
        let begun = starts.back().unwrap().1 - starts.front().unwrap().1;
        assert!(begun <= 2 * STARTS_MAX, "{begun} orders in ten seconds");
        net::testing::settle().await;
        std::thread::sleep(Duration::from_micros(300));
        net::testing::advance(if is_idle { MINUTE_MS } else { WORKING_MS }).await;
    }
}

#[test]
fn many_names_are_ordered_and_renewed_one_after_the_other() {
    simulate(async || {
        renew(20).await;
    });
}

/// By hand, because it takes minutes: `cargo test -p acme --release -- --ignored ten_thousand`.
#[test]
#[ignore = "it takes minutes"]
fn ten_thousand_names_are_renewed_without_a_burst_and_in_the_same_memory() {
    simulate(async || {
        let (before, after) = renew(10_000).await;
        let grown = after.saturating_sub(before);
        assert!(grown < before / 4, "from {before} to {after} bytes");
    });
}
