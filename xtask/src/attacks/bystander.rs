//! Another client, which is served while an attack goes on.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(1);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Asks on one kept connection until it is stopped.
pub(super) struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Duration>, String>>,
}

/// How long its requests took. Shares are those of the time, not of the requests: while one waits,
/// it asks nothing else.
pub(super) struct BystanderLatency {
    pub(super) median: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
}

impl BystanderLatency {
    /// Fails if half of the time is spent with longer waits than `median_max`, or if one was longer
    /// than `max`.
    pub(super) fn judge(&self, median_max: Duration, max: Duration) -> Result<(), String> {
        match self.median > median_max || self.max > max {
            true => Err(format!("others waited: {self}")),
            false => Ok(()),
        }
    }
}

impl fmt::Display for BystanderLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(f, "{:7.1} {:5.1} {:6.1} ms", ms(self.median), ms(self.p99), ms(self.max))
    }
}

impl Bystander {
    pub(super) fn start(socket: &Path) -> Result<Self, String> {
        let mut client = UnixStream::connect(socket).map_err(|err| err.to_string())?;
        client.set_read_timeout(Some(ANSWER_MAX)).map_err(|err| err.to_string())?;
        // The worker has started once it has answered.
        ask_once(&mut client).map_err(|err| err.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || ask(client, &stopped).map_err(|err| err.to_string()));
        Ok(Self { stop, thread })
    }

    pub(super) fn stop(self) -> Result<BystanderLatency, String> {
        self.stop.store(true, Ordering::Relaxed);
        let took = self.thread.join().map_err(|_| "the bystander panicked")?;
        let mut took = took.map_err(|why| format!("the bystander was not served: {why}"))?;
        took.sort_unstable();
        let max = took.last().copied().unwrap_or_default();
        Ok(BystanderLatency { median: at(&took, 0.5), p99: at(&took, 0.99), max })
    }
}

/// The longest wait that this share of the time is spent with, or with shorter ones.
fn at(sorted: &[Duration], share: f64) -> Duration {
    let all: Duration = sorted.iter().map(|took| *took + PAUSE).sum();
    let mut spent = Duration::ZERO;
    let passes = |took: &&Duration| {
        spent += **took + PAUSE;
        spent >= all.mul_f64(share)
    };
    sorted.iter().find(passes).copied().unwrap_or_default()
}

/// Asks until `stop` is set, at least once; returns how long each reply took.
fn ask(mut client: UnixStream, stop: &AtomicBool) -> std::io::Result<Vec<Duration>> {
    let mut took = Vec::new();
    loop {
        took.push(ask_once(&mut client)?);
        if stop.load(Ordering::Relaxed) {
            return Ok(took);
        }
        thread::sleep(PAUSE);
    }
}

fn ask_once(client: &mut UnixStream) -> std::io::Result<Duration> {
    let begin = Instant::now();
    client.write_all(b"GET / HTTP/1.1\r\nHost: one\r\n\r\n")?;
    let (mut buffer, mut length) = ([0; 4096], 0);
    while !buffer[..length].ends_with(b"hello\n") {
        match client.read(&mut buffer[length..])? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
    }
    Ok(begin.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that take long are few, because they take long.
    #[test]
    fn waits_count_for_as_long_as_they_last() {
        let [short, long] = [Duration::from_micros(100), Duration::from_millis(100)];
        let took = [[short; 50].as_slice(), &[long]].concat();
        assert_eq!((at(&took, 0.3), at(&took, 0.5)), (short, long));
        assert_eq!(at(&[short], 0.99), short);
    }
}
