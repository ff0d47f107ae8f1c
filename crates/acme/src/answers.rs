//! Answers to challenges that are published, noted on the disk: `STEM.answers`.
//!
//! The invariant: an answer is in the note before it is published, and stays there until it is
//! withdrawn. After a crash, the process that finds the note and takes the lock of the certificate
//! withdraws its answers (`leftovers`).

use std::io;

use wire::acme::{AcmeChallenge, ChallengeAnswer, ChallengeKind};
use wire::json::{self, JsonObject, JsonValue};

use crate::answer_names::{is_server_name, is_token};
use crate::dns01::DnsRecord;
use crate::stored::StoredCertificate;

/// The end of the note's name.
pub(crate) const NOTE: &str = "answers";

/// A published answer, with what its removal needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublishedAnswer {
    Http01 {
        token: String,
    },
    TlsAlpn01 {
        server_name: String,
    },
    Dns01 {
        /// The name of the issuer whose settings say who removes the record.
        issuer: String,
        record: DnsRecord,
    },
}

impl PublishedAnswer {
    /// The answer of a challenge that this process gives itself; `None`: it is a record of DNS.
    pub(crate) fn of(challenge: &AcmeChallenge) -> Option<Self> {
        match &challenge.answer {
            ChallengeAnswer::Http01 { token, .. } => Some(Self::Http01 { token: token.clone() }),
            ChallengeAnswer::TlsAlpn01 { server_name, .. } => {
                Some(Self::TlsAlpn01 { server_name: server_name.to_ascii_lowercase() })
            }
            ChallengeAnswer::Dns01 { .. } => None,
        }
    }

    fn kind(&self) -> ChallengeKind {
        match self {
            Self::Http01 { .. } => ChallengeKind::Http01,
            Self::TlsAlpn01 { .. } => ChallengeKind::TlsAlpn01,
            Self::Dns01 { .. } => ChallengeKind::Dns01,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut member = |start: &str, text: &str| {
            out.extend_from_slice(start.as_bytes());
            json::write_text(text.as_bytes(), out);
        };
        member("{\"kind\": ", self.kind().name());
        match self {
            Self::Http01 { token } => member(", \"name\": ", token),
            Self::TlsAlpn01 { server_name } => member(", \"name\": ", server_name),
            Self::Dns01 { issuer, record } => {
                member(", \"name\": ", &record.name);
                member(", \"value\": ", &record.value);
                member(", \"domain\": ", &record.domain);
                member(", \"issuer\": ", issuer);
            }
        }
        out.push(b'}');
    }

    /// Whether its name may be part of a file name.
    fn is_plain(&self) -> bool {
        match self {
            Self::Http01 { token } => is_token(token.as_bytes()),
            Self::TlsAlpn01 { server_name } => is_server_name(server_name),
            Self::Dns01 { .. } => true,
        }
    }

    fn read(object: &JsonObject<'_>) -> Option<Self> {
        let text = |name| object.get(name)?.as_text().map(str::to_owned);
        let name = text("name")?;
        let answer = match ChallengeKind::of(&text("kind")?)? {
            ChallengeKind::Http01 => Self::Http01 { token: name },
            ChallengeKind::TlsAlpn01 => Self::TlsAlpn01 { server_name: name },
            ChallengeKind::Dns01 => {
                let record = DnsRecord { domain: text("domain")?, name, value: text("value")? };
                Self::Dns01 { issuer: text("issuer")?, record }
            }
        };
        answer.is_plain().then_some(answer)
    }
}

impl StoredCertificate<'_> {
    /// The answers that are published, or were when a process died.
    pub(crate) fn answers(&self) -> io::Result<Vec<PublishedAnswer>> {
        let read = self.document(NOTE, |object| {
            let JsonValue::List(list) = object.get("answers")? else { return None };
            list.iter().map(|one| PublishedAnswer::read(one.as_object()?)).collect()
        });
        Ok(read?.unwrap_or_default())
    }

    /// Notes answers before they are published.
    pub(crate) fn note_answers(&self, more: &[PublishedAnswer]) -> io::Result<()> {
        if !more.iter().all(PublishedAnswer::is_plain) {
            return Err(io::Error::other("a token or name is invalid"));
        }
        let mut all = self.answers()?;
        all.extend(more.iter().filter(|one| !all.contains(one)).cloned().collect::<Vec<_>>());
        self.set_answers(&all)
    }

    /// Forgets answers that were withdrawn.
    pub(crate) fn forget_answers(&self, withdrawn: &[PublishedAnswer]) -> io::Result<()> {
        let before = self.answers()?;
        let left: Vec<_> = before.iter().filter(|one| !withdrawn.contains(one)).cloned().collect();
        if left.len() == before.len() && !left.is_empty() {
            Ok(())
        } else {
            self.set_answers(&left)
        }
    }

    fn set_answers(&self, answers: &[PublishedAnswer]) -> io::Result<()> {
        if answers.is_empty() {
            return self.folder.remove(&self.file(NOTE));
        }
        let mut text = b"{\"answers\": [".to_vec();
        for (at, answer) in answers.iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"" } else { b",\n " });
            answer.write(&mut text);
        }
        text.extend_from_slice(b"]}\n");
        self.folder.write(&self.file(NOTE), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_folder::StateFolder;

    fn all() -> Vec<PublishedAnswer> {
        let record = DnsRecord {
            domain: "a.test".into(),
            name: "_acme-challenge.\"a\".test".into(),
            value: "v".into(),
        };
        vec![
            PublishedAnswer::Http01 { token: "abc_-9".into() },
            PublishedAnswer::TlsAlpn01 { server_name: "a.test".into() },
            PublishedAnswer::Dns01 { issuer: "x".into(), record },
        ]
    }

    #[test]
    fn answers_are_noted_until_they_are_withdrawn() {
        let folder = StateFolder::in_memory();
        let stored = StoredCertificate { folder: &folder, stem: "a" };
        let all = all();
        stored.note_answers(&all[..2]).unwrap();
        stored.note_answers(&all[1..]).unwrap();
        assert_eq!(stored.answers().unwrap(), all);
        stored.forget_answers(&all[..1]).unwrap();
        assert_eq!(stored.answers().unwrap(), all[1..]);
        stored.forget_answers(&all).unwrap();
        assert_eq!(folder.names("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_note_names_no_other_file() {
        let folder = StateFolder::in_memory();
        let stored = StoredCertificate { folder: &folder, stem: "a" };
        for (kind, name) in [("http-01", "../x"), ("tls-alpn-01", "../x"), ("x", "x")] {
            let note = format!("{{\"answers\": [{{\"kind\": \"{kind}\", \"name\": \"{name}\"}}]}}");
            folder.write("a.answers", note.as_bytes()).unwrap();
            assert!(stored.answers().is_err(), "{kind}");
        }
        folder.remove("a.answers").unwrap();
        let other = PublishedAnswer::Http01 { token: "../x".into() };
        assert!(stored.note_answers(&[other]).is_err());
    }
}
