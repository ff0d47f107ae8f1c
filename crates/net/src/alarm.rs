//! A deadline that is met within tens of microseconds, by a kernel timer (timerfd).
//!
//! For measurements and exact schedules: [`sleep`](crate::sleep) has a resolution of a millisecond,
//! and [`Timer`](crate::Timer) of a tick. An alarm uses a descriptor, and a system call each time
//! it is set. It is never early.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::event_loop::{Interest, Watched};

/// A deadline that can be moved.
pub struct Alarm {
    timer: KernelTimer,
    at: Option<Instant>,
}

impl Alarm {
    /// An alarm that is not set.
    pub fn new() -> io::Result<Self> {
        Ok(Self { timer: KernelTimer::new()?, at: None })
    }

    /// Sets or moves the deadline.
    pub fn set(&mut self, at: Instant) {
        self.at = Some(at);
        // The delay is counted from a later moment than this one, so that the kernel cannot be
        // early. A deadline in the past needs no timer.
        let delay = at.saturating_duration_since(Instant::now());
        if !delay.is_zero() {
            self.timer.set(delay);
        }
    }

    /// Removes the deadline.
    pub fn clear(&mut self) {
        if self.at.take().is_some() {
            self.timer.stop();
        }
    }

    /// The deadline.
    pub fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Ready from the deadline until a new one is set; while pending, the task is woken at the
    /// deadline.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        while Instant::now() < at {
            ready!(self.timer.poll(cx));
        }
        Poll::Ready(())
    }

    /// Waits until `at`.
    pub async fn wait_until(&mut self, at: Instant) {
        self.set(at);
        poll_fn(|cx| self.poll(cx)).await;
    }
}

/// A kernel timer in the worker's epoll set.
pub(crate) struct KernelTimer(Watched);

impl KernelTimer {
    /// A stopped timer.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Watched::new(fd, Interest::Read)?))
    }

    /// Expires after `delay`.
    fn set(&self, delay: Duration) {
        self.arm(delay, TimerfdTimerFlags::empty());
    }

    /// Expires at a time of the monotonic clock.
    pub(crate) fn set_at(&self, at: Duration) {
        self.arm(at, TimerfdTimerFlags::ABSTIME);
    }

    pub(crate) fn stop(&self) {
        self.arm(Duration::ZERO, TimerfdTimerFlags::empty());
    }

    /// Ready once per expiry. May also report an expiry from before the last setting.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // The descriptor is never read: setting the timer resets its count, and each expiry is an
        // event of its own.
        ready!(self.0.watch().poll_readable(cx));
        self.0.watch().clear_readable();
        Poll::Ready(())
    }

    /// Zero stops it.
    fn arm(&self, time: Duration, flags: TimerfdTimerFlags) {
        let value = Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        let armed = timerfd_settime(self.0.get(), flags, &once);
        debug_assert!(armed.is_ok(), "a timer and a valid time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(3);
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn an_alarm_is_never_early() {
        crate::run(async {
            let mut alarm = Alarm::new().unwrap();
            for tenths in 0..20 {
                let at = Instant::now() + Duration::from_micros(100 * tenths);
                alarm.wait_until(at).await;
                assert!(Instant::now() >= at);
            }
        })
        .unwrap();
    }

    #[test]
    fn an_alarm_can_be_moved_both_ways() {
        crate::run(async {
            let mut alarm = Alarm::new().unwrap();
            let start = Instant::now();
            alarm.set(start + LONG);
            alarm.set(start + SHORT);
            poll_fn(|cx| alarm.poll(cx)).await;
            assert_eq!(alarm.due(), Some(start + SHORT));
            // An expiry of the old deadline says nothing about the new one.
            alarm.set(start + SHORT);
            alarm.set(Instant::now() + SHORT);
            let moved = alarm.due().unwrap();
            poll_fn(|cx| alarm.poll(cx)).await;
            assert!(Instant::now() >= moved);
        })
        .unwrap();
    }

    #[test]
    fn a_cleared_alarm_never_fires() {
        crate::run(async {
            let (mut silent, mut other) = (Alarm::new().unwrap(), Alarm::new().unwrap());
            silent.set(Instant::now() + SHORT);
            silent.clear();
            other.set(Instant::now() + 2 * SHORT);
            poll_fn(|cx| {
                assert!(silent.poll(cx).is_pending());
                other.poll(cx)
            })
            .await;
        })
        .unwrap();
    }
}
