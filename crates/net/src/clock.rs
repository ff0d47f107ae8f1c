//! The worker's idea of now, as old as its last wake-up: reading it costs nothing.
//!
//! Refreshed whenever the worker wakes, and every [`REQUESTS_PER_REFRESH`] requests while it is too
//! busy to sleep.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many calls of [`pass`] go by before a busy worker looks at the clock.
const REQUESTS_PER_REFRESH: u32 = 16;

/// The beginning of time, the same for all workers: what they share they may date.
static BEGINNING: OnceLock<Instant> = OnceLock::new();

thread_local! {
    static CLOCK: Clock = Clock::start();
}

struct Clock {
    started: Instant,
    elapsed_ms: Cell<u64>,
    unix_ms: Cell<u64>,
    passes: Cell<u32>,
    /// Time that a test has added, and whether it is the only one to add any.
    #[cfg(any(test, feature = "testing"))]
    added_ms: Cell<u64>,
    #[cfg(any(test, feature = "testing"))]
    is_stopped: Cell<bool>,
}

/// Milliseconds of a clock that never goes back, the same for all workers of the process.
pub fn now_ms() -> u64 {
    CLOCK.with(|clock| clock.elapsed_ms.get())
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    CLOCK.with(|clock| clock.unix_ms.get())
}

/// Notes that a unit of work begins; now and then it looks at the clock.
pub fn pass() {
    CLOCK.with(|clock| {
        let passes = clock.passes.get() + 1;
        clock.passes.set(passes);
        if passes >= REQUESTS_PER_REFRESH {
            clock.refresh();
        }
    });
}

/// Milliseconds of the system's monotonic clock, the same for all processes. Reads the clock.
pub fn machine_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// For how long this thread has been on a CPU.
pub fn thread_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Looks at the clock.
pub fn refresh() {
    CLOCK.with(Clock::refresh);
}

impl Clock {
    fn start() -> Self {
        let clock = Self {
            started: *BEGINNING.get_or_init(Instant::now),
            elapsed_ms: Cell::new(0),
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

    fn refresh(&self) {
        #[cfg(any(test, feature = "testing"))]
        if self.is_stopped.get() {
            return;
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.elapsed_ms.set(self.started.elapsed().as_millis() as u64);
        self.unix_ms.set(unix.as_millis() as u64);
        self.passes.set(0);
        #[cfg(any(test, feature = "testing"))]
        self.add(self.added_ms.get());
    }
}

/// A clock that only tests move.
#[cfg(any(test, feature = "testing"))]
impl Clock {
    fn add(&self, delay_ms: u64) {
        self.elapsed_ms.set(self.elapsed_ms.get() + delay_ms);
        self.unix_ms.set(self.unix_ms.get() + delay_ms);
    }
}

/// From now on this thread's clock stands still, but for [`step`]; or it goes on.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn stop(is_stopped: bool) {
    CLOCK.with(|clock| {
        clock.is_stopped.set(is_stopped);
        clock.refresh();
    });
}

/// Whether this thread's clock stands still.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn is_stopped() -> bool {
    CLOCK.with(|clock| clock.is_stopped.get())
}

/// Moves this thread's clock.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn step(delay_ms: u64) {
    CLOCK.with(|clock| {
        clock.added_ms.set(clock.added_ms.get() + delay_ms);
        clock.add(delay_ms);
    });
}
