//! The idle connections of a row: opened after the first turn, and silent until the server ends.
//!
//! Processes of their own hold them (`weir load --idle`), as many as the limit of open files
//! requires, from several addresses, because an address has ports for only so many.

use std::net::Ipv4Addr;
use std::path::Path;

use processes::{procfs, server};

use super::generator::{GeneratorTurn, RunningGenerator};

/// The most idle connections of a process.
const HELD_MAX: u64 = 15_000;
/// Descriptors of such a process besides.
const RESERVE: u64 = 200;
/// A turn of such a process, after which it tells how many connections are open.
const TURN_MS: u64 = 10;
/// A busy server may be slow to accept them.
const TIMEOUT: &str = "10s";

/// The idle connections of a running server.
pub(super) struct IdleHolders {
    holders: Vec<RunningGenerator>,
    /// The server's memory before they were opened.
    memory_before: f64,
    count: u64,
}

impl IdleHolders {
    /// Opens `count` connections to the server with this process id, as `turn` does, from these
    /// addresses. An error is the reason why that server cannot have so many.
    pub(super) fn open(
        count: u64,
        (turn, sources): (&GeneratorTurn, &[Ipv4Addr]),
        weir: &Path,
        pid: u32,
    ) -> Result<Self, String> {
        let memory_before = procfs::memory(pid)?;
        let each = HELD_MAX.min(server::descriptors_max()?.saturating_sub(RESERVE)).max(1);
        let holders = shares(count, each).map(|share| holder(turn, share, sources).start(weir));
        let mut idle = Self { holders: holders.collect::<Result<_, _>>()?, memory_before, count };
        let (open, _) = idle.counts()?;
        match open == count {
            true => Ok(idle),
            false => Err(format!(
                "only {open} of {count} idle connections are open (a process may have {} open \
                 files, see ulimit -Hn)",
                server::descriptors_max()?
            )),
        }
    }

    /// The number of those that the server has closed so far.
    pub(super) fn closed(&mut self) -> Result<u64, String> {
        Ok(self.counts()?.1)
    }

    /// The server's memory for each of them.
    pub(super) fn bytes_each(&self, memory: f64) -> f64 {
        (memory - self.memory_before) / self.count as f64
    }

    /// How many are open, and how many were closed since the last call.
    fn counts(&mut self) -> Result<(u64, u64), String> {
        let mut counts = (0, 0);
        for holder in &mut self.holders {
            let turn = holder.turn_json()?;
            let of = |name: &str| turn["run"]["idle"][name].as_u64().unwrap_or_default();
            counts = (counts.0 + of("open"), counts.1 + of("closed"));
        }
        Ok(counts)
    }
}

/// The parts of a number, none above `most`.
fn shares(count: u64, most: u64) -> impl Iterator<Item = u64> {
    let parts = count.div_ceil(most);
    (0..parts).map(move |part| count / parts + u64::from(part < count % parts))
}

fn holder(turn: &GeneratorTurn, count: u64, sources: &[Ipv4Addr]) -> GeneratorTurn {
    let sources: Vec<String> = sources.iter().map(Ipv4Addr::to_string).collect();
    let (count, sources) = (count.to_string(), sources.join(","));
    let options = ["--idle", &count, "--from", &sources, "--timeout", TIMEOUT];
    let options = options.map(str::to_owned).to_vec();
    GeneratorTurn {
        connections: 1,
        turn_ms: TURN_MS,
        options,
        further_urls: Vec::new(),
        ..turn.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shared_out() {
        let shares = |count, most| super::shares(count, most).collect::<Vec<_>>();
        assert_eq!(shares(50_000, 15_000), [12_500; 4]);
        assert_eq!(shares(5, 2), [2, 2, 1]);
        assert_eq!(shares(0, 9), [0; 0]);
    }

    #[test]
    fn memory_is_divided_by_the_connections() {
        let idle = IdleHolders { holders: Vec::new(), memory_before: 1000.0, count: 10 };
        assert_eq!(idle.bytes_each(6000.0), 500.0);
    }
}
