//! Why handshakes fail, in a few kinds, for those who count them.

use std::io;

use rustls::{AlertDescription, Error, PeerIncompatible};

use crate::accept::ProxyRefusal;

/// Why a handshake with a client has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    TimedOut,
    /// The client has closed the connection, or it broke.
    Closed,
    /// The client speaks no version that the server speaks.
    NoCommonVersion,
    /// The client has no cipher suite, group or signature of the server's.
    NoCommonCipher,
    /// It has no application protocol (ALPN) of the server's.
    NoCommonProtocol,
    /// The client does not trust the server's certificate.
    CertificateRejected,
    /// Another alert of the client.
    Alert,
    /// The client's certificate is missing or does not hold.
    ClientCertificate,
    /// What the client sends is not the protocol.
    InvalidMessage,
    /// The server turns away clients that name it, or name none (`ssl_reject_handshake`).
    Rejected,
    /// Anything else, such as a certificate of the server that cannot be read.
    Other,
}

impl HandshakeFault {
    pub const ALL: [Self; 11] = [
        Self::TimedOut,
        Self::Closed,
        Self::NoCommonVersion,
        Self::NoCommonCipher,
        Self::NoCommonProtocol,
        Self::CertificateRejected,
        Self::Alert,
        Self::ClientCertificate,
        Self::InvalidMessage,
        Self::Rejected,
        Self::Other,
    ];

    /// Its name in status pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Closed => "closed",
            Self::NoCommonVersion => "no_common_version",
            Self::NoCommonCipher => "no_common_cipher",
            Self::NoCommonProtocol => "no_common_protocol",
            Self::CertificateRejected => "certificate_rejected",
            Self::Alert => "alert",
            Self::ClientCertificate => "client_certificate",
            Self::InvalidMessage => "invalid_message",
            Self::Rejected => "rejected",
            Self::Other => "other",
        }
    }

    /// The kind of a failure while a connection is accepted.
    pub fn of(refusal: &ProxyRefusal) -> Self {
        match refusal {
            ProxyRefusal::Header(_) => Self::InvalidMessage,
            ProxyRefusal::Closed => Self::Closed,
            ProxyRefusal::TimedOut => Self::TimedOut,
            ProxyRefusal::Connection(error) => Self::of_error(error),
        }
    }

    fn of_error(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => Self::of_tls(error),
            None if error.kind() == io::ErrorKind::InvalidData => Self::InvalidMessage,
            None => Self::Closed,
        }
    }

    fn of_tls(error: &Error) -> Self {
        use PeerIncompatible as Peer;
        match error {
            Error::PeerIncompatible(
                Peer::ServerDoesNotSupportTls12Or13
                | Peer::SupportedVersionsExtensionRequired
                | Peer::Tls12NotOffered
                | Peer::Tls12NotOfferedOrEnabled,
            ) => Self::NoCommonVersion,
            Error::PeerIncompatible(_) => Self::NoCommonCipher,
            Error::NoApplicationProtocol => Self::NoCommonProtocol,
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            Error::NoCertificatesPresented
            | Error::InvalidCertificate(_)
            | Error::InvalidCertRevocationList(_) => Self::ClientCertificate,
            Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::InvalidMessage(_)
            | Error::PeerMisbehaved(_)
            | Error::DecryptError
            | Error::PeerSentOversizedRecord
            | Error::UnsupportedNameType => Self::InvalidMessage,
            _ => Self::Other,
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA => Self::CertificateRejected,
            // Said by a client that has only other versions.
            AlertDescription::ProtocolVersion => Self::NoCommonVersion,
            AlertDescription::UserCanceled | AlertDescription::CloseNotify => Self::Closed,
            _ => Self::Alert,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_counted_in_its_own_place() {
        for (place, fault) in HandshakeFault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place, "{fault:?}");
        }
    }

    #[test]
    fn failures_have_kinds() {
        let kind = |error: Error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            HandshakeFault::of(&ProxyRefusal::Connection(error)).name()
        };
        let peer = |why| kind(Error::PeerIncompatible(why));
        assert_eq!(peer(PeerIncompatible::Tls12NotOffered), "no_common_version");
        assert_eq!(peer(PeerIncompatible::NoCipherSuitesInCommon), "no_common_cipher");
        let alert = |alert| kind(Error::AlertReceived(alert));
        assert_eq!(alert(AlertDescription::UnknownCA), "certificate_rejected");
        assert_eq!(alert(AlertDescription::HandshakeFailure), "alert");
        assert_eq!(kind(Error::DecryptError), "invalid_message");
        let reset = io::ErrorKind::ConnectionReset.into();
        assert_eq!(HandshakeFault::of(&ProxyRefusal::Connection(reset)).name(), "closed");
        assert_eq!(HandshakeFault::of(&ProxyRefusal::TimedOut).name(), "timeout");
    }
}
