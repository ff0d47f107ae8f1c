//! `ssl_stapling`: OCSP responses that are sent along with certificates.
//!
//! A handshake never waits for a responder: it gets the response that is there, and starts a
//! request if it is time for a newer one. Requests are made by whichever worker comes first; what
//! they bring is shared by all workers, by all servers with the certificate, and with the
//! configurations that follow.
//!
//! This is no job of the control thread. As in nginx, only a handshake makes a request due: a
//! certificate that no client asks for costs its responder nothing, and the first handshake has no
//! response. A job with a schedule would change both; one that handshakes wake would only run the
//! same request on another thread.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::upstream::ResolverPolicy;
use conf::{Load, Result};
use net::tls::{
    Credential, OcspQuestion, OcspSigners, OcspStatus, StapleSource, TrustedCertificates,
};
use observe::{Level, Text};
use wire::ocsp::{OcspResponse, OcspResponseError};
use zones::{TwoProcesses, ZoneState, Zones};

use super::Conf;
use super::ocsp_checks::now_seconds;
use super::ocsp_responder::OcspResponderUrl;
use super::values::CertificateFile;
use super::verification;

/// A response from `ssl_stapling_file`.
#[derive(Debug)]
struct FixedStaple(Arc<[u8]>);

impl StapleSource for FixedStaple {
    fn staple(&self) -> Option<Arc<[u8]>> {
        Some(self.0.clone())
    }
}

/// Responses from the certificate's responder.
struct FetchedStaple(Arc<StapleFetcher>);

struct StapleFetcher {
    question: OcspQuestion,
    responder: OcspResponderUrl,
    names: ResolverPolicy,
    /// The name of the certificate in log lines.
    name: String,
    state: Arc<StapleState>,
}

/// What is known about a certificate.
#[derive(Default)]
struct StapleState(Mutex<KnownStaple>);

/// The states of one configuration.
#[derive(Default)]
struct StapleStates(HashMap<Vec<u8>, Arc<StapleState>>);

#[derive(Default)]
struct KnownStaple {
    response: Option<Arc<[u8]>>,
    /// In seconds since 1970, as the next one.
    valid_until: i64,
    refresh_at: i64,
    is_loading: bool,
}

/// A response is replaced this long before it ends, in seconds; all times are nginx's.
const REFRESH_BEFORE_END_S: i64 = 300;
/// A response is replaced after an hour at the latest.
const REFRESH_MAX_S: i64 = 3600;
/// The time between two requests, at least.
const REFRESH_MIN_S: i64 = 300;

impl Conf {
    /// The credential with its OCSP responses, if there are to be any. `certificate` is where it
    /// comes from.
    pub(super) fn stapled(
        &self,
        credential: Credential,
        certificate: &CertificateFile,
        names: &ResolverPolicy,
        load: &mut Load<'_>,
    ) -> Result<Credential> {
        if !self.stapling {
            return Ok(credential);
        }
        if let Some(file) = &self.stapling_file {
            let Some(response) = file.read_if_here("OCSP response", load)? else {
                return Ok(credential);
            };
            if let Err(OcspResponseError::Invalid) = OcspResponse::parse(&response) {
                return Err(file.refuse("OCSP response", &"it is not an OCSP response", load));
            }
            return Ok(credential.with_staple(Arc::new(FixedStaple(response))));
        }
        let others = match &self.trusted_certificate {
            Some(file) if !file.text.is_empty() => verification::certificates(file, load)?,
            _ => TrustedCertificates::none(),
        };
        match self.fetcher(&credential, &others, certificate, names, load) {
            Ok(fetcher) => Ok(credential.with_staple(Arc::new(FetchedStaple(Arc::new(fetcher))))),
            Err(reason) => {
                let name = certificate.shown(load);
                let cause = format!("\"ssl_stapling\" ignored, {reason}");
                let message = format!("{cause} \"{name}\"");
                load.warn(certificate.from.error(message).cause(cause));
                Ok(credential)
            }
        }
    }

