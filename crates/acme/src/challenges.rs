//! Answers to challenges, which every worker gives.
//!
//! The answers of this process are in memory. Those of others, which may be the server that this
//! one takes over from, or another machine with the same storage, are found in the state folders.
//! The invariant: an answer is stored in the folder before the authority is asked to check it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use net::tls::Credential;
use wire::acme::{AcmeChallenge, ChallengeAnswer};
use wire::x509::SubjectName;

use crate::answer_names::{is_server_name, is_token};
use crate::answers::PublishedAnswer;
use crate::stand_in;
use crate::state_folder::StateFolder;

/// The answers that this process gives.
#[derive(Default)]
pub struct PublishedChallenges {
    /// Key authorizations by token.
    http: RwLock<HashMap<String, String>>,
    /// Digests by server name, with the name to be proved.
    tls: RwLock<HashMap<String, TlsAnswer>>,
    folders: RwLock<Vec<Arc<StateFolder>>>,
    answers_tls: AtomicBool,
}

#[derive(Clone)]
struct TlsAnswer {
    name: SubjectName,
    digest: [u8; 32],
}

impl PublishedChallenges {
    pub fn of_process() -> &'static Self {
        static OF_PROCESS: LazyLock<PublishedChallenges> = LazyLock::new(Default::default);
        &OF_PROCESS
    }

    /// The folders where answers of other processes are found, and whether handshakes are answered.
    pub(crate) fn look_in(&self, folders: Vec<Arc<StateFolder>>, answers_tls: bool) {
        *self.folders.write().unwrap_or_else(PoisonError::into_inner) = folders;
        self.answers_tls.store(answers_tls, Relaxed);
    }

    /// Whether there may be answers for handshakes.
    pub fn answers_handshakes(&self) -> bool {
        self.answers_tls.load(Relaxed)
    }

    /// The key authorization of a token of this process.
    pub fn http_answer(&self, token: &str) -> Option<String> {
        self.http.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// The key authorization of another process's token. Blocks on the disk.
    pub fn stored_http_answer(&self, token: &str) -> Option<String> {
        let stored = self.stored(&http_file(token))?;
        String::from_utf8(stored).ok()
    }

    /// The certificate that answers a handshake for this name. Blocks on the disk.
    pub fn tls_answer(&self, server_name: &[u8]) -> Option<Credential> {
        let name = std::str::from_utf8(server_name).ok()?.to_ascii_lowercase();
        if !is_server_name(&name) {
            return None;
        }
        let known = self.tls.read().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let TlsAnswer { name, digest } = match known {
            Some(answer) => answer,
            None => TlsAnswer::read(&self.stored(&tls_file(&name))?)?,
        };
        stand_in::answer(name, &digest)
    }

    fn stored(&self, file: &str) -> Option<Vec<u8>> {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner).clone();
        folders.iter().find_map(|folder| folder.read(file).ok().flatten())
    }

    /// Publishes an answer: in memory, and for others in the folder. Blocks on the disk.
    pub(crate) fn publish(
        &self,
        challenge: &AcmeChallenge,
        folder: &StateFolder,
    ) -> io::Result<()> {
        match &challenge.answer {
            ChallengeAnswer::Http01 { token, key_authorization } => {
                if !is_token(token.as_bytes()) {
                    return Err(io::Error::other("the token is invalid"));
                }
                folder.write(&http_file(token), key_authorization.as_bytes())?;
                let mut http = self.http.write().unwrap_or_else(PoisonError::into_inner);
                http.insert(token.clone(), key_authorization.clone());
            }
            ChallengeAnswer::TlsAlpn01 { server_name, digest } => {
                let server_name = server_name.to_ascii_lowercase();
                let answer = TlsAnswer { name: challenge.name.clone(), digest: *digest };
                folder.write(&tls_file(&server_name), &answer.text())?;
                let mut tls = self.tls.write().unwrap_or_else(PoisonError::into_inner);
                tls.insert(server_name, answer);
            }
            ChallengeAnswer::Dns01 { .. } => {
                return Err(io::Error::other("it is a record of DNS"));
            }
        }
        Ok(())
    }

    /// Withdraws an answer of this process, or one that another has left in the folder. Blocks on
    /// the disk.
    pub(crate) fn withdraw(
        &self,
        answer: &PublishedAnswer,
        folder: &StateFolder,
    ) -> io::Result<()> {
        match answer {
            PublishedAnswer::Http01 { token } => {
                self.http.write().unwrap_or_else(PoisonError::into_inner).remove(token);
                folder.remove(&http_file(token))
            }
            PublishedAnswer::TlsAlpn01 { server_name } => {
                self.tls.write().unwrap_or_else(PoisonError::into_inner).remove(server_name);
                folder.remove(&tls_file(server_name))
            }
            PublishedAnswer::Dns01 { .. } => Ok(()),
        }
    }
}

