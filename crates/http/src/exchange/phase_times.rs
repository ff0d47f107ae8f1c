//! The phases of a request's time: names, sums, and how they are written.

use crate::decimal;

/// What takes the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedPhase {
    /// The TLS handshake, before the connection's first request.
    Tls,
    /// The rest of the request's head.
    Head,
    /// The request's body.
    Body,
    LimitReq,
    /// Passwords that threads check.
    AuthBasic,
    AuthDelay,
    /// The subrequest of `auth_request`, whatever it waits for.
    AuthRequest,
    /// The address of a backend that variables name.
    Resolve,
    /// A server below its limit.
    Queue,
    Connect,
    /// The TLS handshake with a server.
    BackendTls,
    BackendSend,
    /// The head of a server's reply.
    BackendHead,
    BackendBody,
    /// Threads that read files.
    Files,
    /// A client that does not take the reply.
    Send,
    /// The next byte that `limit_rate` or its like allows.
    LimitRate,
    Tunnel,
    /// Everything that `post_action` waits for.
    PostAction,
    /// A handler that names no cause.
    Other,
    /// Its turn: it was ready, but the worker was busy.
    Loop,
    /// Nothing: it ran.
    Run,
}

const PHASES: usize = TimedPhase::Run as usize + 1;

impl TimedPhase {
    const ALL: [(Self, &'static str); PHASES] = [
        (Self::Tls, "tls"),
        (Self::Head, "head"),
        (Self::Body, "body"),
        (Self::LimitReq, "limit_req"),
        (Self::AuthBasic, "auth_basic"),
        (Self::AuthDelay, "auth_delay"),
        (Self::AuthRequest, "auth_request"),
        (Self::Resolve, "resolve"),
        (Self::Queue, "queue"),
        (Self::Connect, "connect"),
        (Self::BackendTls, "backend_tls"),
        (Self::BackendSend, "backend_send"),
        (Self::BackendHead, "backend_head"),
        (Self::BackendBody, "backend_body"),
        (Self::Files, "files"),
        (Self::Send, "send"),
        (Self::LimitRate, "limit_rate"),
        (Self::Tunnel, "tunnel"),
        (Self::PostAction, "post_action"),
        (Self::Other, "other"),
        (Self::Loop, "loop"),
        (Self::Run, "run"),
    ];
}

/// The time that each phase took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PhaseTimes([u32; PHASES]);

impl PhaseTimes {
    /// Those of a request that has not waited since its head.
    pub(super) fn without_waits(tls_ms: u32, head_ms: u64, run_ms: u64) -> Self {
        let mut times = Self::default();
        times.add(TimedPhase::Tls, tls_ms.into());
        times.add(TimedPhase::Head, head_ms);
        times.add(TimedPhase::Run, run_ms);
        times
    }

    pub(crate) fn of(&self, phase: TimedPhase) -> u32 {
        self.0[phase as usize]
    }

    pub(super) fn add(&mut self, phase: TimedPhase, ms: u64) {
        let sum = &mut self.0[phase as usize];
        *sum = sum.saturating_add(u32::try_from(ms).unwrap_or(u32::MAX));
    }

    /// The names and times of the phases that took at least a millisecond, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let named = TimedPhase::ALL.iter().map(|(phase, name)| (*name, self.of(*phase)));
        named.filter(|(_, ms)| *ms > 0)
    }

    /// Writes `{"total":120,"queue":110}`: milliseconds.
    pub(crate) fn write_json(&self, total_ms: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"total\":");
        decimal::write(total_ms, out);
        for (name, ms) in self.iter() {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            decimal::write(ms.into(), out);
        }
        out.push(b'}');
    }

    /// Writes `queue;dur=110, total;dur=120`, the value of a field `Server-Timing`.
    pub(crate) fn write_server_timing(&self, total_ms: u64, out: &mut Vec<u8>) {
        for (name, ms) in self.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b";dur=");
            decimal::write(ms.into(), out);
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(b"total;dur=");
        decimal::write(total_ms, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_written_in_order_and_short_ones_left_out() {
        let mut times = PhaseTimes::default();
        times.add(TimedPhase::Run, 3);
        times.add(TimedPhase::Queue, 100);
        times.add(TimedPhase::Queue, 10);
        times.add(TimedPhase::Connect, 0);
        let (mut json, mut field) = (Vec::new(), Vec::new());
        times.write_json(113, &mut json);
        times.write_server_timing(113, &mut field);
        assert_eq!(json, br#"{"total":113,"queue":110,"run":3}"#);
        assert_eq!(field, b"queue;dur=110, run;dur=3, total;dur=113");
    }

    #[test]
    fn every_phase_has_the_name_at_its_place() {
        for (at, (phase, _)) in TimedPhase::ALL.iter().enumerate() {
            assert_eq!(*phase as usize, at);
        }
    }

    #[test]
    fn times_beyond_all_bounds_do_not_overflow() {
        let mut times = PhaseTimes::default();
        times.add(TimedPhase::Tunnel, u64::MAX);
        times.add(TimedPhase::Tunnel, 1);
        assert_eq!(times.of(TimedPhase::Tunnel), u32::MAX);
    }
}
