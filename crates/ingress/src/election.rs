//! Who writes statuses: the holder of a Lease, as Kubernetes' own controllers elect their leaders.
//! Proxies need no leader; a replica that is not the leader does everything else.
//!
//! A Lease that its holder has not renewed for its duration is taken over. Clocks of other machines
//! do not matter: the time counts from when a change was seen here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use discover::{ApiServer, ApiServerPlace};
use serde_json::{Value, json};

use crate::clock;
use crate::tell;

/// How long a Lease holds.
const LEASE_SECONDS: u64 = 15;
/// How long a leader that cannot renew goes on: shorter, so that there are never two.
const RENEWED_MS_MAX: u64 = 10_000;
const ROUND: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct LeaseName {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Who wants to hold it; no two processes have the same.
    pub(crate) identity: String,
}

/// The next action on the Lease.
#[derive(Debug, PartialEq)]
enum Bid {
    Create(Value),
    Update(Value),
    /// Another holds it.
    Follow,
}

struct Election {
    lease: LeaseName,
    /// The version that was seen last, and when it was new.
    seen: Option<(String, u64)>,
    renewed_ms: Option<u64>,
}

impl Election {
    fn new(lease: LeaseName) -> Self {
        Self { lease, seen: None, renewed_ms: None }
    }

    /// `lease`: as the API server has it; `None`: there is none. `time`: now, as text.
    fn bid(&mut self, lease: Option<Value>, now_ms: u64, time: &str) -> Bid {
        let Some(mut lease) = lease else {
            self.seen = None;
            return Bid::Create(self.new_lease(time));
        };
        let version = lease["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            _ => now_ms,
        };
        self.seen = Some((version, since));
        if !lease["spec"].is_object() {
            lease = self.new_lease(time);
            lease["metadata"]["resourceVersion"] = json!(self.seen.as_ref().map(|seen| &seen.0));
        }
        let spec = &mut lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let is_own = holder == self.lease.identity;
        let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or(LEASE_SECONDS);
        if !is_own && !holder.is_empty() && now_ms - since < seconds.saturating_mul(1000) {
            return Bid::Follow;
        }
        if !is_own {
            let transitions = spec["leaseTransitions"].as_u64().unwrap_or(0);
            spec["leaseTransitions"] = json!(transitions.saturating_add(1));
            spec["acquireTime"] = json!(time);
        }
        spec["holderIdentity"] = json!(self.lease.identity);
        spec["leaseDurationSeconds"] = json!(LEASE_SECONDS);
        spec["renewTime"] = json!(time);
        Bid::Update(lease)
    }

    fn new_lease(&self, time: &str) -> Value {
        let LeaseName { namespace, name, identity } = &self.lease;
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": LEASE_SECONDS,
                "acquireTime": time,
                "renewTime": time,
                "leaseTransitions": 0,
            },
        })
    }

    /// The bid that was made at that time was accepted.
    fn won(&mut self, at_ms: u64) {
        self.renewed_ms = Some(at_ms);
    }

    /// Another holds the Lease.
    fn lost(&mut self) {
        self.renewed_ms = None;
    }

    fn is_leader(&self, now_ms: u64) -> bool {
        self.renewed_ms.is_some_and(|at| now_ms - at < RENEWED_MS_MAX)
    }

    /// Asks and bids once. An error leaves open who holds the Lease.
    fn round(&mut self, api: &mut ApiServer, start: Instant) -> Result<(), String> {
        let LeaseName { namespace, name, .. } = &self.lease;
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let one = format!("{all}/{name}");
        let now_ms = start.elapsed().as_millis() as u64;
        let reply = api.get(&one)?;
        let lease = match reply.status {
            200 => Some(reply.body),
            404 => None,
            _ => return Err(reply.unexpected()),
        };
        let json = "application/json";
        let reply = match self.bid(lease, now_ms, &clock::micro_time()) {
            Bid::Create(lease) => api.change("POST", &all, json, &lease)?,
            Bid::Update(lease) => api.change("PUT", &one, json, &lease)?,
            Bid::Follow => {
                self.lost();
                return Ok(());
            }
        };
        match reply.status {
            200 | 201 => self.won(now_ms),
            // Another was faster.
            409 => self.lost(),
            _ => return Err(reply.unexpected()),
        }
        Ok(())
    }
}

