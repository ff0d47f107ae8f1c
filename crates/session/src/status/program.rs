//! What the program tells of itself, and counts across its processes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{LazyLock, OnceLock};

use metrics::{Metric, Newest, NewestText, Tally};

metrics::counts! {
    /// What all processes of a master count together.
    pub struct ProgramCounters of Program = 13 {
        /// Configurations that are or were served, and that were refused.
        loaded: Tally,
        refused: Tally,
        /// When that happened last, in milliseconds since 1970.
        loaded_ms: Newest,
        refused_ms: Newest,
        /// Why a configuration was refused last.
        refusal: NewestText,
        /// Worker processes that ended without being told to.
        lost_processes: Tally,
    }
}

/// Facts of this process.
pub struct ProgramFacts {
    pub version: &'static str,
    pub build: &'static str,
    /// When the program was built, in milliseconds since 1970, if the build says so.
    pub built_ms: Option<u64>,
    pub started_ms: u64,
    /// When the newest configuration was taken up.
    pub loaded_ms: AtomicU64,
    /// Whether it has been told to end after its last sessions.
    pub is_draining: AtomicBool,
}

static FACTS: OnceLock<ProgramFacts> = OnceLock::new();

impl ProgramFacts {
    /// Sets the facts; only the first call has an effect.
    pub fn settle(version: &'static str, build: &'static str, built_ms: Option<u64>) {
        let started_ms = net::clock::unix_ms();
        let loaded_ms = AtomicU64::new(started_ms);
        let is_draining = AtomicBool::new(false);
        let _ = FACTS.set(Self { version, build, built_ms, started_ms, loaded_ms, is_draining });
    }

    pub fn get() -> &'static Self {
        FACTS.get_or_init(|| Self {
            version: env!("CARGO_PKG_VERSION"),
            build: "",
            built_ms: None,
            started_ms: 0,
            loaded_ms: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        })
    }
}

impl Program {
    pub fn metric() -> &'static Metric<Self> {
        static METRIC: LazyLock<Metric<Program>> = LazyLock::new(|| Metric::named(b""));
        &METRIC
    }

    /// A configuration is served from now on.
    pub fn loaded() {
        let now_ms = net::clock::unix_ms();
        ProgramFacts::get().loaded_ms.store(now_ms, Relaxed);
        let own = Self::metric().own();
        own.loaded().add(1);
        own.loaded_ms().set(now_ms);
    }

    /// Begins the count of lost processes anew, as [`Metric::reset`].
    pub fn reset_lost_processes() {
        let totals = Self::metric().totals();
        let lost = totals.get().lost_processes().get();
        Self::metric().own().lost_processes().add(lost.wrapping_neg());
    }

    /// A configuration was refused: why.
    pub fn refused(why: &str) {
        let own = Self::metric().own();
        own.refused().add(1);
        let now_ms = net::clock::unix_ms();
        own.refused_ms().set(now_ms);
        own.refusal().set(now_ms, why);
    }
}
