//! The worker's current time, as of its last wake-up: reading it makes no system call.
//!
//! Refreshed whenever the worker wakes, and every [`REQUESTS_PER_REFRESH`] requests while it is too
//! busy to sleep.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::ClockId;

/// Calls of [`pass`] between two readings of the system's clock on a busy worker.
const REQUESTS_PER_REFRESH: u32 = 16;

/// Zero of [`now_ms`], in nanoseconds of the monotonic clock. It is the same for all workers, so
/// that times in shared data are comparable.
static BEGINNING: OnceLock<u64> = OnceLock::new();

thread_local! {
    static CLOCK: Clock = Clock::start();
}

struct Clock {
    started_ns: u64,
    elapsed_ms: Cell<u64>,
    /// The same in nanoseconds.
    elapsed_ns: Cell<u64>,
    unix_ms: Cell<u64>,
    passes: Cell<u32>,
    /// Time that a test has added, and whether only tests move the clock.
    #[cfg(any(test, feature = "testing"))]
    added_ms: Cell<u64>,
    #[cfg(any(test, feature = "testing"))]
    is_stopped: Cell<bool>,
}

/// Milliseconds of a monotonic clock, the same for all workers of the process.
pub fn now_ms() -> u64 {
    CLOCK.with(|clock| clock.elapsed_ms.get())
}

/// Nanoseconds of the same clock: when the worker woke up, or read the clock later.
pub fn turn_ns() -> u64 {
    CLOCK.with(|clock| clock.elapsed_ns.get())
}

/// The same now. Reads the system's clock.
pub fn precise_ns() -> u64 {
    CLOCK.with(Clock::precise_ns)
}

/// Milliseconds of the system's monotonic clock as of the last wake-up, the same for all processes:
/// [`machine_ms`] without reading the system's clock.
pub fn monotonic_ms() -> u64 {
    CLOCK.with(|clock| clock.started_ns / 1_000_000 + clock.elapsed_ms.get())
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    CLOCK.with(|clock| clock.unix_ms.get())
}

/// Counts the beginning of a unit of work; reads the system's clock now and then.
pub fn pass() {
    CLOCK.with(|clock| {
        let passes = clock.passes.get() + 1;
        clock.passes.set(passes);
        if passes >= REQUESTS_PER_REFRESH {
            clock.refresh();
        }
    });
}

/// Milliseconds of the system's monotonic clock, the same for all processes. Reads the system's
/// clock.
pub fn machine_ms() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// CPU time of this thread.
pub fn thread_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Reads the system's clock and returns the first millisecond that has not begun.
pub(crate) fn next_ms() -> u64 {
    CLOCK.with(Clock::next_ms)
}

/// What [`now_ms`] is at this time of the system's monotonic clock.
pub(crate) fn elapsed_ms(monotonic_ns: u64) -> u64 {
    let started_ns = CLOCK.with(|clock| clock.started_ns);
    monotonic_ns.saturating_sub(started_ns) / 1_000_000
}

/// The time of the system's monotonic clock when this clock is at `elapsed_ms`.
pub(crate) fn monotonic_of(elapsed_ms: u64) -> Duration {
    let started_ns = CLOCK.with(|clock| clock.started_ns);
    Duration::from_nanos(started_ns).saturating_add(Duration::from_millis(elapsed_ms))
}

/// Reads the system's clock. Returns nanoseconds of the monotonic clock.
pub fn refresh() -> u64 {
    CLOCK.with(Clock::refresh)
}

/// Seconds and nanoseconds of a clock, neither negative.
///
/// Called at every wake-up: the standard library's types cost twice the instructions, and valgrind
/// cannot run rustix's way of reading clocks.
fn read(clock: libc::clockid_t) -> (u64, u64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result, and nothing keeps the pointer.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64)
}

/// Nanoseconds of the system's monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    let (seconds, nanoseconds) = read(libc::CLOCK_MONOTONIC);
    seconds * 1_000_000_000 + nanoseconds
}

impl Clock {
    fn start() -> Self {
        let clock = Self {
            started_ns: *BEGINNING.get_or_init(monotonic_ns),
            elapsed_ms: Cell::new(0),
            elapsed_ns: Cell::new(0),
            unix_ms: Cell::new(0),
            passes: Cell::new(0),
            #[cfg(any(test, feature = "testing"))]
            added_ms: Cell::new(0),
            #[cfg(any(test, feature = "testing"))]
            is_stopped: Cell::new(false),
        };
        clock.refresh();
        clock
    }

    fn refresh(&self) -> u64 {
        let now_ns = monotonic_ns();
        #[cfg(any(test, feature = "testing"))]
        if self.is_stopped.get() {
            return now_ns;
        }
        let elapsed_ns = now_ns.saturating_sub(self.started_ns);
        self.elapsed_ns.set(elapsed_ns);
        self.elapsed_ms.set(elapsed_ns / 1_000_000);
        let (seconds, nanoseconds) = read(libc::CLOCK_REALTIME);
        self.unix_ms.set(seconds * 1000 + nanoseconds / 1_000_000);
        self.passes.set(0);
        #[cfg(any(test, feature = "testing"))]
        self.add(self.added_ms.get());
        now_ns
    }

    fn precise_ns(&self) -> u64 {
        #[cfg(any(test, feature = "testing"))]
        if self.is_stopped.get() {
            return self.elapsed_ns.get();
        }
        let elapsed_ns = monotonic_ns().saturating_sub(self.started_ns);
        #[cfg(any(test, feature = "testing"))]
        let elapsed_ns = elapsed_ns + self.added_ms.get() * 1_000_000;
        elapsed_ns
    }

    fn next_ms(&self) -> u64 {
        self.refresh();
        #[cfg(any(test, feature = "testing"))]
        if self.is_stopped.get() {
            return self.elapsed_ms.get();
        }
        self.elapsed_ms.get() + 1
    }
}

/// A clock that only tests move.
#[cfg(any(test, feature = "testing"))]
impl Clock {
    fn add(&self, delay_ms: u64) {
        self.elapsed_ms.set(self.elapsed_ms.get() + delay_ms);
        self.elapsed_ns.set(self.elapsed_ns.get() + delay_ms * 1_000_000);
        self.unix_ms.set(self.unix_ms.get() + delay_ms);
    }
}

/// Stops this thread's clock, except for [`step`], or lets it go on.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn stop(is_stopped: bool) {
    CLOCK.with(|clock| {
        clock.is_stopped.set(is_stopped);
        clock.refresh();
    });
}

/// Whether this thread's clock is stopped.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn is_stopped() -> bool {
    CLOCK.with(|clock| clock.is_stopped.get())
}

/// Whether this thread's clock is stopped; only tests stop it.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) const fn is_stopped() -> bool {
    false
}

/// Advances this thread's clock.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn step(delay_ms: u64) {
    CLOCK.with(|clock| {
        clock.added_ms.set(clock.added_ms.get() + delay_ms);
        clock.add(delay_ms);
    });
}
