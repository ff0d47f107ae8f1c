//! Errors reported by name servers, and reasons to reject a response.

use core::fmt;

use super::{NameError, RecordType};

/// The most aliases in one response.
pub const ALIASES_MAX: usize = 50;

/// The error code of a name server: its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rcode(pub u8);

impl Rcode {
    /// The name server does not understand the query.
    pub const FORMERR: Self = Self(1);
    /// The name server failed to find an answer.
    pub const SERVFAIL: Self = Self(2);
    /// The name does not exist.
    pub const NXDOMAIN: Self = Self(3);
    /// The name server does not support this kind of query.
    pub const NOTIMP: Self = Self(4);
    /// The name server refuses to answer.
    pub const REFUSED: Self = Self(5);

    /// The RFCs' name (RFC 1035, RFC 2136), for log lines about updates.
    pub const fn mnemonic(self) -> &'static str {
        match self {
            Self(0) => "NOERROR",
            Self::FORMERR => "FORMERR",
            Self::SERVFAIL => "SERVFAIL",
            Self::NXDOMAIN => "NXDOMAIN",
            Self::NOTIMP => "NOTIMP",
            Self::REFUSED => "REFUSED",
            Self(6) => "YXDOMAIN",
            Self(7) => "YXRRSET",
            Self(8) => "NXRRSET",
            Self(9) => "NOTAUTH",
            Self(10) => "NOTZONE",
            _ => "unknown code",
        }
    }
}

/// nginx's words.
impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::FORMERR => "Format error",
            Self::SERVFAIL => "Server failure",
            Self::NXDOMAIN => "Host not found",
            Self::NOTIMP => "Unimplemented",
            Self::REFUSED => "Operation refused",
            _ => "Unknown error",
        })
    }
}

/// Why a message is not the answer, in nginx's words where it has any. The caller continues to
/// wait: anyone can send invalid messages, and the answer may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The message ends too early.
    Short,
    /// Not the response to a standard query.
    Flags(u16),
    /// The answer to another query.
    Id {
        /// Of the message.
        found: u16,
        /// Of the query.
        expected: u16,
    },
    /// The name server did not understand the query, or its error is unknown; the question may be
    /// missing.
    Server(Rcode),
    /// The number of questions is not 1.
    Questions(u16),
    /// The question differs from the one that was sent.
    Question,
    /// A name is invalid.
    Name(NameError),
    /// A record of another class than IN.
    Class(u16),
    /// A record whose data do not have the form of its type.
    Data(RecordType),
    /// A CNAME record whose data are not a name.
    Alias,
    /// More than [`ALIASES_MAX`] aliases.
    Aliases,
}

impl From<NameError> for ResponseError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("short DNS response"),
            Self::Flags(flags) => write!(f, "invalid DNS response fl:{flags:04X}"),
            Self::Id { found, expected } => {
                write!(f, "wrong ident {found} in DNS response, expect {expected}")
            }
            Self::Server(rcode) => write!(f, "DNS error ({}: {rcode})", rcode.0),
            Self::Questions(_) => f.write_str("invalid number of questions in DNS response"),
            Self::Question => f.write_str("unexpected question in DNS response"),
            Self::Name(error) => error.fmt(f),
            Self::Class(class) => write!(f, "unexpected RR class {class} in DNS response"),
            Self::Data(kind) => write!(f, "invalid {} record in DNS response", kind.name()),
            Self::Alias => f.write_str("invalid CNAME record in DNS response"),
            Self::Aliases => write!(f, "more than {ALIASES_MAX} CNAME records in DNS response"),
        }
    }
}
