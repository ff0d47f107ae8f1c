//! Transfer rates: `limit_rate` on the way to clients, and on the way from backends. Time and
//! amounts in, amounts and delays out.

/// How fast bytes pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Bytes per second; 0 for no limit.
    per_second: u64,
    /// Additional bytes, not subject to the rate.
    after: u64,
    started_s: u64,
}

/// The bytes that may pass now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Any number of bytes.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
    /// None before this many milliseconds have passed.
    NotBefore(u64),
}

impl Rate {
    /// A rate in bytes per second, after the first `after` bytes.
    pub fn new(per_second: u64, after: u64, started_s: u64) -> Self {
        Self { per_second, after, started_s }
    }

    /// nginx counts whole seconds, the first of them from the start: what a second allows may be
    /// passed at once.
    pub fn allowance(&self, now_s: u64, sent: u64) -> Allowance {
        if self.per_second == 0 {
            return Allowance::Unlimited;
        }
        let seconds = now_s.saturating_sub(self.started_s) + 1;
        let allowed = self.per_second.saturating_mul(seconds).saturating_add(self.after);
        match allowed.checked_sub(sent) {
            Some(bytes @ 1..) => Allowance::Bytes(bytes),
            _ => Allowance::NotBefore(self.time_ms(sent - allowed) + 1),
        }
    }

    /// How long to wait after a write that moved what was sent from `before` to `now`.
    pub fn delay_ms(&self, before: u64, now: u64) -> u64 {
        if self.per_second == 0 {
            return 0;
        }
        self.time_ms(now.saturating_sub(self.after) - before.saturating_sub(self.after))
    }

    fn time_ms(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(1000) / self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_allowance() {
        let rate = Rate { per_second: 1000, after: 200, started_s: 50 };
        assert_eq!(Rate::default().allowance(50, 1 << 40), Allowance::Unlimited);
        let table = [
            (50, 0, Allowance::Bytes(1200)),
            (50, 1199, Allowance::Bytes(1)),
            (50, 1200, Allowance::NotBefore(1)),
            (50, 1700, Allowance::NotBefore(501)),
            (51, 1200, Allowance::Bytes(1000)),
            (49, 0, Allowance::Bytes(1200)),
        ];
        for (now_s, sent, allowance) in table {
            assert_eq!(rate.allowance(now_s, sent), allowance, "{now_s} {sent}");
        }
        assert_eq!(rate.delay_ms(0, 200), 0);
        assert_eq!(rate.delay_ms(0, 700), 500);
        assert_eq!(rate.delay_ms(700, 1200), 500);
        assert_eq!(Rate::default().delay_ms(0, 700), 0);
    }
}
