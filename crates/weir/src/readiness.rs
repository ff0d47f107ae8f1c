//! Whether load balancers are to send clients here, by a command or because the end is near.
//!
//! A server that is not ready still serves: `ready` answers 503, and HTTP/1 connections end with
//! their next reply, so that clients go elsewhere before the sockets are closed.

use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Readiness {
    /// Since when it has not been ready.
    off_since: Option<Instant>,
    is_end_delayed: bool,
}

impl Readiness {
    pub fn is_on(&self) -> bool {
        self.off_since.is_none()
    }

    /// Whether the server was told to end and waits for load balancers to notice.
    pub fn is_end_delayed(&self) -> bool {
        self.is_end_delayed
    }

    /// Turns it on or off. A server that is about to end stays off.
    pub fn turn(&mut self, is_on: bool) {
        match is_on {
            true if self.is_end_delayed => {}
            true => self.off_since = None,
            false => _ = self.off_since.get_or_insert_with(Instant::now),
        }
    }

    /// Called when the server is told to end. Returns how long it still serves; `None`: load
    /// balancers have had the time to notice, or it is told for the second time.
    pub fn delay_end(&mut self, delay: Duration) -> Option<Duration> {
        if std::mem::replace(&mut self.is_end_delayed, true) || delay.is_zero() {
            return None;
        }
        let off = self.off_since.get_or_insert_with(Instant::now).elapsed();
        delay.checked_sub(off).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn the_end_is_delayed_once_from_when_it_was_turned_off() {
        let mut readiness = Readiness::default();
        assert_eq!(readiness.delay_end(Duration::ZERO), None);
        let mut readiness = Readiness::default();
        readiness.turn(false);
        assert!(!readiness.is_on());
        let left = readiness.delay_end(HOUR).unwrap();
        assert!(left < HOUR, "it counts from the command");
        readiness.turn(true);
        assert!(!readiness.is_on(), "the end is near");
        assert_eq!(readiness.delay_end(HOUR), None, "the second time");
        let off_since = Instant::now().checked_sub(Duration::from_secs(2));
        let mut readiness = Readiness { off_since, is_end_delayed: false };
        assert_eq!(readiness.delay_end(Duration::from_secs(1)), None, "that was long enough");
    }

    #[test]
    fn it_can_be_turned_on_again() {
        let mut readiness = Readiness::default();
        readiness.turn(false);
        readiness.turn(true);
        assert!(readiness.is_on() && !readiness.is_end_delayed());
    }
}
