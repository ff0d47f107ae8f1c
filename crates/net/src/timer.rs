//! One coarse timer wheel per worker, for deadlines that are mostly never reached.
//!
//! Moving a deadline later is one store: the wheel checks again when the old deadline is due. A
//! connection moves its keepalive deadline at every request, and pays for it once per [`HORIZON`].
//! For a resolution of a millisecond use [`sleep`].
//!
//! The wheel is driven by a kernel timer that is set to the next deadline. With a timeout of epoll,
//! the event loop would read the clock in each turn, whether a deadline is near or not.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::alarm::KernelTimer;
use crate::{clock, slots};

/// Width of a slot.
const TICK_MS: u64 = 16;
const SLOTS: usize = 1024;
/// How many ticks ahead a deadline is stored; later ones are stored at the horizon and checked
/// again from there. One slot is left out: that of the current tick, which is emptied afterwards.
const HORIZON: u64 = SLOTS as u64 - 2;
const NEVER: u64 = u64::MAX;

/// A deadline that can be moved.
pub struct Timer {
    index: u32,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Timer {
    /// A timer that is not set.
    pub fn new() -> Self {
        let index = WHEEL.with_borrow_mut(Wheel::add);
        Self { index, not_send: std::marker::PhantomData }
    }

    /// Sets or moves the deadline, `delay_ms` from now.
    pub fn set(&self, delay_ms: u64) {
        let due_ms = clock::now_ms().saturating_add(delay_ms);
        WHEEL.with_borrow_mut(|wheel| wheel.set(self.index, due_ms));
    }

    /// The same for a deadline that must not be rounded up to a tick of the wheel.
    fn set_exact(&self, delay_ms: u64) {
        let due_ms = clock::next_ms().saturating_add(delay_ms);
        WHEEL.with_borrow_mut(|wheel| wheel.set_exact(self.index, due_ms));
    }

    /// Removes the deadline.
    pub fn clear(&self) {
        WHEEL.with_borrow_mut(|wheel| wheel.entries[self.index as usize].due_ms = NEVER);
    }

    /// Ready once the deadline has passed; while pending, the task is woken at the deadline.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let now_ms = clock::now_ms();
        WHEEL.with_borrow_mut(|wheel| wheel.entries[self.index as usize].poll(now_ms, cx))
    }

    /// Whether the deadline has passed.
    pub fn has_passed(&self) -> bool {
        self.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Sets or moves the deadline, `delay_ms` from now, and polls it.
    pub fn poll_anew(&self, delay_ms: u64, cx: &mut Context<'_>) -> Poll<()> {
        let now_ms = clock::now_ms();
        WHEEL.with_borrow_mut(|wheel| {
            wheel.set(self.index, now_ms.saturating_add(delay_ms));
            wheel.entries[self.index as usize].poll(now_ms, cx)
        })
    }

    /// Awaits a future; `None`: the deadline passed first.
    pub async fn limit<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => self.poll(cx).map(|()| None),
        })
        .await
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // When the thread ends, the wheel may be gone before the last connection.
        let _ = WHEEL.try_with(|wheel| wheel.borrow_mut().remove(self.index));
    }
}

/// Waits with a resolution of a millisecond, and never too short.
pub async fn sleep(delay: Duration) {
    let timer = Timer::new();
    timer.set_exact(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    poll_fn(|cx| timer.poll(cx)).await;
}

/// Frees the memory of former timers.
pub(crate) fn shrink() {
    WHEEL.with_borrow_mut(|wheel| slots::shrink(&mut wheel.entries, &mut wheel.free, |_| true));
}

/// The next deadline that a task waits for.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn next_deadline_ms() -> Option<u64> {
    let now_ms = clock::now_ms();
    WHEEL.with_borrow(|wheel| {
        let awaited = wheel.entries.iter().filter(|entry| entry.waker.is_some());
        awaited
            .map(|entry| entry.due_ms)
            .filter(|due_ms| (now_ms + 1..NEVER).contains(due_ms))
            .min()
    })
}

