//! The way of an order, from the directory to the certificate.

use alloc::string::String;
use alloc::vec::Vec;

use super::account::AccountConversation;
use super::authorization::Authorization;
use super::certificate::IssuedChain;
use super::challenge::AcmeChallenge;
use super::conversation::{Conversation, Polls};
use super::directory::Directory;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::jws::{base64url, key_thumbprint, quoted};
use super::object;
use super::order::{OrderState, OrderStatus};
use super::plan::OrderPlan;
use super::reply::AcmeReply;
use super::run::{AcmeRun, DriverLine};
use super::step::AcmeRecord;
use crate::x509::{self, SubjectName};

/// Obtains a certificate.
pub fn order(plan: OrderPlan) -> AcmeRun<IssuedChain> {
    AcmeRun::new(|line| obtain(line, plan))
}

async fn obtain(line: DriverLine, plan: OrderPlan) -> Result<IssuedChain, AcmeFailure> {
    let mut conversation = Conversation::new(line, plan.names.len());
    let directory = Directory::read(&mut conversation, &plan.directory_url).await?;
    check_profile(&plan, &directory)?;
    let (account, crypto) = (&plan.account, &*plan.crypto);
    let server = AccountConversation::open(conversation, directory, account, crypto).await?;
    let mut issuing = Issuing { server, plan: &plan, stored: plan.stored_order.clone() };
    let result = match issuing.run().await {
        Err(failure)
            if failure.kind == AcmeFailureKind::UnknownAccount && plan.account.url.is_some() =>
        {
            // The server has forgotten the account, and with it the order.
            issuing.stored = None;
            issuing.server.register(account, crypto).await?;
            issuing.run().await
        }
        result => result,
    };
    if let Err(failure) = &result
        && issuing.stored.is_some()
        && !failure.may_be_resumed()
    {
        let activity = failure.activity;
        issuing.server.conversation.store(AcmeRecord::NoOrder, activity).await?;
    }
    result
}

fn check_profile(plan: &OrderPlan, directory: &Directory) -> Result<(), AcmeFailure> {
    match &plan.profile {
        Some(profile) if profile.is_required && !directory.profiles.contains(&profile.name) => {
            let detail = profile.name.as_str();
            Err(AcmeFailure::new(AcmeFailureKind::Profile, AcmeActivity::Directory, detail))
        }
        _ => Ok(()),
    }
}

/// An order under way.
struct Issuing<'p> {
    server: AccountConversation,
    plan: &'p OrderPlan,
    /// The URL of the order that is stored.
    stored: Option<String>,
}

