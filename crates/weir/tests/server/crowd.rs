//! Clients that open one connection after the other until they are told to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use testing::eventually;

/// The clients.
pub struct Crowd {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Crowd {
    /// `ask` is one connection: it answers `old` or `new`, or fails.
    pub fn start(ask: impl Fn() -> io::Result<String> + Clone + Send + 'static) -> Self {
        const CLIENTS: usize = 8;
        let (over, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let clients = (0..CLIENTS).map(|_| {
            let (over, answered, ask) = (over.clone(), answered.clone(), ask.clone());
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    match ask() {
                        Ok(word) if word == "old" || word == "new" => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        other => failures.push(format!("{other:?}")),
                    }
                }
                failures
            })
        });
        Self { clients: clients.collect(), over, answered }
    }

    pub fn await_answers(&self, more: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        eventually("more answers", || {
            (self.answered.load(Ordering::Relaxed) >= wanted).then_some(())
        });
    }

    /// Stops the clients and returns what failed.
    pub fn end(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}
