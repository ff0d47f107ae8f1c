//! One conversation with an issuer: does what the machine asks for.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use net::KeyPair;
use wire::acme::{
    self, AcmeChallenge, AcmeFailure, AcmeInput, AcmeRecord, AcmeRun, AcmeStep, IssuedChain,
    OrderPlan, RenewalInfo,
};

use crate::account::IssuerInUse;
use crate::challenges::PublishedChallenges;
use crate::crypto::ProcessCrypto;
use crate::plan::AcmeCertificate;
use crate::state_folder::StateFolder;
use crate::stored::{OrderUnderWay, StoredCertificate};

type ChangeAnswer = fn(&PublishedChallenges, &AcmeChallenge, &StateFolder) -> io::Result<()>;

/// An order for a certificate at one issuer.
pub(crate) struct OrderAttempt<'a> {
    pub(crate) certificate: &'a AcmeCertificate,
    pub(crate) issuer: &'a Rc<IssuerInUse>,
    /// The number of the pair to be obtained.
    pub(crate) number: u64,
    pub(crate) key: Rc<KeyPair>,
    /// The id of the certificate that is replaced.
    pub(crate) replaces: Option<String>,
    /// The order of an earlier attempt.
    pub(crate) stored_order: Option<String>,
}

impl OrderAttempt<'_> {
    /// Orders the certificate. `Err` of the outer result: the storage failed before anything was
    /// asked for.
    pub(crate) async fn order(&self) -> io::Result<Result<IssuedChain, AcmeFailure>> {
        let issuer = &self.issuer.issuer;
        let run = acme::order(OrderPlan {
            directory_url: issuer.uri.clone(),
            account: self.issuer.account().await?,
            names: self.certificate.names.clone(),
            key: self.key.clone(),
            has_common_name: issuer.has_common_name,
            challenges: issuer.challenges.clone(),
            profile: issuer.profile.clone(),
            replaces: self.replaces.clone(),
            preferred_chain: issuer.preferred_chain.clone(),
            stored_order: self.stored_order.clone(),
            crypto: Rc::new(ProcessCrypto),
        });
        Ok(self.drive(run).await)
    }

    async fn drive(&self, mut run: AcmeRun<IssuedChain>) -> Result<IssuedChain, AcmeFailure> {
        let mut outcome = AcmeInput::Done;
        loop {
            outcome = match run.resume(outcome) {
                AcmeStep::Send(request) => self.issuer.client.send(request).await,
                AcmeStep::Wait(seconds) => wait(seconds).await,
                AcmeStep::Publish(challenges) => {
                    self.change(challenges, PublishedChallenges::publish).await
                }
                AcmeStep::Withdraw(challenges) => {
                    self.change(challenges, PublishedChallenges::withdraw).await
                }
                AcmeStep::Store(record) => self.store(record).await,
                AcmeStep::Finished(result) => return result,
            };
        }
    }

    /// Publishes answers, or withdraws them. After a crash they stay in the folder: the next
    /// attempt resumes the order, and needs them.
    async fn change(&self, challenges: Vec<AcmeChallenge>, change: ChangeAnswer) -> AcmeInput {
        let folder = self.certificate.folder().clone();
        let changed = net::offload(move || {
            let published = PublishedChallenges::of_process();
            challenges.iter().try_for_each(|challenge| change(published, challenge, &folder))
        });
        input(changed.await)
    }

    async fn store(&self, record: AcmeRecord) -> AcmeInput {
        let (certificate, number) = (self.certificate.clone(), self.number);
        let directory = self.issuer.issuer.uri.clone();
        let stored = match record {
            AcmeRecord::Account(url) => self.issuer.opened(url).await,
            AcmeRecord::Order(url) => {
                let order = OrderUnderWay { url, directory, number };
                net::offload(move || certificate.stored().begin_order(&order)).await
            }
            AcmeRecord::NoOrder => net::offload(move || certificate.stored().end_order()).await,
        };
        input(stored)
    }
}

/// Asks when the certificate with this id is to be renewed.
pub(crate) async fn renewal_info(
    issuer: &IssuerInUse,
    id: String,
) -> Result<Option<RenewalInfo>, AcmeFailure> {
    let mut run = acme::renewal_info(issuer.issuer.uri.clone(), id);
    let mut outcome = AcmeInput::Done;
    loop {
        outcome = match run.resume(outcome) {
            AcmeStep::Send(request) => issuer.client.send(request).await,
            AcmeStep::Wait(seconds) => wait(seconds).await,
            AcmeStep::Finished(result) => return result,
            AcmeStep::Publish(_) | AcmeStep::Withdraw(_) | AcmeStep::Store(_) => AcmeInput::Done,
        };
    }
}

async fn wait(seconds: u64) -> AcmeInput {
    net::sleep(Duration::from_secs(seconds)).await;
    AcmeInput::Done
}

fn input(result: io::Result<()>) -> AcmeInput {
    match result {
        Ok(()) => AcmeInput::Done,
        Err(error) => AcmeInput::Failed(error.to_string()),
    }
}

impl AcmeCertificate {
    pub(crate) fn stored(&self) -> StoredCertificate<'_> {
        StoredCertificate { folder: self.folder(), stem: &self.stem }
    }
}