/// Makes the driver read the clock again.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn wake_driver() {
    WHEEL.with_borrow_mut(|wheel| wheel.driver.take().into_iter().for_each(Waker::wake));
}

/// Wakes the tasks whose deadlines have passed, with a resolution of a millisecond.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn wake_due() {
    let now_ms = clock::now_ms();
    let wakers: Vec<Waker> = WHEEL.with_borrow_mut(|wheel| {
        let due = wheel.entries.iter_mut().filter(|entry| entry.due_ms <= now_ms);
        due.filter_map(|entry| entry.waker.take()).collect()
    });
    wakers.into_iter().for_each(Waker::wake);
}

thread_local! {
    static WHEEL: RefCell<Wheel> = RefCell::new(Wheel::new());
    /// When the driver wakes next. A new deadline before it must wake the driver.
    static DRIVER_DUE_MS: Cell<u64> = const { Cell::new(NEVER) };
}

struct Wheel {
    entries: Vec<TimerEntry>,
    free: Vec<u32>,
    slots: Vec<Vec<u32>>,
    /// The first tick that has not been processed.
    next_tick: u64,
    linked: usize,
    /// Exact deadlines, the next one first, with the entry that each was set for. A deadline that
    /// was dropped or moved since is recognised when it is due.
    exact: BinaryHeap<Reverse<(u64, u32)>>,
    driver: Option<Waker>,
}

struct TimerEntry {
    due_ms: u64,
    /// The tick of the slot that holds it; listings in other slots are out of date.
    linked_tick: u64,
    waker: Option<Waker>,
}

impl TimerEntry {
    fn poll(&mut self, now_ms: u64, cx: &mut Context<'_>) -> Poll<()> {
        if self.due_ms != NEVER && self.due_ms <= now_ms {
            return Poll::Ready(());
        }
        match &self.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => self.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Wheel {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            slots: vec![Vec::new(); SLOTS],
            next_tick: clock::now_ms() / TICK_MS,
            linked: 0,
            exact: BinaryHeap::new(),
            driver: None,
        }
    }

