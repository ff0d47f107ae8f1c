//! Requests of the control socket to renew or forget the certificates of a name.
//!
//! | request | body | effect |
//! |---|---|---|
//! | `POST /acme/renew` | `{"name": "a.test", "force": true}` | the certificates are renewed soon |
//! | `POST /acme/forget` | the same | the files of the certificates are removed |
//!
//! The state of certificates is on the status pages (`shown`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use session::steering::{SteeringCall, SteeringReply, SteeringRequest, refusal};
use upstream::api::SpecRefusal;
use wire::json::{self, JsonLimits, JsonValue};

use crate::certificate::CertificateKeeper;
use crate::lock::LockWatch;
use crate::on_demand_keeper::OnDemandKeeper;
use crate::requests;
use crate::state_folder::StateFolder;

const LIMITS: JsonLimits = JsonLimits { bytes_max: 4096, depth_max: 2, values_max: 8 };
/// The digits behind the name in a stem.
const STEM_DIGITS: usize = 16;
/// The most certificates whose locks are remembered.
const WATCHES_MAX: usize = 64;

/// Takes requests.
#[derive(Default)]
pub(crate) struct RequestDesk {
    watches: Rc<LockWatches>,
}

/// The locks that have refused earlier requests, by stem.
#[derive(Default)]
struct LockWatches(RefCell<HashMap<String, LockWatch>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Renew,
    Forget,
}

/// A request that was read.
#[derive(Debug, PartialEq, Eq)]
struct CertificateRequest {
    name: String,
    is_forced: bool,
}

impl RequestDesk {
    /// Takes a request about certificates, and answers it later. Others are returned.
    pub(crate) fn called(
        &self,
        call: SteeringCall,
        keepers: Vec<Rc<CertificateKeeper>>,
        on_demand: Vec<Rc<OnDemandKeeper>>,
    ) -> Option<SteeringCall> {
        let action = match (&*call.request.method, &*call.request.path) {
            (b"POST", b"/acme/renew") => Action::Renew,
            (b"POST", b"/acme/forget") => Action::Forget,
            _ => return Some(call),
        };
        let watches = self.watches.clone();
        net::spawn(async move {
            let answer = match CertificateRequest::read(&call.request) {
                Ok(request) => answer(action, &request, &keepers, &on_demand, &watches).await,
                Err(refused) => Err(refused),
            };
            let reply = answer.unwrap_or_else(|refused| refusal(&refused, &call.request));
            call.reply.send(reply);
        });
        None
    }
}

impl CertificateRequest {
    fn read(request: &SteeringRequest) -> Result<Self, SpecRefusal> {
        if !request.origin.is_empty() {
            let text = "the request comes from another site";
            return Err(SpecRefusal::new(403, text, "ForeignOrigin"));
        }
        let read = || {
            let document = json::parse(&request.body, LIMITS).ok()?;
            let object = document.as_object()?;
            let is_forced = object.get("force").map_or(Some(false), JsonValue::as_bool)?;
            Some(Self { name: object.get("name")?.as_text()?.to_owned(), is_forced })
        };
        read().ok_or_else(|| SpecRefusal::new(400, "a \"name\" is required", "BadRequest"))
    }
}

async fn answer(
    action: Action,
    request: &CertificateRequest,
    keepers: &[Rc<CertificateKeeper>],
    on_demand: &[Rc<OnDemandKeeper>],
    watches: &LockWatches,
) -> Result<SteeringReply, SpecRefusal> {
    let meant = || keepers.iter().filter(|one| one.certificate.has_name(&request.name));
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for keeper in meant() {
        let stem = &keeper.certificate.stem;
        let number = match action {
            Action::Renew => keeper.request_renewal(request.is_forced).await,
            Action::Forget if !request.is_forced && keeper.permission.is_none() => {
                Err(configured())
            }
            Action::Forget => {
                let mut watch = watches.take(stem);
                let forgotten = match keeper.permission {
                    Some(_) => evict(on_demand, &keeper.certificate.shown(), &mut watch).await,
                    None => keeper.forget(&mut watch).await,
                };
                watches.keep_if_refused(stem, watch, &forgotten);
                forgotten.map(|()| 0)
            }
        };
        match number {
            Ok(number) => done.push((stem.clone(), number)),
            Err(why) => refused.push(why),
        }
    }
    if meant().next().is_none() && action == Action::Forget {
        for (folder, stem) in left_over(&request.name, keepers).await? {
            let mut watch = watches.take(&stem);
            let forgotten =
                requests::forget(&folder, &stem, &mut watch, |stored| stored.remove_all()).await;
            watches.keep_if_refused(&stem, watch, &forgotten);
            match forgotten {
                Ok(()) => done.push((stem, 0)),
                Err(why) => refused.push(why),
            }
        }
    }
    match (done.is_empty(), refused.into_iter().next()) {
        (true, Some(why)) => Err(why),
        (true, None) => {
            let text = format!("there is no certificate for \"{}\"", request.name);
            Err(SpecRefusal::new(404, text, "CertificateNotFound"))
        }
        (false, _) => Ok(accepted(&done)),
    }
}