fn http_file(token: &str) -> String {
    format!("http-01.{token}")
}

fn tls_file(server_name: &str) -> String {
    format!("tls-alpn-01.{server_name}")
}

impl TlsAnswer {
    fn text(&self) -> Vec<u8> {
        let digest: String = self.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{digest} {}\n", self.name).into_bytes()
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (digits, name) = std::str::from_utf8(text).ok()?.trim_end().split_once(' ')?;
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() || !digits.is_ascii() {
            return None;
        }
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self { name: SubjectName::of(name), digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(token: &str) -> AcmeChallenge {
        let key_authorization = format!("{token}.thumbprint");
        AcmeChallenge {
            name: SubjectName::of("a.test"),
            answer: ChallengeAnswer::Http01 { token: token.into(), key_authorization },
        }
    }

    #[test]
    fn an_answer_is_known_here_and_in_other_processes_until_it_is_withdrawn() {
        let folder = Arc::new(StateFolder::in_memory());
        let (own, other) = (PublishedChallenges::default(), PublishedChallenges::default());
        other.look_in(vec![folder.clone()], false);
        own.publish(&challenge("abc"), &folder).unwrap();
        assert_eq!(own.http_answer("abc").as_deref(), Some("abc.thumbprint"));
        assert_eq!(other.http_answer("abc"), None);
        assert_eq!(other.stored_http_answer("abc").as_deref(), Some("abc.thumbprint"));
        own.withdraw(&PublishedAnswer::of(&challenge("abc")).unwrap(), &folder).unwrap();
        assert_eq!((own.http_answer("abc"), other.stored_http_answer("abc")), (None, None));
    }

    #[test]
    fn a_token_names_no_other_file() {
        assert!(is_token(b"abc-_09"));
        for text in [&b""[..], b"..", b"a/b", b"a.b", &[b'a'; 200]] {
            assert!(!is_token(text));
        }
        let folder = StateFolder::in_memory();
        assert!(PublishedChallenges::default().publish(&challenge("../a"), &folder).is_err());
    }

    #[test]
    fn a_handshake_is_answered_for_the_published_name_only() {
        let folder = Arc::new(StateFolder::in_memory());
        let (own, other) = (PublishedChallenges::default(), PublishedChallenges::default());
        other.look_in(vec![folder.clone()], true);
        let answer = ChallengeAnswer::TlsAlpn01 { server_name: "a.test".into(), digest: [7; 32] };
        let challenge = AcmeChallenge { name: SubjectName::of("a.test"), answer };
        own.publish(&challenge, &folder).unwrap();
        for challenges in [&own, &other] {
            let credential = challenges.tls_answer(b"A.test").unwrap();
            let leaf = wire::x509::X509::parse(credential.chain().next().unwrap()).unwrap();
            assert!(leaf.has_subject_name(&challenge.name));
            assert!(challenges.tls_answer(b"b.test").is_none());
            assert!(challenges.tls_answer(b"../a.test").is_none());
        }
    }
}