impl Issuing<'_> {
    async fn run(&mut self) -> Result<IssuedChain, AcmeFailure> {
        let (url, mut order) = match self.resume().await? {
            Some(resumed) => resumed,
            None => self.begin().await?,
        };
        if order.status == OrderStatus::Pending {
            order = self.authorize(&url, order).await?;
        }
        if order.status == OrderStatus::Ready {
            order = self.finalize(&url, order).await?;
        }
        if order.status == OrderStatus::Processing {
            order = self.poll(&url, AcmeActivity::Finalization, &[OrderStatus::Valid]).await?;
        }
        match (order.status, &order.certificate) {
            (OrderStatus::Valid, Some(certificate)) => self.download(certificate).await,
            _ => Err(failed(order, AcmeActivity::Finalization)),
        }
    }

    /// The stored order, if the server still has it and it is the right one.
    async fn resume(&mut self) -> Result<Option<(String, OrderState)>, AcmeFailure> {
        let Some(url) = self.stored.clone() else { return Ok(None) };
        let reply = match self.server.read(&url, AcmeActivity::Order).await {
            Ok(reply) => reply,
            Err(failure) if failure.may_be_resumed() => return Err(failure),
            Err(failure) if failure.kind == AcmeFailureKind::UnknownAccount => return Err(failure),
            Err(_) => return Ok(None),
        };
        let order = self.state(&reply, AcmeActivity::Order)?;
        let is_usable = order.status != OrderStatus::Invalid && order.is_for(&self.plan.names);
        Ok(is_usable.then_some((url, order)))
    }

    async fn begin(&mut self) -> Result<(String, OrderState), AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::NewOrder;
        let endpoint = self.server.directory.new_order.clone();
        let replaces = self.plan.replaces.as_deref();
        let payload = self.new_order(replaces);
        let mut reply = self.server.post(&endpoint, &payload, ACTIVITY).await;
        // The certificate to be replaced is known no more, or was replaced already (RFC 9773,
        // section 5): that is no reason to have none.
        if let Err(failure) = &reply
            && replaces.is_some()
            && matches!(failure.kind, AcmeFailureKind::Refused | AcmeFailureKind::Unauthorized)
        {
            reply = self.server.post(&endpoint, &self.new_order(None), ACTIVITY).await;
        }
        let reply = reply?;
        let order = self.state(&reply, ACTIVITY)?;
        let url = reply.location.as_deref();
        let url = url.and_then(|url| object::checked_url(url, &self.plan.directory_url));
        let url = url.ok_or_else(|| invalid(ACTIVITY, "no URL of the order"))?;
        self.server.conversation.store(AcmeRecord::Order(url.clone()), ACTIVITY).await?;
        self.stored = Some(url.clone());
        Ok((url, order))
    }

    fn new_order(&self, replaces: Option<&str>) -> Vec<u8> {
        let names: Vec<_> = self.plan.names.iter().map(identifier).collect();
        let names = alloc::format!("[{}]", names.join(","));
        let mut members = alloc::vec![("identifiers", names)];
        if let Some(profile) = &self.plan.profile
            && self.server.directory.profiles.contains(&profile.name)
        {
            members.push(("profile", quoted(&profile.name)));
        }
        if let Some(id) = replaces
            && self.server.directory.renewal_info.is_some()
        {
            members.push(("replaces", quoted(id)));
        }
        let members: Vec<_> = members.iter().map(|(name, value)| (*name, value.as_str())).collect();
        object::written(&members)
    }

    /// Proves the names. Returns the order when it is pending no more.
    async fn authorize(&mut self, url: &str, order: OrderState) -> Result<OrderState, AcmeFailure> {
        let thumbprint = key_thumbprint(&*self.plan.account.key, &*self.plan.crypto)
            .map_err(|_| AcmeFailure::new(AcmeFailureKind::Key, AcmeActivity::Authorization, ""))?;
        let (mut answers, mut unanswered) = (Vec::new(), Vec::new());
        for authorization in &order.authorizations {
            match self.authorization(authorization).await? {
                Authorization::Valid => {}
                Authorization::Failed(failure) => return Err(failure),
                Authorization::Pending(name, _) if !self.is_ordered(&name) => {
                    return Err(invalid(AcmeActivity::Authorization, "not a name of the order"));
                }
                Authorization::Pending(name, offer) => {
                    let (kind, crypto) = (offer.kind, &*self.plan.crypto);
                    let token = &offer.token;
                    answers.push(AcmeChallenge::new(kind, name, token, &thumbprint, crypto));
                    unanswered.extend(offer.is_pending.then_some(offer.url));
                }
            }
        }
        if answers.is_empty() {
            return self.await_authorizations(url, &order).await;
        }
        let result = match self.server.conversation.publish(&answers).await {
            Ok(()) => self.respond(url, &order, &unanswered).await,
            Err(failure) => Err(failure),
        };
        self.server.conversation.withdraw(answers).await;
        result
    }

    /// Whether this name, or all hosts below it, are to be proved.
    fn is_ordered(&self, name: &SubjectName) -> bool {
        self.plan.names.iter().any(|own| match (own, name) {
            (SubjectName::Dns(own), SubjectName::Dns(host)) => {
                own.strip_prefix("*.").unwrap_or(own) == host
            }
            _ => own == name,
        })
    }

    async fn authorization(&mut self, url: &str) -> Result<Authorization, AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::Authorization;
        let reply = self.server.read(url, ACTIVITY).await?;
        let (kinds, directory) = (&self.plan.challenges, &self.plan.directory_url);
        Authorization::parse(&reply.body, kinds, directory).map_err(|why| invalid(ACTIVITY, why))
    }

    /// Tells the server that the answers are published.
    async fn respond(
        &mut self,
        url: &str,
        order: &OrderState,
        challenges: &[String],
    ) -> Result<OrderState, AcmeFailure> {
        for challenge in challenges {
            self.server.post(challenge, b"{}", AcmeActivity::Challenge).await?;
        }
        self.await_authorizations(url, order).await
    }

    async fn await_authorizations(
        &mut self,
        url: &str,
        order: &OrderState,
    ) -> Result<OrderState, AcmeFailure> {
        use OrderStatus::{Processing, Ready, Valid};
        let ended = self.poll(url, AcmeActivity::Challenge, &[Ready, Processing, Valid]).await;
        let Err(failure) = ended else { return ended };
        if failure.may_be_resumed() {
            return Err(failure);
        }
        // The order does not say why it is invalid, its authorizations do.
        for authorization in &order.authorizations {
            if let Authorization::Failed(reason) = self.authorization(authorization).await? {
                return Err(reason);
            }
        }
        Err(failure)
    }

    /// Requests the certificate.
    async fn finalize(&mut self, url: &str, order: OrderState) -> Result<OrderState, AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::Finalization;
        let (names, has_common_name) = (&self.plan.names, self.plan.has_common_name);
        let request = x509::write_request(names, has_common_name, &*self.plan.key)
            .map_err(|_| AcmeFailure::new(AcmeFailureKind::Key, ACTIVITY, ""))?;
        let payload = object::written(&[("csr", &quoted(&base64url(&request)))]);
        let reply = self.server.post(&order.finalize, &payload, ACTIVITY).await?;
        let state = self.state(&reply, ACTIVITY)?;
        match state.status {
            // Some servers answer before they have begun.
            OrderStatus::Ready | OrderStatus::Processing => {
                let mut polls = Polls::new(ACTIVITY);
                polls.pause(&self.server.conversation, reply.retry_after_s).await?;
                self.poll(url, ACTIVITY, &[OrderStatus::Valid]).await
            }
            _ => Ok(state),
        }
    }

    /// Reads the order until it has one of these states.
    async fn poll(
        &mut self,
        url: &str,
        activity: AcmeActivity,
        ends: &[OrderStatus],
    ) -> Result<OrderState, AcmeFailure> {
        let mut polls = Polls::new(activity);
        loop {
            let retry_after_s = match self.server.read(url, activity).await {
                Ok(reply) => {
                    polls.succeed();
                    let order = self.state(&reply, activity)?;
                    match order.status {
                        OrderStatus::Invalid => return Err(failed(order, activity)),
                        status if ends.contains(&status) => return Ok(order),
                        _ => reply.retry_after_s,
                    }
                }
                Err(failure) => {
                    let retry_after_s = failure.retry_after_s;
                    polls.survive(failure)?;
                    retry_after_s
                }
            };
            polls.pause(&self.server.conversation, retry_after_s).await?;
        }
    }

    fn state(&self, reply: &AcmeReply, activity: AcmeActivity) -> Result<OrderState, AcmeFailure> {
        let order = OrderState::parse(&reply.body, &self.plan.directory_url);
        order.map_err(|why| invalid(activity, why))
    }

    /// Downloads the chain, and another one if that is preferred.
    async fn download(&mut self, url: &str) -> Result<IssuedChain, AcmeFailure> {
        let (reply, chain) = self.chain(url).await?;
        let Some(preferred) = &self.plan.preferred_chain else { return Ok(chain) };
        let is_preferred = |chain: &IssuedChain| chain.root.as_ref() == Some(preferred);
        if is_preferred(&chain) {
            return Ok(chain);
        }
        for alternate in &reply.alternates {
            let url = object::checked_url(alternate, &self.plan.directory_url);
            let Some(url) = url else { continue };
            // An alternate that cannot be had is no reason to have no certificate.
            if let Ok((_, other)) = self.chain(&url).await
                && is_preferred(&other)
            {
                return Ok(other);
            }
        }
        Ok(chain)
    }

    async fn chain(&mut self, url: &str) -> Result<(AcmeReply, IssuedChain), AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::Certificate;
        let reply = self.server.read(url, ACTIVITY).await?;
        let chain = IssuedChain::parse(&reply.body, &*self.plan.key, &self.plan.names)
            .map_err(|why| invalid(ACTIVITY, why))?;
        Ok((reply, chain))
    }
}

pub(super) fn identifier(name: &SubjectName) -> String {
    let kind = match name {
        SubjectName::Dns(_) => "dns",
        SubjectName::Ip(_) => "ip",
    };
    let value = quoted(&alloc::format!("{name}"));
    alloc::format!("{{\"type\":\"{kind}\",\"value\":{value}}}")
}

/// Why an order has no certificate.
fn failed(order: OrderState, activity: AcmeActivity) -> AcmeFailure {
    match order.problem {
        Some(problem) => problem.of_order(activity),
        None if order.status == OrderStatus::Invalid => {
            AcmeFailure::new(AcmeFailureKind::Refused, activity, "the order is invalid")
        }
        None => invalid(activity, "the order has no certificate"),
    }
}

fn invalid(activity: AcmeActivity, detail: impl Into<String>) -> AcmeFailure {
    AcmeFailure::new(AcmeFailureKind::InvalidReply, activity, detail)
}
