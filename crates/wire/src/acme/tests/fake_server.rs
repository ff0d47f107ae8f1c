//! A certificate authority that checks what it is told, and fails where it shall.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::FakeKey;
use crate::Method;
use crate::acme::{AcmeReply, AcmeRequest, object};
use crate::base64;
use crate::pem;
use crate::signer::Signer;
use crate::x509::{SelfSigned, SubjectName, ValidityPeriod};

const BASE: &str = "https://ca.test";

/// Instead of a proper reply.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// What the requested path begins with.
    pub(super) path: &'static str,
    /// How often; it is counted down.
    pub(super) times: usize,
    pub(super) what: FaultKind,
}

#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// A status with an error's name.
    Problem(u16, &'static str),
    /// No reply; the request is not processed.
    CutBefore,
    /// No reply, but the request is processed.
    CutAfter,
    /// A reply of this text.
    Text(&'static str),
}

#[derive(Debug)]
pub(super) struct FakeServer {
    /// The paths of all requests.
    pub(super) requests: Vec<String>,
    pub(super) faults: Vec<Fault>,
    /// The value of `Retry-After` in replies with problems and while an order is not done.
    pub(super) retry_after: Option<&'static str>,
    /// The number of times that an order is read before it is ready, and before it is valid.
    pub(super) reads_until_ready: usize,
    pub(super) reads_until_valid: usize,
    /// The error of every challenge.
    pub(super) challenge_error: Option<&'static str>,
    /// Additional members of `meta` in the directory.
    pub(super) meta: &'static str,
    /// The public key in certificates.
    pub(super) certificate_key: u8,
    /// The payloads by path of all signed requests.
    pub(super) payloads: Vec<(String, String)>,
    /// The suggested window and more, as JSON.
    pub(super) renewal: Option<&'static str>,
    accounts: usize,
    orders: Vec<FakeOrder>,
    nonce: Option<usize>,
    nonces: usize,
}

#[derive(Debug)]
struct FakeOrder {
    names: Vec<SubjectName>,
    answered: usize,
    is_finalized: bool,
    /// The reads since the last change.
    reads: usize,
}

impl FakeServer {
    pub(super) fn new() -> Self {
        Self {
            requests: Vec::new(),
            faults: Vec::new(),
            retry_after: None,
            reads_until_ready: 0,
            reads_until_valid: 0,
            challenge_error: None,
            meta: "",
            certificate_key: 1,
            payloads: Vec::new(),
            renewal: None,
            accounts: 0,
            orders: Vec::new(),
            nonce: None,
            nonces: 0,
        }
    }

    pub(super) fn with_fault(path: &'static str, times: usize, what: FaultKind) -> Self {
        let mut server = Self::new();
        server.faults.push(Fault { path, times, what });
        server
    }

    /// As if its memory were lost.
    pub(super) fn forget(&mut self) {
        self.accounts = 0;
        self.orders.clear();
    }

    pub(super) fn orders(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn payload(&self, path: &str) -> &str {
        let found = self.payloads.iter().find(|(other, _)| other == path);
        found.map_or("", |(_, payload)| payload)
    }

    pub(super) fn answer(&mut self, request: &AcmeRequest) -> Option<AcmeReply> {
        let path = request.url.strip_prefix(BASE).expect("a URL of this server").to_string();
        self.requests.push(path.clone());
        let fault = self.faults.iter_mut().find(|fault| path.starts_with(fault.path));
        let fault = fault.filter(|fault| fault.times > 0).map(|fault| {
            fault.times -= 1;
            fault.what.clone()
        });
        match fault {
            Some(FaultKind::CutBefore) => None,
            Some(FaultKind::Problem(status, error)) => Some(self.problem(status, error)),
            Some(FaultKind::Text(text)) => Some(self.reply(200, None, text)),
            Some(FaultKind::CutAfter) => {
                self.process(&path, request);
                None
            }
            None => Some(self.process(&path, request)),
        }
    }

    fn process(&mut self, path: &str, request: &AcmeRequest) -> AcmeReply {
        match (request.method, path) {
            (Method::Get, "/directory") => {
                let text = self.directory();
                self.reply(200, None, &text)
            }
            (Method::Head, "/nonce") => self.reply(200, None, ""),
            (Method::Get, path) if path.starts_with("/renewal/") => {
                let renewal = self.renewal.unwrap_or("{}");
                self.reply(200, None, renewal)
            }
            (Method::Post, path) => match self.verify(path, request) {
                Ok(payload) => self.signed(path, &payload),
                Err(error) => self.problem(400, error),
            },
            other => panic!("unexpected request {other:?}"),
        }
    }

    fn directory(&self) -> String {
        let renewal = if self.renewal.is_some() {
            format!(",\"renewalInfo\":\"{BASE}/renewal\"")
        } else {
            String::new()
        };
        format!(
            "{{\"newNonce\":\"{BASE}/nonce\",\"newAccount\":\"{BASE}/account\",\
             \"newOrder\":\"{BASE}/order\",\"meta\":{{{}}}{renewal}}}",
            self.meta
        )
    }

    /// The payload of a signed request, if its nonce and its author are right.
    fn verify(&mut self, path: &str, request: &AcmeRequest) -> Result<String, &'static str> {
        assert_eq!(request.content_type, Some("application/jose+json"));
        let body = object::parse(&request.body).expect("an object");
        let decoded = |name| {
            let mut out = Vec::new();
            let text = object::text(&body, name).expect("a text");
            base64::decode_url(text.as_bytes(), &mut out).expect("base64url");
            String::from_utf8(out).expect("UTF-8")
        };
        let (protected, payload) = (decoded("protected"), decoded("payload"));
        let protected = object::parse(protected.as_bytes()).expect("an object");
        assert_eq!(object::text(&protected, "url"), Some(request.url.as_str()));
        assert_eq!(object::text(&protected, "alg"), Some("ES256"));
        let expected = self.nonce.take().map(|nonce| format!("nonce{nonce}"));
        if object::text(&protected, "nonce").map(String::from) != expected {
            return Err("badNonce");
        }
        self.payloads.push((path.to_string(), payload.clone()));
        if path == "/account" {
            assert!(object::object(&protected, "jwk").is_some());
            return Ok(payload);
        }
        match object::text(&protected, "kid") {
            Some("https://ca.test/account/1") if self.accounts == 1 => Ok(payload),
            _ => Err("accountDoesNotExist"),
        }
    }

    fn signed(&mut self, path: &str, payload: &str) -> AcmeReply {
        let mut parts = path.split('/').skip(1);
        let kind = parts.next().unwrap_or_default();
        let number = parts.next().map(|part| part.parse::<usize>().expect("a number"));
        let second = parts.next();
        match (kind, number) {
            ("account", None) => self.account(payload),
            ("order", None) => self.new_order(payload),
            (kind, Some(number)) if number < self.orders.len() => {
                let name = second.and_then(|part| part.parse().ok()).unwrap_or(0);
                self.of_order(kind, number, name)
            }
            _ => self.problem(404, "malformed"),
        }
    }

    fn account(&mut self, payload: &str) -> AcmeReply {
        if self.accounts == 0 && payload.contains("onlyReturnExisting") {
            return self.problem(400, "accountDoesNotExist");
        }
        if !payload.contains("\"termsOfServiceAgreed\":true") {
            return self.problem(403, "userActionRequired");
        }
        self.accounts = 1;
        self.reply(201, Some("/account/1"), "{}")
    }

    fn new_order(&mut self, payload: &str) -> AcmeReply {
        if payload.contains("\"replaces\":\"replaced\"") {
            return self.problem(409, "alreadyReplaced");
        }
        let payload = object::parse(payload.as_bytes()).expect("an object");
        let names = object::list(&payload, "identifiers").iter().map(|identifier| {
            let identifier = identifier.as_object().expect("an object");
            SubjectName::of(object::text(identifier, "value").expect("a value"))
        });
        let names = names.collect();
        self.orders.push(FakeOrder { names, answered: 0, is_finalized: false, reads: 0 });
        let number = self.orders.len() - 1;
        let text = self.order_text(number, false);
        self.reply(201, Some(&format!("/order/{number}")), &text)
    }

    fn of_order(&mut self, kind: &str, number: usize, name: usize) -> AcmeReply {
        match kind {
            "order" => {
                let text = self.order_text(number, true);
                self.reply(200, None, &text)
            }
            "authorization" => {
                let text = self.authorization_text(number, name);
                self.reply(200, None, &text)
            }
            "challenge" => {
                let order = &mut self.orders[number];
                (order.answered, order.reads) = (order.answered + 1, 0);
                self.reply(200, None, "{}")
            }
            "finalize" => {
                let order = &mut self.orders[number];
                if core::mem::replace(&mut order.is_finalized, true) {
                    return self.problem(403, "orderNotReady");
                }
                order.reads = 0;
                let text = self.order_text(number, false);
                self.reply(200, None, &text)
            }
            "certificate" => self.certificate(number, name),
            _ => self.problem(404, "malformed"),
        }
    }

    fn order_text(&mut self, number: usize, is_read: bool) -> String {
        let order = &mut self.orders[number];
        let status = if order.is_finalized {
            if order.reads >= self.reads_until_valid { "valid" } else { "processing" }
        } else if order.answered < order.names.len() {
            "pending"
        } else if self.challenge_error.is_some() {
            "invalid"
        } else if order.reads >= self.reads_until_ready {
            "ready"
        } else {
            "pending"
        };
        order.reads += usize::from(is_read);
        let names: Vec<_> = order.names.iter().map(super::super::issue::identifier).collect();
        let urls: Vec<_> = (0..order.names.len())
            .map(|name| format!("\"{BASE}/authorization/{number}/{name}\""))
            .collect();
        let certificate = if status == "valid" {
            format!(",\"certificate\":\"{BASE}/certificate/{number}\"")
        } else {
            String::new()
        };
        format!(
            "{{\"status\":\"{status}\",\"identifiers\":[{}],\"authorizations\":[{}],\
             \"finalize\":\"{BASE}/finalize/{number}\"{certificate}}}",
            names.join(","),
            urls.join(",")
        )
    }

    fn authorization_text(&self, number: usize, name: usize) -> String {
        let order = &self.orders[number];
        let status = match self.challenge_error {
            Some(_) if order.answered > name => "invalid",
            None if order.answered > name => "valid",
            _ => "pending",
        };
        let error = self.challenge_error.filter(|_| status == "invalid").map(|error| {
            let kind = format!("urn:ietf:params:acme:error:{error}");
            format!(",\"error\":{{\"type\":\"{kind}\",\"detail\":\"no\\nanswer\"}}")
        });
        let error = error.unwrap_or_default();
        let text = order.names[name].to_string();
        let is_wildcard = text.starts_with("*.");
        let identifier = super::super::issue::identifier(&SubjectName::of(
            text.strip_prefix("*.").unwrap_or(&text),
        ));
        let kinds =
            if is_wildcard { &["dns-01"][..] } else { &["dns-01", "http-01", "tls-alpn-01"] };
        let challenges: Vec<_> = kinds
            .iter()
            .map(|kind| {
                format!(
                    "{{\"type\":\"{kind}\",\"url\":\"{BASE}/challenge/{number}/{name}\",\
                     \"token\":\"token-{kind}-{name}\",\"status\":\"{status}\"{error}}}"
                )
            })
            .collect();
        let challenges = challenges.join(",");
        format!(
            "{{\"identifier\":{identifier},\"status\":\"{status}\",\"challenges\":[{challenges}]}}"
        )
    }

    /// Certificates of two roots: the first one's, and the alternates'.
    fn certificate(&mut self, number: usize, alternate: usize) -> AcmeReply {
        let certificate = SelfSigned {
            common_name: if alternate == 0 { "Root 0" } else { "Root 1" },
            names: &self.orders[number].names,
            serial: 1,
            validity: ValidityPeriod { not_before_s: 1_000_000_000, not_after_s: 1_100_000_000 },
            acme_digest: None,
        };
        let key = FakeKey(self.certificate_key);
        let der = certificate.write(&key as &dyn Signer).expect("a certificate");
        let mut text = Vec::new();
        pem::encode("CERTIFICATE", &der, &mut text);
        let link = format!("<{BASE}/certificate/{number}/1>; rel=\"alternate\"");
        let fields = [(&b"Link"[..], link.as_bytes())];
        AcmeReply::new(200, fields, text)
    }

    fn problem(&mut self, status: u16, error: &str) -> AcmeReply {
        let kind = format!("urn:ietf:params:acme:error:{error}");
        let text = format!("{{\"type\":\"{kind}\",\"detail\":\"because\"}}");
        self.reply(status, None, &text)
    }

    fn reply(&mut self, status: u16, location: Option<&str>, body: &str) -> AcmeReply {
        self.nonces += 1;
        self.nonce = Some(self.nonces);
        let nonce = format!("nonce{}", self.nonces);
        let location = location.map(|path| format!("{BASE}{path}"));
        let mut fields = Vec::from([(&b"Replay-Nonce"[..], nonce.as_bytes())]);
        fields.extend(location.as_ref().map(|url| (&b"Location"[..], url.as_bytes())));
        fields.extend(self.retry_after.map(|value| (&b"Retry-After"[..], value.as_bytes())));
        AcmeReply::new(status, fields, body.into())
    }
}