    fn add(&mut self) -> u32 {
        let entry = TimerEntry { due_ms: NEVER, linked_tick: NEVER, waker: None };
        match self.free.pop() {
            Some(index) => {
                // A slot may still list the index; its link is kept so that the slot recognises it.
                let old = &mut self.entries[index as usize];
                *old = TimerEntry { linked_tick: old.linked_tick, ..entry };
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    fn remove(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.due_ms = NEVER;
        entry.waker = None;
        self.free.push(index);
    }

    fn set(&mut self, index: u32, due_ms: u64) {
        let entry = &mut self.entries[index as usize];
        entry.due_ms = due_ms;
        if entry.linked_tick == NEVER || entry.linked_tick > due_ms.div_ceil(TICK_MS) {
            self.link(index);
        }
    }

    fn link(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let horizon = self.next_tick + HORIZON;
        let tick = entry.due_ms.div_ceil(TICK_MS).clamp(self.next_tick, horizon);
        entry.linked_tick = tick;
        self.slots[tick as usize % SLOTS].push(index);
        self.linked += 1;
        self.wake_driver_before(tick * TICK_MS);
    }

    fn set_exact(&mut self, index: u32, due_ms: u64) {
        self.entries[index as usize].due_ms = due_ms;
        self.exact.push(Reverse((due_ms, index)));
        self.wake_driver_before(due_ms);
    }

    fn wake_driver_before(&mut self, due_ms: u64) {
        if due_ms < DRIVER_DUE_MS.get()
            && let Some(driver) = self.driver.take()
        {
            driver.wake();
        }
    }

    /// Wakes the tasks whose deadlines have passed, and links entries again whose deadlines were
    /// moved.
    fn advance(&mut self, now_ms: u64) {
        while let Some(Reverse((due_ms, index))) = self.exact.peek().copied()
            && due_ms <= now_ms
        {
            self.exact.pop();
            self.wake(index, now_ms);
        }
        while self.next_tick * TICK_MS <= now_ms && self.linked > 0 {
            let tick = self.next_tick;
            self.next_tick += 1;
            let mut due = std::mem::take(&mut self.slots[tick as usize % SLOTS]);
            self.linked -= due.len();
            for index in due.drain(..) {
                self.look_at(index, tick, now_ms);
            }
            self.slots[tick as usize % SLOTS] = due;
        }
        self.next_tick = self.next_tick.max(now_ms / TICK_MS);
    }

    fn look_at(&mut self, index: u32, tick: u64, now_ms: u64) {
        // A slot may list a timer that no longer exists.
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        if entry.linked_tick != tick {
            return;
        }
        entry.linked_tick = NEVER;
        if entry.due_ms == NEVER {
            return;
        }
        if entry.due_ms > now_ms {
            return self.link(index);
        }
        self.wake(index, now_ms);
    }

    fn wake(&mut self, index: u32, now_ms: u64) {
        if let Some(entry) = self.entries.get_mut(index as usize)
            && entry.due_ms <= now_ms
            && let Some(waker) = entry.waker.take()
        {
            waker.wake();
        }
    }

    fn next_due_ms(&self) -> u64 {
        let exact_ms = self.exact.peek().map_or(NEVER, |Reverse((due_ms, _))| *due_ms);
        if self.linked == 0 {
            return exact_ms;
        }
        (self.next_tick..self.next_tick + SLOTS as u64)
            .find(|tick| !self.slots[*tick as usize % SLOTS].is_empty())
            .map_or(exact_ms, |tick| exact_ms.min(tick * TICK_MS))
    }
}

/// Advances the wheel; one task per worker.
pub(crate) struct WheelDriver(KernelTimer);

impl WheelDriver {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(KernelTimer::new()?))
    }

    pub(crate) async fn run(self) {
        loop {
            clock::refresh();
            let now_ms = clock::now_ms();
            let due_ms = WHEEL.with_borrow_mut(|wheel| {
                wheel.advance(now_ms);
                wheel.next_due_ms()
            });
            DRIVER_DUE_MS.set(due_ms);
            match due_ms == NEVER || clock::is_stopped() {
                true => self.0.stop(),
                false => self.0.set_at(clock::monotonic_of(due_ms)),
            }
            self.wait().await;
        }
    }

    /// Waits until the kernel timer expires, or an earlier deadline is set.
    async fn wait(&self) {
        let mut asked = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut asked, true)
                && WHEEL.with_borrow(|wheel| wheel.driver.is_none())
            {
                return Poll::Ready(());
            }
            WHEEL.with_borrow_mut(|wheel| wheel.driver = Some(cx.waker().clone()));
            self.0.poll(cx)
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;
    use std::time::Instant;

    use super::*;
    use crate::spawn;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A timer of a wheel, with its deadline and a flag that is set when it is woken.
    struct Awaited {
        index: u32,
        due_ms: u64,
        flag: Arc<Flag>,
    }

    impl Awaited {
        fn new(wheel: &mut Wheel, now_ms: u64, delay_ms: u64) -> Self {
            let (index, flag) = (wheel.add(), Arc::<Flag>::default());
            let mut awaited = Self { index, due_ms: 0, flag };
            awaited.set(wheel, now_ms, delay_ms);
            awaited
        }

        fn set(&mut self, wheel: &mut Wheel, now_ms: u64, delay_ms: u64) {
            self.due_ms = now_ms + delay_ms;
            wheel.set(self.index, self.due_ms);
            let waker = Waker::from(self.flag.clone());
            let polled =
                wheel.entries[self.index as usize].poll(now_ms, &mut Context::from_waker(&waker));
            assert_eq!(polled.is_ready(), delay_ms == 0);
        }

        /// Whether it has been woken if it is due, and has not if it is not.
        fn is_right(&self, now_ms: u64) -> bool {
            let is_woken = self.flag.0.load(Ordering::Relaxed);
            if is_woken { self.due_ms <= now_ms } else { now_ms < self.due_ms + TICK_MS }
        }
    }

    #[test]
    fn deadlines_beyond_the_horizon_are_met() {
        let mut wheel = Wheel::new();
        let begin_ms = wheel.next_tick * TICK_MS;
        let delays = [1, 15_000, 16_368, 17_000, 40_000, 60_000, 75_000, 3_600_000];
        let all = delays.map(|delay_ms| Awaited::new(&mut wheel, begin_ms, delay_ms));
        for now_ms in (begin_ms..begin_ms + 3_601_000).step_by(TICK_MS as usize) {
            wheel.advance(now_ms);
            let wrong = all.iter().find(|awaited| !awaited.is_right(now_ms));
            let delay_ms = wrong.map(|awaited| awaited.due_ms - begin_ms);
            assert_eq!(delay_ms, None, "after {}", now_ms - begin_ms);
        }
        assert_eq!(wheel.linked, 0);
    }

    /// Compares with the deadlines themselves; the driver is late now and then.
    #[test]
    fn moved_dropped_and_reused_deadlines_are_met() {
        let mut random = 7u64;
        let mut draw = move |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        let mut wheel = Wheel::new();
        let mut now_ms = wheel.next_tick * TICK_MS;
        let mut all: Vec<Awaited> = Vec::new();
        for round in 0..30_000 {
            for _ in 0..draw(4) {
                let range = [40, 3000, 100_000][draw(3) as usize];
                let delay_ms = 1 + draw(range);
                match draw(3) {
                    0 if !all.is_empty() => {
                        let at = draw(all.len() as u64) as usize;
                        all[at].set(&mut wheel, now_ms, delay_ms);
                    }
                    _ => all.push(Awaited::new(&mut wheel, now_ms, delay_ms)),
                }
            }
            if round % 5000 == 4999 {
                all.drain(2..).for_each(|awaited| wheel.remove(awaited.index));
                let Wheel { entries, free, .. } = &mut wheel;
                slots::shrink(entries, free, |_| true);
            }
            now_ms += draw(2 * TICK_MS);
            wheel.advance(now_ms);
            assert!(all.iter().all(|awaited| awaited.is_right(now_ms)), "round {round}");
            all.retain(|awaited| {
                let is_over = awaited.flag.0.load(Ordering::Relaxed);
                is_over.then(|| wheel.remove(awaited.index)).is_none()
            });
        }
    }

    #[test]
    fn a_sleep_is_never_too_short() {
        crate::run(async {
            for ms in [0, 1, 3, 7] {
                let delay = Duration::from_millis(ms);
                let start = Instant::now();
                sleep(delay).await;
                assert!(start.elapsed() >= delay);
            }
        })
        .unwrap();
    }

    #[test]
    fn timers_work_after_the_table_has_shrunk() {
        crate::run(async {
            for _ in 0..2 {
                // The wheel's slots still list them.
                let many: Vec<_> = (0..1000).map(|_| Timer::new()).collect();
                many.iter().for_each(|timer| timer.set(20));
                many.iter().for_each(|timer| timer.set_exact(1));
                drop(many);
                shrink();
                assert!(WHEEL.with_borrow(|wheel| wheel.entries.len()) < 100);
                let timer = Timer::new();
                timer.set(40);
                poll_fn(|cx| timer.poll(cx)).await;
            }
        })
        .unwrap();
    }

    #[test]
    fn a_deadline_before_all_others_wakes_the_driver() {
        crate::run(async {
            let (late, early) = (Timer::new(), Timer::new());
            late.set(3_600_000);
            spawn(async move { poll_fn(|cx| late.poll(cx)).await });
            sleep(Duration::from_millis(1)).await;
            early.set(1);
            poll_fn(|cx| early.poll(cx)).await;
            sleep(Duration::from_millis(1)).await;
        })
        .unwrap();
    }
}
