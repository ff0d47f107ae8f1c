//! The loop: checks servers when they are due, and passes the results to the watch.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use net::{Task, Timer, clock};
use upstream::Server;
use upstream::health::{Change, CheckKey, Due, HealthCheck, Watch};

use super::lines;
use super::probe::HealthProbe;

/// The checks of a subsystem, on the thread that made this.
pub struct HealthChecks<P: HealthProbe> {
    state: Rc<HealthState<P>>,
    task: RefCell<Option<Task>>,
}

struct HealthState<P: HealthProbe> {
    watch: RefCell<Watch<P>>,
    /// Connections kept for further checks.
    kept: RefCell<HashMap<CheckKey, P::Kept>>,
    changed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl<P: HealthProbe> Default for HealthChecks<P> {
    fn default() -> Self {
        let state = HealthState {
            watch: RefCell::default(),
            kept: RefCell::default(),
            changed: Cell::default(),
            waker: Cell::default(),
        };
        Self { state: Rc::new(state), task: RefCell::default() }
    }
}

impl<P: HealthProbe> HealthChecks<P> {
    /// Continues with the checks of a new configuration. Call it before any worker has that
    /// configuration, so that no server is used before its mandatory first check.
    pub fn serve(&self, checks: Vec<HealthCheck<P>>) {
        let is_idle = checks.is_empty();
        self.state.watch.borrow_mut().replace(checks, clock::now_ms());
        self.state.wake();
        let mut task = self.task.borrow_mut();
        if task.is_none() && !is_idle {
            *task = Some(net::spawn(self.state.clone().attend()));
        }
    }

    /// Stops checking; the health of servers is kept.
    pub fn stop(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.stop();
        }
    }
}

impl<P: HealthProbe> HealthState<P> {
    fn wake(&self) {
        self.changed.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Checks servers when they are due, forever.
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

    async fn ask(self: Rc<Self>, due: Due<P>) {
        let Due { key, server, check } = due;
        let kept = self.kept.borrow_mut().remove(&key);
        let question = Question { state: self.clone(), key: key.clone(), is_open: true };
        let begun_ns = clock::turn_ns();
        let (verdict, kept) = check.probe.ask(&server, kept).await;
        let change = question.answer(verdict.is_ok());
        count(&server, verdict.is_ok(), change, clock::turn_ns().saturating_sub(begun_ns));
        if let Some(kept) = kept.filter(|_| self.watch.borrow().has(&key)) {
            self.kept.borrow_mut().insert(key, kept);
        }
        lines::log(&check, &server, &verdict, change);
    }
}

/// Adds a check to what its server has done.
fn count(server: &Server, passed: bool, change: Option<Change>, took_ns: u64) {
    if !metrics::are_wanted() {
        return;
    }
    let counters = server.counters().own();
    counters.checks().add(1);
    counters.check_fails().add((!passed).into());
    counters.unhealthy().add((change.is_some() && !server.is_healthy()).into());
    counters.checked_ms().set(clock::unix_ms());
    counters.check_passed().set(passed.into());
    counters.check_us().set(took_ns / 1000);
}

/// A check in progress. The watch gets a result even if this is dropped.
struct Question<P: HealthProbe> {
    state: Rc<HealthState<P>>,
    key: CheckKey,
    is_open: bool,
}

impl<P: HealthProbe> Question<P> {
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

impl<P: HealthProbe> Drop for Question<P> {
    fn drop(&mut self) {
        if self.is_open {
            self.close(false);
        }
    }
}
