//! One conversation with an issuer: does what the machine asks for.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use net::KeyPair;
use observe::Level;
use wire::acme::{
    self, AcmeChallenge, AcmeFailure, AcmeInput, AcmeRecord, AcmeRun, AcmeStep, ChallengeAnswer,
    IssuedChain, OrderPlan, RenewalInfo,
};

use crate::account::IssuerInUse;
use crate::answers::PublishedAnswer;
use crate::challenges::PublishedChallenges;
use crate::crypto::ProcessCrypto;
use crate::dns01::{DnsRecord, RecordChange};
use crate::leftovers;
use crate::plan::AcmeCertificate;
use crate::stored::{OrderUnderWay, StoredCertificate};

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
    /// Whether it only shows that an order would succeed, at the directory for trials.
    pub(crate) is_trial: bool,
    /// The answers that are published.
    pub(crate) published: RefCell<Vec<PublishedAnswer>>,
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
                AcmeStep::Publish(challenges) => match self.publish(challenges).await {
                    Ok(()) => AcmeInput::Done,
                    Err(why) => AcmeInput::Failed(why),
                },
                AcmeStep::Withdraw(_) => {
                    self.withdraw().await;
                    AcmeInput::Done
                }
                AcmeStep::Store(record) => self.store(record).await,
                AcmeStep::Finished(result) => return result,
            };
        }
    }

    /// Notes answers, publishes them, and waits until the authority can see them.
    async fn publish(&self, challenges: Vec<AcmeChallenge>) -> Result<(), String> {
        let records = self.records(&challenges).await?;
        let own = challenges.iter().filter_map(PublishedAnswer::of);
        let issuer = &self.issuer.issuer.name;
        let of_dns = |record| PublishedAnswer::Dns01 { issuer: issuer.clone(), record };
        let answers: Vec<_> = own.chain(records.iter().cloned().map(of_dns)).collect();
        *self.published.borrow_mut() = answers.clone();
        let (certificate, folder) = (self.certificate.clone(), self.certificate.folder().clone());
        let published = net::offload(move || {
            certificate.stored().note_answers(&answers)?;
            let published = PublishedChallenges::of_process();
            let mut own = challenges.iter().filter(|one| PublishedAnswer::of(one).is_some());
            own.try_for_each(|challenge| published.publish(challenge, &folder))
        });
        published.await.map_err(|error| error.to_string())?;
        let Some(dns) = self.issuer.issuer.dns() else { return Ok(()) };
        for record in &records {
            dns.change(record, RecordChange::Add).await?;
        }
        dns.await_records(&records).await
    }

    /// The records of DNS that are to be published.
    async fn records(&self, challenges: &[AcmeChallenge]) -> Result<Vec<DnsRecord>, String> {
        let mut asked = Vec::new();
        for challenge in challenges {
            if let ChallengeAnswer::Dns01 { record, value } = &challenge.answer {
                let (domain, name, value) =
                    (challenge.name.to_string(), record.clone(), value.clone());
                asked.push(DnsRecord { domain, name, value });
            }
        }
        match self.issuer.issuer.dns() {
            Some(dns) => dns.followed(asked).await,
            None if asked.is_empty() => Ok(asked),
            None => Err("nobody changes records of DNS".to_owned()),
        }
    }

    /// Withdraws all answers. What fails is tried again later: it stays in the note.
    async fn withdraw(&self) {
        let answers = self.published.take();
        let (folder, stem) = (self.certificate.folder(), &self.certificate.stem);
        let issuers = std::slice::from_ref(self.issuer);
        if let Err(error) = leftovers::withdraw(folder, stem, issuers, answers).await {
            let text = format_args!("acme: an answer to a challenge is left (\"{stem}\"): {error}");
            observe::log(Level::Error, text);
        }
    }

    async fn store(&self, record: AcmeRecord) -> AcmeInput {
        let (certificate, number) = (self.certificate.clone(), self.number);
        let directory = self.issuer.issuer.uri.clone();
        let stored = match record {
            AcmeRecord::Account(url) => self.issuer.opened(url).await,
            _ if self.is_trial => Ok(()),
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
