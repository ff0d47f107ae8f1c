//! Orders at a server of our own, with a clock that moves only when a run waits.

mod failures;
mod fake_server;
mod orders;
mod renewals;

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use self::fake_server::FakeServer;
use super::*;
use crate::signer::{KeyKind, Signer, SigningFailed};
use crate::x509::SubjectName;

const DIRECTORY: &str = "https://ca.test/directory";

/// A key on no curve, whose signatures are worth nothing.
#[derive(Debug)]
struct FakeKey(u8);

impl Signer for FakeKey {
    fn kind(&self) -> KeyKind {
        KeyKind::EcdsaP256
    }

    fn public_bits(&self) -> &[u8] {
        const BITS: [[u8; 65]; 3] = [bits(1), bits(2), bits(3)];
        &BITS[usize::from(self.0)]
    }

    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, SigningFailed> {
        Ok(vec![self.0 + 1; 64])
    }
}

const fn bits(byte: u8) -> [u8; 65] {
    let mut bits = [byte; 65];
    bits[0] = 4;
    bits
}

/// Digests that merely differ.
#[derive(Debug)]
struct FakeCrypto;

impl AcmeCrypto for FakeCrypto {
    fn sha256(&self, message: &[u8]) -> [u8; 32] {
        let mut digest = [0_u8; 32];
        for (at, byte) in message.iter().enumerate() {
            digest[at % 32] = digest[at % 32].wrapping_mul(31).wrapping_add(*byte);
        }
        digest
    }

    fn hmac_sha256(&self, secret: &[u8], message: &[u8]) -> [u8; 32] {
        self.sha256(&[secret, message].concat())
    }
}

fn plan(names: &[&str]) -> OrderPlan {
    OrderPlan {
        directory_url: DIRECTORY.to_string(),
        account: AcmeAccount {
            key: Rc::new(FakeKey(0)),
            url: None,
            contact: vec!["mailto:a@b.test".to_string()],
            accepts_terms: true,
            external: None,
            only_existing: false,
        },
        names: names.iter().map(|name| SubjectName::of(name)).collect(),
        key: Rc::new(FakeKey(1)),
        has_common_name: false,
        challenges: vec![ChallengeKind::Http01, ChallengeKind::Dns01],
        profile: None,
        replaces: None,
        preferred_chain: None,
        stored_order: None,
        crypto: Rc::new(FakeCrypto),
    }
}

/// What a run did besides sending requests.
#[derive(Debug, Default)]
struct Journal {
    waited_s: u64,
    /// Published and not withdrawn.
    published: Vec<AcmeChallenge>,
    published_ever: usize,
    account: Option<String>,
    order: Option<String>,
}

/// Drives a run to its end, and notes what it did.
fn drive<T>(
    mut run: AcmeRun<T>,
    server: &mut FakeServer,
    journal: &mut Journal,
) -> Result<T, AcmeFailure> {
    const STEPS_MAX: usize = 2000;
    let mut outcome = AcmeInput::Done;
    for _ in 0..STEPS_MAX {
        outcome = match run.resume(outcome) {
            AcmeStep::Send(request) => match server.answer(&request) {
                Some(reply) => AcmeInput::Reply(reply),
                None => AcmeInput::Failed("connection closed".to_string()),
            },
            AcmeStep::Wait(seconds) => {
                journal.waited_s += seconds;
                AcmeInput::Done
            }
            AcmeStep::Publish(challenges) => {
                journal.published_ever += challenges.len();
                journal.published.extend(challenges);
                AcmeInput::Done
            }
            AcmeStep::Withdraw(challenges) => {
                journal.published.retain(|published| !challenges.contains(published));
                AcmeInput::Done
            }
            AcmeStep::Store(record) => {
                match record {
                    AcmeRecord::Account(url) => journal.account = Some(url),
                    AcmeRecord::Order(url) => journal.order = Some(url),
                    AcmeRecord::NoOrder => journal.order = None,
                }
                AcmeInput::Done
            }
            AcmeStep::Finished(result) => {
                assert!(journal.published.is_empty(), "answers stay published");
                return result;
            }
        };
    }
    panic!("the run does not end");
}

/// An order of one name, with the given changes.
fn obtain(
    server: &mut FakeServer,
    change: impl FnOnce(&mut OrderPlan),
) -> Result<IssuedChain, AcmeFailure> {
    let mut plan = plan(&["a.test"]);
    change(&mut plan);
    drive(order(plan), server, &mut Journal::default())
}

fn kind<T>(result: Result<T, AcmeFailure>) -> AcmeFailureKind {
    match result {
        Ok(_) => panic!("the run succeeds"),
        Err(failure) => failure.kind,
    }
}

fn count(server: &FakeServer, path: &str) -> usize {
    server.requests.iter().filter(|request| request.starts_with(path)).count()
}

fn challenge_path(index: usize) -> String {
    format!("/challenge/{index}")
}
