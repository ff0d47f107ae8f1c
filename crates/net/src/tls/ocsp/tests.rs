use super::*;
use crate::tls::private_key::read_certificates;

const LEAF: &[u8] = include_bytes!("../testdata/ocsp/leaf.pem");
const ISSUER: &[u8] = include_bytes!("../testdata/ocsp/issuer.crt");
/// Made with `openssl ocsp`, valid for decades.
const BY_ISSUER: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/by_issuer");
const BY_RESPONDER: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/by_responder");
const BY_STRANGER: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/by_stranger");
const UNKNOWN: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/unknown");
const REFUSED: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/refused");

/// 1 January 2030, when all certificates are valid.
const NOW: i64 = 1_893_456_000;

fn question(signers: OcspSigners) -> OcspQuestion {
    let credential = Credential::read(LEAF, LEAF, &[]).expect("a credential");
    let issuer = read_certificates(ISSUER).expect("a certificate");
    let others = issuer.iter().map(|der| &der[..]);
    OcspQuestion::new(&credential, others, signers).expect("the issuer is known")
}

fn status(signers: OcspSigners, response: &[u8]) -> Result<OcspStatus, OcspFault> {
    question(signers).judge(response, NOW).map(|verdict| verdict.status)
}

#[test]
fn responses_of_the_issuer_and_authorized_signers_are_accepted() {
    for signers in [OcspSigners::Authorized, OcspSigners::Any] {
        assert_eq!(status(signers, BY_ISSUER), Ok(OcspStatus::Good));
        assert_eq!(status(signers, BY_RESPONDER), Ok(OcspStatus::Good));
        assert_eq!(status(signers, UNKNOWN), Ok(OcspStatus::Unknown));
    }
    assert_eq!(status(OcspSigners::Authorized, BY_STRANGER), Err(OcspFault::Unverified));
    assert_eq!(status(OcspSigners::Any, BY_STRANGER), Ok(OcspStatus::Good));
}

#[test]
fn a_changed_response_is_not_verified() {
    let mut changed = BY_ISSUER.to_vec();
    // The last digit of the time of production.
    let at = changed.windows(3).position(|three| three == b"45Z").expect("a time");
    changed[at] ^= 1;
    assert_eq!(status(OcspSigners::Any, &changed), Err(OcspFault::Unverified));
}

#[test]
fn a_response_is_valid_only_for_its_period() {
    let question = question(OcspSigners::Authorized);
    let verdict = question.judge(BY_RESPONDER, NOW).expect("a verdict");
    let judge = |now| question.judge(BY_RESPONDER, now).map(|verdict| verdict.status);
    // The signer's certificate expires within seconds of the response.
    assert_eq!(judge(0), Err(OcspFault::Unverified));
    let of_issuer = |now| question.judge(BY_ISSUER, now).map(|verdict| verdict.status);
    assert_eq!(of_issuer(0), Err(OcspFault::Expired));
    assert_eq!(of_issuer(i64::MAX), Ok(OcspStatus::Good));
    assert!(verdict.valid_until > NOW && verdict.valid_until < i64::MAX);
    let any = OcspQuestion { signers: OcspSigners::Any, ..question.clone() };
    let late = any.judge(BY_RESPONDER, verdict.valid_until + SKEW_S + 1);
    assert_eq!(late, Err(OcspFault::Expired));
    assert!(any.judge(BY_RESPONDER, verdict.valid_until + SKEW_S).is_ok());
}

#[test]
fn a_response_without_the_status_is_refused_with_a_reason() {
    assert_eq!(status(OcspSigners::Any, REFUSED), Err(OcspFault::Refused(3)));
    assert_eq!(status(OcspSigners::Any, b"no"), Err(OcspFault::Unreadable));
    let text = OcspFault::Refused(3).to_string();
    assert_eq!(text, "OCSP response not successful (3: trylater)");
}

#[test]
fn a_question_needs_the_issuer() {
    let credential = Credential::read(LEAF, LEAF, &[]).expect("a credential");
    assert!(OcspQuestion::new(&credential, std::iter::empty(), OcspSigners::Any).is_none());
    let question = question(OcspSigners::Any);
    assert_eq!(question.responder(), Some(&b"http://127.0.0.1:8081/ocsp"[..]));
    assert_eq!(question.request().len(), 69);
}
