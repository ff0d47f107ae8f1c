//! The secret that agent and controller share. Neither sends it: each proves that it knows it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use net::{hmac, system};

/// The length of a token in bytes.
const BYTES: std::ops::RangeInclusive<usize> = 16..=1024;
/// The permissions of anybody but the owner.
const OTHERS: u32 = 0o077;

/// A token. It is never displayed.
#[derive(Clone)]
pub(crate) struct AgentToken(Vec<u8>);

/// The end of a connection whose proof it is: neither end's can be sent back as the other's.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProvingEnd {
    Agent,
    Controller,
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AgentToken")
    }
}

impl AgentToken {
    /// Reads a token from a file that only its owner may read.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & OTHERS != 0 {
            let path = path.display();
            return Err(format!("{path}: other users may use this token; chmod 600 {path}"));
        }
        let mut text = Vec::new();
        let most = *BYTES.end() as u64 + 2;
        file.by_ref().take(most).read_to_end(&mut text).map_err(failed)?;
        Self::new(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    pub(super) fn new(text: &[u8]) -> Result<Self, String> {
        let text = text.trim_ascii();
        match BYTES.contains(&text.len()) {
            true => Ok(Self(text.to_vec())),
            false => {
                let (least, most) = (BYTES.start(), BYTES.end());
                Err(format!("a token has from {least} to {most} bytes, not {}", text.len()))
            }
        }
    }

    /// The proof that one end knows the token, for the nonces of this connection.
    pub(super) fn proof(&self, end: ProvingEnd, agent: &str, controller: &str) -> String {
        hex(&hmac::sign(&self.0, message(end, agent, controller).as_bytes()))
    }

    /// Compares in constant time.
    pub(super) fn is_proven(
        &self,
        proof: &str,
        end: ProvingEnd,
        agent: &str,
        controller: &str,
    ) -> bool {
        let message = message(end, agent, controller);
        bytes(proof).is_some_and(|tag| hmac::is_signed(&self.0, message.as_bytes(), &tag))
    }
}

fn message(end: ProvingEnd, agent: &str, controller: &str) -> String {
    format!("weir lab agent, {end:?}: {agent} {controller}")
}

/// A number that is used for one connection.
pub(super) fn nonce() -> String {
    format!("{:016x}{:016x}", system::random(), system::random())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// Whether a word could be a nonce.
pub(super) fn is_nonce(word: &str) -> bool {
    word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_proof_holds_for_its_end_and_its_connection() {
        let token = AgentToken::new(b"0123456789abcdef\n").unwrap();
        let proof = token.proof(ProvingEnd::Controller, "a", "b");
        let holds = |token: &AgentToken, end, agent| token.is_proven(&proof, end, agent, "b");
        assert!(holds(&token, ProvingEnd::Controller, "a"));
        assert!(!holds(&token, ProvingEnd::Agent, "a"));
        assert!(!holds(&token, ProvingEnd::Controller, "c"));
        let other = AgentToken::new(b"0123456789abcdeF").unwrap();
        assert!(!holds(&other, ProvingEnd::Controller, "a"));
        assert!(!token.is_proven("", ProvingEnd::Controller, "a", "b"));
        assert!(!token.is_proven("zz", ProvingEnd::Controller, "a", "b"));
        assert!(is_nonce(&nonce()) && nonce() != nonce() && !is_nonce("a"));
    }

    #[test]
    fn short_and_readable_tokens_are_refused() {
        let told = AgentToken::new(b"  0123456789abcde \n").err().unwrap_or_default();
        assert_eq!(told, "a token has from 16 to 1024 bytes, not 15");
        assert!(AgentToken::new(&[b'a'; 1025]).is_err());
        let file = std::env::temp_dir().join(format!("weir-lab-token-{}", std::process::id()));
        fs::write(&file, "0123456789abcdef").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = AgentToken::read(&file).err().unwrap_or_default();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let read = AgentToken::read(&file);
        fs::remove_file(&file).unwrap();
        assert!(refused.contains("other users may use this token"), "{refused}");
        assert_eq!(format!("{:?}", read.unwrap()), "AgentToken");
    }
}
