//! TLS handshakes: their number, the negotiated sessions, their duration.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::histogram::histogram;

/// The most different sessions to count; later ones count as the last.
const AGREED_MAX: usize = 8;

/// The handshakes of one thread, or of all threads.
#[derive(Clone, Debug)]
pub struct TlsStats {
    /// Handshakes by negotiated session.
    pub agreed: Vec<AgreedTls>,
    /// The time of opening connections, including the handshake.
    pub connect_us: Histogram<u64>,
    /// The error of the first failed handshake.
    pub first_error: Option<String>,
}

/// A negotiated session, and its number of handshakes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgreedTls {
    /// Version, cipher suite, group, application protocol.
    pub what: String,
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
}

impl Default for TlsStats {
    fn default() -> Self {
        Self { agreed: Vec::new(), connect_us: histogram(), first_error: None }
    }
}

impl TlsStats {
    pub fn count(&mut self, what: String, is_resumed: bool) {
        let (full, resumed) = (u64::from(!is_resumed), u64::from(is_resumed));
        self.add_agreed(&AgreedTls { what, full, resumed });
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        other.agreed.iter().for_each(|agreed| self.add_agreed(agreed));
        self.connect_us.add(&other.connect_us).expect("a histogram that grows");
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }

    fn add_agreed(&mut self, more: &AgreedTls) {
        let is_full = self.agreed.len() == AGREED_MAX;
        let same = self.agreed.iter().position(|agreed| agreed.what == more.what);
        match same.or(is_full.then_some(AGREED_MAX - 1)) {
            Some(place) => {
                self.agreed[place].full += more.full;
                self.agreed[place].resumed += more.resumed;
            }
            None => self.agreed.push(more.clone()),
        }
    }
}
