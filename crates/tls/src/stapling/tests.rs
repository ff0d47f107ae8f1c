use super::*;

const LEAF: &[u8] = include_bytes!("../../../net/src/tls/testdata/ocsp/leaf.pem");
const ISSUER: &[u8] = include_bytes!("../../../net/src/tls/testdata/ocsp/issuer.crt");
const BY_ISSUER: &[u8] = include_bytes!("../../../../fuzz/seeds/ocsp/by_issuer");
const BY_RESPONDER: &[u8] = include_bytes!("../../../../fuzz/seeds/ocsp/by_responder");
const UNKNOWN: &[u8] = include_bytes!("../../../../fuzz/seeds/ocsp/unknown");

/// The first of January 2030, while all certificates are valid.
const NOW: i64 = 1_893_456_000;

fn fetcher() -> StapleFetcher {
    let chain = [LEAF, ISSUER].concat();
    let credential = Credential::read(&chain, LEAF, &[]).expect("a credential");
    let question = OcspQuestion::new(&credential, std::iter::empty(), OcspSigners::Authorized);
    StapleFetcher {
        question: question.expect("the issuer is in the chain"),
        responder: OcspResponderUrl::read(b"http://127.0.0.1:1/").expect("a URL"),
        names: ResolverPolicy::default(),
        name: "leaf.pem".into(),
        state: Arc::default(),
    }
}

#[test]
fn a_response_is_replaced_in_time() {
    let fetcher = fetcher();
    fetcher.take(BY_ISSUER.to_vec(), NOW).expect("a good response");
    assert_eq!(fetcher.state.lock().response.as_deref(), Some(BY_ISSUER));
    assert_eq!(fetcher.state.lock().refresh_at, NOW + REFRESH_MAX_S);
    fetcher.take(BY_RESPONDER.to_vec(), NOW).expect("a good response");
    let end = fetcher.state.lock().valid_until;
    // Its signer's certificate ends a few seconds earlier.
    for (left, refresh_in) in [(4000, 3600), (1000, 700), (400, 300)] {
        fetcher.take(BY_RESPONDER.to_vec(), end - left).expect("a good response");
        assert_eq!(fetcher.state.lock().refresh_at, end - left + refresh_in, "{left}");
    }
}

#[test]
fn a_bad_response_leaves_the_one_before() {
    let fetcher = fetcher();
    fetcher.take(BY_ISSUER.to_vec(), NOW).expect("a good response");
    let unknown = fetcher.take(UNKNOWN.to_vec(), NOW);
    assert_eq!(unknown, Err("certificate status \"unknown\" in the OCSP response".into()));
    assert!(fetcher.take(b"no".to_vec(), NOW).is_err());
    assert_eq!(fetcher.state.lock().response.as_deref(), Some(BY_ISSUER));
}

#[test]
fn an_outdated_response_is_not_sent() {
    let fetcher = Arc::new(fetcher());
    let staple = FetchedStaple(fetcher.clone());
    assert_eq!(staple.staple(), None);
    // There was no worker to make the request, so the next handshake may start another.
    assert!(!fetcher.state.lock().is_loading);
    fetcher.take(BY_ISSUER.to_vec(), NOW).expect("a good response");
    assert_eq!(staple.staple().as_deref(), Some(BY_ISSUER));
    fetcher.state.lock().valid_until = 1;
    assert_eq!(staple.staple(), None);
}