/// Takes part in the election until the process ends.
pub(crate) fn take_part(place: ApiServerPlace, lease: LeaseName, is_leader: Arc<AtomicBool>) {
    let (mut api, mut election) = (ApiServer::new(place), Election::new(lease));
    let start = Instant::now();
    // A round may take longer than a leader that cannot renew may go on.
    let has_ended = Arc::new(AtomicBool::new(false));
    let (ended, leads) = (has_ended.clone(), is_leader.clone());
    thread::spawn(move || expire(&ended, &leads));
    let mut told = String::new();
    loop {
        let round = election.round(&mut api, start);
        if let Err(why) = round
            && why != told
        {
            tell(&format!("lease: {why}"));
            told = why;
        }
        let leads_now = election.is_leader(start.elapsed().as_millis() as u64);
        has_ended.store(true, Ordering::SeqCst);
        if is_leader.swap(leads_now, Ordering::SeqCst) != leads_now {
            let what = if leads_now { "this replica writes statuses" } else { "another leads" };
            tell(&format!("lease: {what}"));
        }
        thread::sleep(ROUND);
    }
}

/// Ends leadership if no round has ended for as long as it may last.
fn expire(has_ended: &AtomicBool, leads: &AtomicBool) {
    loop {
        thread::sleep(Duration::from_millis(RENEWED_MS_MAX));
        if !has_ended.swap(false, Ordering::SeqCst) {
            leads.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(identity: &str) -> Election {
        let text = |text: &str| text.to_owned();
        let (namespace, name) = (text("weir"), text("weir-ingress"));
        Election::new(LeaseName { namespace, name, identity: text(identity) })
    }

    fn stored(bid: Bid, version: u64) -> Value {
        let (Bid::Create(mut lease) | Bid::Update(mut lease)) = bid else { panic!("{bid:?}") };
        lease["metadata"]["resourceVersion"] = json!(version.to_string());
        lease
    }

    #[test]
    fn a_lease_is_taken_over_when_its_holder_stops_renewing_it() {
        let (mut one, mut two) = (election("one"), election("two"));
        let lease = stored(one.bid(None, 0, "t0"), 1);
        one.won(0);
        assert_eq!(two.bid(Some(lease.clone()), 1000, "t1"), Bid::Follow);
        let lease = stored(one.bid(Some(lease), 2000, "t2"), 2);
        assert_eq!(lease["spec"]["leaseTransitions"], 0, "it has only renewed");
        assert_eq!(two.bid(Some(lease.clone()), 3000, "t3"), Bid::Follow);
        assert_eq!(two.bid(Some(lease.clone()), 17_999, "t4"), Bid::Follow);
        let taken = stored(two.bid(Some(lease), 18_000, "t5"), 3);
        let spec = &taken["spec"];
        assert_eq!(
            (&spec["holderIdentity"], &spec["leaseTransitions"]),
            (&json!("two"), &json!(1))
        );
        assert_eq!((&spec["acquireTime"], &spec["renewTime"]), (&json!("t5"), &json!("t5")));
        assert_eq!(one.bid(Some(taken), 18_100, "t6"), Bid::Follow);
    }

    #[test]
    fn a_leader_that_cannot_renew_stops_before_another_begins() {
        let mut one = election("one");
        assert!(!one.is_leader(0));
        one.won(1000);
        assert!(one.is_leader(10_999) && !one.is_leader(11_000));
        const { assert!(RENEWED_MS_MAX < LEASE_SECONDS * 1000) };
        one.lost();
        assert!(!one.is_leader(1000));
    }

    #[test]
    fn a_lease_that_was_given_back_is_taken_at_once() {
        let mut one = election("one");
        let free = json!({"metadata": {"resourceVersion": "4"}, "spec": {"holderIdentity": ""}});
        assert!(matches!(one.bid(Some(free), 0, "t"), Bid::Update(_)));
        let nonsense = json!({"metadata": {"resourceVersion": "5"}, "spec": 7});
        let Bid::Update(taken) = one.bid(Some(nonsense), 0, "t") else { panic!("no update") };
        assert_eq!(taken["metadata"]["resourceVersion"], "5");
    }
}
