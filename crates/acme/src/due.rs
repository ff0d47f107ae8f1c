//! When a certificate is to be obtained next, and why then.

/// Why nothing happens before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueReason {
    /// There is no certificate.
    Missing,
    /// The authority has suggested the time (ARI).
    Window,
    /// A fraction of the lifetime is over.
    Lifetime,
    /// The issuer of the certificate is no more in the configuration.
    Issuer,
    /// Somebody has asked for it.
    Request,
    /// Attempts have failed, or the authority has asked to wait.
    Failures,
    /// The state folder has failed, or nobody could say whether the name is allowed.
    Storage,
    /// Certificates have followed each other too quickly.
    Haste,
    /// The certificate is not valid yet, so the clock is doubted.
    Clock,
    /// No client has told the name for long, or it is not allowed any more.
    Unused,
}

/// When something is due, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextAttempt {
    pub(crate) at_s: i64,
    pub(crate) why: DueReason,
}

/// A renewal that somebody has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedRenewal {
    /// The number of the pair that was current then.
    pub(crate) number: u64,
    /// Whether it does not wait for the end of a pause.
    pub(crate) is_forced: bool,
}

impl DueReason {
    /// A word for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Window => "window",
            Self::Lifetime => "lifetime",
            Self::Issuer => "issuer",
            Self::Request => "request",
            Self::Failures => "failures",
            Self::Storage => "storage",
            Self::Haste => "haste",
            Self::Clock => "clock",
            Self::Unused => "unused",
        }
    }
}

impl NextAttempt {
    pub(crate) fn new(at_s: i64, why: DueReason) -> Self {
        Self { at_s, why }
    }

    /// The same, but not before another time, which then is the reason.
    pub(crate) fn not_before(self, at_s: i64, why: DueReason) -> Self {
        if at_s > self.at_s { Self { at_s, why } } else { self }
    }
}
