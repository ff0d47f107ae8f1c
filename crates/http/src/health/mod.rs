//! Active checks of backends: asked by one thread of the process, whatever number of workers serve.
//!
//! When who is asked and what the answers come to is `upstream::health`'s. Here the checks of a
//! configuration are collected, servers are asked over HTTP or for a mere connection, and changes
//! are logged. What is known outlives configurations, since [`Health`] does.

mod checkable;
mod lines;
mod location;
pub(crate) mod matching;
mod probe;
mod server;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use ::upstream::Group;
use ::upstream::health::{Change, CheckKey, Due, HealthCheck, Watch};
use net::{Task, Timer, clock};

use crate::backend::check::KeptConnection;
use crate::site::{Generation, Site};
pub(crate) use checkable::Checkable;
pub(crate) use location::LocationCheck;
use probe::HealthProbe;

/// The checks of the process, on the thread that made it.
#[derive(Default)]
pub struct Health {
    state: Rc<HealthState>,
    task: RefCell<Option<Task>>,
}

#[derive(Default)]
struct HealthState {
    watch: RefCell<Watch<HealthProbe>>,
    /// Connections that serve for more than one question.
    kept: RefCell<HashMap<CheckKey, KeptConnection>>,
    changed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl Health {
    /// Goes on with the checks of this configuration. Call it before any worker has it, so that no
    /// server is used that must pass first.
    pub fn serve(&self, site: &Arc<Site>) {
        let checks = checks(site);
        let is_idle = checks.is_empty();
        self.state.watch.borrow_mut().replace(checks, clock::now_ms());
        self.state.wake();
        let mut task = self.task.borrow_mut();
        if task.is_none() && !is_idle {
            *task = Some(net::spawn(self.state.clone().attend()));
        }
    }

    /// Asks nobody any more; what is known of servers stays.
    pub fn stop(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.stop();
        }
    }
}

/// The checks of a configuration, in a fixed order.
fn checks(site: &Arc<Site>) -> Vec<HealthCheck<HealthProbe>> {
    let of_group = |group: &Arc<Group>| {
        let check = group.check()?.clone();
        let (group, terms) = (group.clone(), check.terms);
        Some(HealthCheck {
            group,
            terms,
            probe: HealthProbe::Server(server::ServerProbe { check }),
        })
    };
    let mut checks: Vec<_> = site.groups.iter().filter_map(of_group).collect();
    let generation = Generation::new(site.clone(), 0);
    checks.extend(location::probes(&generation).map(|(probe, check)| HealthCheck {
        group: check.group.clone(),
        terms: check.terms,
        probe: HealthProbe::Location(probe),
    }));
    checks
}

impl HealthState {
    fn wake(&self) {
        self.changed.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Asks whoever is due, for ever.
    async fn attend(self: Rc<Self>) {
        let timer = Timer::new();
        loop {
            let due = self.watch.borrow_mut().due(clock::now_ms());
            due.into_iter().for_each(|due| _ = net::spawn(self.clone().ask(due)));
            let next_ms = self.watch.borrow().next_ms();
            self.kept.borrow_mut().retain(|key, _| self.watch.borrow().has(key));
            match next_ms {
                Some(next_ms) => timer.set(next_ms.saturating_sub(clock::now_ms())),
                None => timer.clear(),
            }
            poll_fn(|cx| {
                if self.changed.take() {
                    return Poll::Ready(());
                }
                self.waker.set(Some(cx.waker().clone()));
                timer.poll(cx)
            })
            .await;
        }
    }

    async fn ask(self: Rc<Self>, due: Due<HealthProbe>) {
        let Due { key, server, check } = due;
        let kept = self.kept.borrow_mut().remove(&key);
        let question = Question { state: self.clone(), key: key.clone(), is_open: true };
        let (verdict, kept) = match &check.probe {
            HealthProbe::Location(probe) => probe.ask(&server, kept).await,
            HealthProbe::Server(probe) => probe.ask(&server, kept).await,
        };
        let change = question.answer(verdict.is_ok());
        if let Some(kept) = kept.filter(|_| self.watch.borrow().has(&key)) {
            self.kept.borrow_mut().insert(key, kept);
        }
        lines::log(&check, &server, &verdict, change);
    }
}

/// A question under way, which is answered however it ends.
struct Question {
    state: Rc<HealthState>,
    key: CheckKey,
    is_open: bool,
}

impl Question {
    fn answer(mut self, passed: bool) -> Option<Change> {
        self.close(passed)
    }

    fn close(&mut self, passed: bool) -> Option<Change> {
        self.is_open = false;
        let change = self.state.watch.borrow_mut().answer(&self.key, passed, clock::now_ms());
        self.state.wake();
        change
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if self.is_open {
            self.close(false);
        }
    }
}