    /// The error is what stands before the certificate's name.
    fn fetcher(
        &self,
        credential: &Credential,
        others: &TrustedCertificates,
        certificate: &CertificateFile,
        names: &ResolverPolicy,
        load: &mut Load<'_>,
    ) -> std::result::Result<StapleFetcher, String> {
        let signers = match self.stapling_verify {
            true => OcspSigners::Authorized,
            false => OcspSigners::Any,
        };
        let question = OcspQuestion::new(credential, others.iter(), signers)
            .ok_or("issuer certificate not found for certificate")?;
        let url = self.stapling_responder.as_ref().map(|url| &url.0[..]).or(question.responder());
        let url = url.ok_or("no OCSP responder URL in the certificate")?;
        let responder = OcspResponderUrl::read(url).map_err(|reason| {
            format!("{reason} in OCSP responder \"{}\" in the certificate", Text(url))
        })?;
        let key = [&question.request()[..], &[u8::from(self.stapling_verify)], url].concat();
        let state = StapleState::of(key, load);
        let name = certificate.shown(load);
        Ok(StapleFetcher { question, responder, names: names.clone(), name, state })
    }
}

impl StapleSource for FetchedStaple {
    fn staple(&self) -> Option<Arc<[u8]>> {
        let now = now_seconds();
        let mut known = self.0.state.lock();
        let response = known.response.clone().filter(|_| now <= known.valid_until);
        let is_due = !known.is_loading && known.refresh_at < now;
        known.is_loading |= is_due;
        drop(known);
        if is_due {
            net::spawn_if_running(StapleRequest(self.0.clone()).run());
        }
        response
    }
}

/// A request under way. If it is dropped, another may begin.
struct StapleRequest(Arc<StapleFetcher>);

impl StapleRequest {
    async fn run(self) {
        let StapleFetcher { question, responder, names, .. } = &*self.0;
        let fetched = responder.fetch(&question.request(), names).await;
        let response = fetched.map_err(|failure| failure.to_string());
        if let Err(reason) = response.and_then(|response| self.0.take(response, now_seconds())) {
            self.0.state.lock().refresh_at = now_seconds() + REFRESH_MIN_S;
            self.0.log(&reason);
        }
    }
}

impl Drop for StapleRequest {
    fn drop(&mut self) {
        self.0.state.lock().is_loading = false;
    }
}

impl StapleFetcher {
    /// Uses a response from now on, if it says that the certificate is good.
    fn take(&self, response: Vec<u8>, now: i64) -> std::result::Result<(), String> {
        let verdict = self.question.judge(&response, now).map_err(|fault| fault.to_string())?;
        if verdict.status != OcspStatus::Good {
            let status = verdict.status.name();
            return Err(format!("certificate status \"{status}\" in the OCSP response"));
        }
        let mut known = self.state.lock();
        known.response = Some(response.into());
        known.valid_until = verdict.valid_until;
        let before_end = verdict.valid_until.saturating_sub(REFRESH_BEFORE_END_S);
        known.refresh_at = before_end.min(now + REFRESH_MAX_S).max(now + REFRESH_MIN_S);
        Ok(())
    }

    fn log(&self, reason: &str) {
        let (host, name) = (Text(&self.responder.host), &self.name);
        observe::log(
            Level::Error,
            format_args!(
                "{reason} while requesting certificate status, responder: {host}, certificate: \
                 \"{name}\""
            ),
        );
    }
}

impl ZoneState for StapleState {
    const DIRECTIVES: &'static [&'static str] = &["ssl_stapling"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl StapleState {
    /// The state with this key, which the configuration before may have had.
    fn of(key: Vec<u8>, load: &mut Load<'_>) -> Arc<Self> {
        if let Some(known) = load.registry.of::<StapleStates>().0.get(&key) {
            return known.clone();
        }
        let state = Zones::of(load).keep::<Self>(&key, Option::unwrap_or_default);
        load.registry.of::<StapleStates>().0.insert(key, state.clone());
        state
    }

    fn lock(&self) -> MutexGuard<'_, KnownStaple> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FetchedStaple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FetchedStaple").field(&self.0.name).finish()
    }
}

#[cfg(test)]
mod tests;
