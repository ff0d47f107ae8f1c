//! What holds for any reply of a server.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::authorization::Authorization;
use super::certificate::IssuedChain;
use super::challenge::ChallengeKind;
use super::conversation::REQUESTS_MAX;
use super::issue::order;
use super::jws::{AcmeCrypto, key_thumbprint};
use super::plan::{AcmeAccount, OrderPlan};
use super::reply::{ALTERNATES_MAX, AcmeReply};
use super::step::{AcmeInput, AcmeStep};
use super::{problem, renewal};
use crate::date;
use crate::signer::{KeyKind, Signer, SigningFailed};
use crate::x509::SubjectName;

const DIRECTORY: &str = "https://ca.test/directory";

/// A key and digests of nothing.
#[derive(Debug)]
struct Nothing;

impl Signer for Nothing {
    fn kind(&self) -> KeyKind {
        KeyKind::EcdsaP256
    }

    fn public_bits(&self) -> &[u8] {
        &[4; 65]
    }

    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, SigningFailed> {
        Ok([1; 64].to_vec())
    }
}

impl AcmeCrypto for Nothing {
    fn sha256(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn hmac_sha256(&self, _: &[u8], _: &[u8]) -> [u8; 32] {
        [0; 32]
    }
}

/// Whatever a server says, an order ends after a bounded number of requests, and no text of the
/// server's breaks a line of a log or leaves the server's URLs.
pub fn acme(input: &[u8]) {
    run(input);
    let reply = reply_of(input, input);
    assert!(reply.alternates.len() <= ALTERNATES_MAX);
    let texts = reply.alternates.iter().chain(&reply.location).chain(&reply.nonce);
    for text in texts {
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
    }
    let failure = problem::failure(&reply, super::AcmeActivity::Order).to_string();
    assert!(!failure.chars().any(char::is_control) && failure.len() < 1000, "{failure}");
    match Authorization::parse(input, &ChallengeKind::ALL, DIRECTORY) {
        Ok(Authorization::Pending(_, offer)) => {
            assert!(!offer.token.contains(['/', '.']) && offer.url.starts_with("https://"));
        }
        Ok(Authorization::Failed(failure)) => {
            assert!(!failure.detail.chars().any(char::is_control), "{failure}");
        }
        _ => {}
    }
    if let Ok((start_s, end_s, _)) = renewal::parse_window(input, DIRECTORY) {
        assert!(start_s < end_s);
    }
    let _ = date::parse_rfc3339(input);
    let _ = IssuedChain::parse(input, &Nothing, &[]);
}

/// An order whose replies are the input's parts, each up to a zero byte, again and again.
fn run(input: &[u8]) {
    let mut run = order(OrderPlan {
        directory_url: DIRECTORY.to_string(),
        account: AcmeAccount {
            key: Rc::new(Nothing),
            url: None,
            contact: Vec::new(),
            accepts_terms: true,
            external: None,
            only_existing: false,
        },
        names: [SubjectName::of("a.test")].to_vec(),
        key: Rc::new(Nothing),
        has_common_name: true,
        challenges: ChallengeKind::ALL.to_vec(),
        profile: None,
        replaces: Some(String::from("a.b")),
        preferred_chain: Some(String::from("Root")),
        stored_order: None,
        crypto: Rc::new(Nothing),
    });
    assert!(key_thumbprint(&Nothing, &Nothing).is_ok());
    let mut parts = input.split(|byte| *byte == 0).cycle();
    let mut outcome = AcmeInput::Done;
    let mut requests = 0;
    loop {
        outcome = match run.resume(outcome) {
            AcmeStep::Send(request) => {
                requests += 1;
                assert!(requests < 2 * REQUESTS_MAX, "{request:?}");
                assert!(request.url.starts_with("https://"), "{request:?}");
                AcmeInput::Reply(reply_of(parts.next().unwrap_or_default(), b"https://ca.test/1"))
            }
            AcmeStep::Finished(_) => return,
            _ => AcmeInput::Done,
        };
    }
}

/// A reply whose fields have this text, and that has a nonce all the same.
fn reply_of(body: &[u8], field: &[u8]) -> AcmeReply {
    let names = [&b"Retry-After"[..], b"Date", b"Link", b"Location", b"Replay-Nonce"];
    let fields = names.into_iter().map(|name| (name, field));
    let status = if body.starts_with(b"{\"type\"") { 400 } else { 200 };
    AcmeReply::new(status, fields.chain([(&b"Replay-Nonce"[..], &b"nonce"[..])]), body.to_vec())
}
