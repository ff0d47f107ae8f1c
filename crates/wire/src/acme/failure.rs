//! Why a run has no result.

use alloc::string::String;
use core::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeFailure {
    pub kind: AcmeFailureKind,
    pub activity: AcmeActivity,
    /// The server's words, or ours: printable, at most a few hundred bytes.
    pub detail: String,
    /// The server asks to wait for this number of seconds before the next attempt.
    pub retry_after_s: Option<u64>,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeFailureKind {
    /// The server's limits are exhausted.
    RateLimited,
    /// The server had an error of its own, or could not do it now.
    Server,
    /// There was no reply.
    Unreachable,
    /// The server had not finished when all polls were used up. The order can be resumed.
    StillProcessing,
    /// The server did not accept one of its own nonces, several times.
    BadNonce,
    /// A reply does not say what it must.
    InvalidReply,
    /// The run made more requests than it may.
    TooManyRequests,
    /// CAA records forbid this server to issue the certificate.
    Caa,
    /// The server did not find the answer to a challenge.
    Challenge,
    /// The server offers no challenge that could be answered.
    NoChallenge,
    /// The answers could not be published.
    Publication,
    /// The server does not issue certificates for such a name.
    RejectedName,
    /// The server refuses the account this action.
    Unauthorized,
    /// The server does not know the account.
    UnknownAccount,
    /// The user has to do something first, such as to accept the terms of service.
    UserAction,
    /// The server creates accounts only for those who have an external account.
    ExternalAccount,
    /// The server does not offer the required profile.
    Profile,
    /// The server refuses a request as it is.
    Refused,
    /// A record could not be stored.
    Storage,
    /// A key does not sign.
    Key,
}

/// What the run was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeActivity {
    Directory,
    Nonce,
    Account,
    NewOrder,
    Order,
    Authorization,
    Publication,
    Challenge,
    Finalization,
    Certificate,
    Renewal,
}

impl AcmeFailure {
    pub(super) fn new(
        kind: AcmeFailureKind,
        activity: AcmeActivity,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, activity, detail: detail.into(), retry_after_s: None }
    }

    /// Whether the order under way may still succeed. With a wrong certificate it cannot.
    pub(super) fn may_be_resumed(&self) -> bool {
        let is_unread = self.kind == AcmeFailureKind::InvalidReply
            && self.activity != AcmeActivity::Certificate;
        is_unread || self.kind.may_be_resumed()
    }
}

impl AcmeFailureKind {
    /// Whether another certificate authority could do better.
    pub const fn is_of_issuer(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Server
                | Self::Unreachable
                | Self::StillProcessing
                | Self::BadNonce
                | Self::InvalidReply
                | Self::TooManyRequests
                | Self::Caa
        )
    }

    /// Whether it lasts until somebody changes the configuration, or something outside.
    pub const fn needs_change(self) -> bool {
        matches!(
            self,
            Self::NoChallenge
                | Self::RejectedName
                | Self::UserAction
                | Self::ExternalAccount
                | Self::Profile
                | Self::Key
        )
    }

    /// Whether it says nothing about the order under way.
    pub(super) const fn may_be_resumed(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Server
                | Self::Unreachable
                | Self::StillProcessing
                | Self::BadNonce
                | Self::TooManyRequests
                | Self::Publication
                | Self::Storage
        )
    }
}

/// `rate limit reached while creating the order: too many certificates (retry after 60 s)`
impl fmt::Display for AcmeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} while {}", self.kind, self.activity)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        match self.retry_after_s {
            Some(seconds) => write!(f, " (retry after {seconds} s)"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AcmeFailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateLimited => "rate limit reached",
            Self::Server => "error of the ACME server",
            Self::Unreachable => "no reply",
            Self::StillProcessing => "the ACME server takes too long",
            Self::BadNonce => "the ACME server accepts no nonce",
            Self::InvalidReply => "invalid reply",
            Self::TooManyRequests => "too many requests",
            Self::Caa => "forbidden by CAA records",
            Self::Challenge => "challenge failed",
            Self::NoChallenge => "no suitable challenge offered",
            Self::Publication => "the answer to a challenge could not be published",
            Self::RejectedName => "name rejected",
            Self::Unauthorized => "unauthorized",
            Self::UnknownAccount => "unknown account",
            Self::UserAction => "user action required",
            Self::ExternalAccount => "external account required",
            Self::Profile => "profile not offered",
            Self::Refused => "request refused",
            Self::Storage => "state could not be stored",
            Self::Key => "the key cannot sign",
        })
    }
}

impl fmt::Display for AcmeActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "reading the directory",
            Self::Nonce => "requesting a nonce",
            Self::Account => "looking up the account",
            Self::NewOrder => "creating the order",
            Self::Order => "reading the order",
            Self::Authorization => "reading an authorization",
            Self::Publication => "publishing the answers to challenges",
            Self::Challenge => "responding to a challenge",
            Self::Finalization => "finalizing the order",
            Self::Certificate => "downloading the certificate",
            Self::Renewal => "asking when to renew",
        })
    }
}