async fn evict(
    on_demand: &[Rc<OnDemandKeeper>],
    name: &str,
    watch: &mut LockWatch,
) -> Result<(), SpecRefusal> {
    for keeper in on_demand {
        keeper.evict(name, watch).await?;
    }
    Ok(())
}

fn configured() -> SpecRefusal {
    let why = "the configuration has the name, so another certificate is ordered at once; \
               \"force\" does it";
    requests::refused(why, "Configured")
}

impl LockWatches {
    fn take(&self, stem: &str) -> LockWatch {
        self.0.borrow_mut().remove(stem).unwrap_or_default()
    }

    /// A lock that has refused one request may be stale by the next one.
    fn keep_if_refused<T>(&self, stem: &str, watch: LockWatch, result: &Result<T, SpecRefusal>) {
        let mut watches = self.0.borrow_mut();
        if watches.len() >= WATCHES_MAX {
            watches.clear();
        }
        if result.is_err() {
            watches.insert(stem.to_owned(), watch);
        }
    }
}

fn accepted(done: &[(String, u64)]) -> SteeringReply {
    let mut json = b"{\"certificates\":[".to_vec();
    for (at, (stem, number)) in done.iter().enumerate() {
        json.extend_from_slice(if at > 0 { b",{\"file\":" } else { b"{\"file\":" });
        json::write_text(stem.as_bytes(), &mut json);
        json.extend_from_slice(format!(",\"number\":{number}}}").as_bytes());
    }
    json.extend_from_slice(b"]}");
    SteeringReply { status: 202, json, fields: Vec::new() }
}

/// The certificates in the folders that begin with the name and have no keeper.
async fn left_over(
    name: &str,
    keepers: &[Rc<CertificateKeeper>],
) -> Result<Vec<(Arc<StateFolder>, String)>, SpecRefusal> {
    let mut folders: Vec<Arc<StateFolder>> = Vec::new();
    for issuer in keepers.iter().flat_map(|keeper| &keeper.certificate.issuers) {
        if !folders.iter().any(|known| known.shown() == issuer.folder.shown()) {
            folders.push(issuer.folder.clone());
        }
    }
    let name = name.to_owned();
    let found = net::offload(move || -> io::Result<_> {
        let mut found = Vec::new();
        for folder in folders {
            let stems = folder.manifests()?.into_iter().map(|(stem, _)| stem);
            let stems = stems.filter(|stem| is_stem_of(stem, &name));
            found.extend(stems.map(|stem| (folder.clone(), stem)));
        }
        Ok(found)
    });
    found.await.map_err(|error| {
        SpecRefusal::new(500, format!("the state folder failed: {error}"), "StorageFailed")
    })
}

/// Whether a stem is the name, or begins with it.
fn is_stem_of(stem: &str, name: &str) -> bool {
    let digits = stem.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    stem == name
        || digits.is_some_and(|text| text.len() == STEM_DIGITS && text.bytes().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, origin: &str) -> Result<CertificateRequest, u16> {
        let request = SteeringRequest {
            body: body.as_bytes().into(),
            origin: origin.as_bytes().into(),
            ..SteeringRequest::default()
        };
        CertificateRequest::read(&request).map_err(|refused| refused.status)
    }

    #[test]
    fn a_request_has_a_name_and_comes_from_no_page() {
        let request = |is_forced| Ok(CertificateRequest { name: "a.test".into(), is_forced });
        assert_eq!(read(r#"{"name": "a.test"}"#, ""), request(false));
        assert_eq!(read(r#"{"name": "a.test", "force": true}"#, ""), request(true));
        assert_eq!(read(r#"{"name": "a.test"}"#, "https://b.test"), Err(403));
        for body in ["", "[]", "{}", r#"{"name": 1}"#, r#"{"name": "a", "force": 1}"#] {
            assert_eq!(read(body, ""), Err(400), "{body}");
        }
    }

    #[test]
    fn a_stem_is_a_name_with_digits() {
        assert!(is_stem_of("a.test-0123456789abcdef", "a.test"));
        assert!(is_stem_of("a.test-0123456789abcdef", "a.test-0123456789abcdef"));
        for other in ["a.test-x.test-0123456789abcdef", "a.test-012", "b.test-0123456789abcdef"] {
            assert!(!is_stem_of(other, "a.test"), "{other}");
        }
    }
}
