//! An account, and what it signs.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use super::conversation::Conversation;
use super::directory::Directory;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::jws::{self, AcmeCrypto, JOSE, JwsAuthor};
use super::plan::AcmeAccount;
use super::reply::AcmeReply;
use super::step::{AcmeRecord, AcmeRequest};
use super::{object, problem};
use crate::Method;

/// The most times that one request is sent because its nonce is not accepted.
const NONCES_MAX: usize = 6;

/// A conversation in the name of an account.
pub(super) struct AccountConversation {
    pub(super) conversation: Conversation,
    pub(super) directory: Directory,
    pub(super) key: Rc<dyn crate::signer::Signer>,
    /// The account's URL; `None` until the server has told it.
    pub(super) url: Option<String>,
    /// The nonce of the last reply.
    nonce: Option<String>,
}

impl AccountConversation {
    /// Looks up or creates the account, unless its URL is known.
    pub(super) async fn open(
        conversation: Conversation,
        directory: Directory,
        account: &AcmeAccount,
        crypto: &dyn AcmeCrypto,
    ) -> Result<Self, AcmeFailure> {
        let (key, url) = (account.key.clone(), account.url.clone());
        let mut opened = Self { conversation, directory, key, url, nonce: None };
        if opened.url.is_none() {
            opened.register(account, crypto).await?;
        }
        Ok(opened)
    }

    /// Looks up or creates the account (RFC 8555, section 7.3).
    pub(super) async fn register(
        &mut self,
        account: &AcmeAccount,
        crypto: &dyn AcmeCrypto,
    ) -> Result<(), AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::Account;
        self.url = None;
        let endpoint = self.directory.new_account.clone();
        let payload = registration(account, &endpoint, crypto)
            .map_err(|_| AcmeFailure::new(AcmeFailureKind::Key, ACTIVITY, ""))?;
        let reply = self.post(&endpoint, &payload, ACTIVITY).await;
        let reply = reply.map_err(|failure| self.with_terms(failure))?;
        let location = reply.location.as_deref();
        let url = location.and_then(|url| object::checked_url(url, &self.directory.url));
        let url = url.ok_or_else(|| {
            AcmeFailure::new(AcmeFailureKind::InvalidReply, ACTIVITY, "no URL of the account")
        })?;
        self.conversation.store(AcmeRecord::Account(url.clone()), ACTIVITY).await?;
        self.url = Some(url);
        Ok(())
    }

    /// Names the terms of service, which the user may have to accept.
    fn with_terms(&self, mut failure: AcmeFailure) -> AcmeFailure {
        let may_be = [AcmeFailureKind::UserAction, AcmeFailureKind::Refused];
        if let Some(terms) = &self.directory.terms_of_service
            && may_be.contains(&failure.kind)
        {
            failure.detail.push_str("; terms of service: ");
            problem::push_clean(terms, &mut failure.detail);
        }
        failure
    }

    /// Reads a resource ("POST-as-GET").
    pub(super) async fn read(
        &mut self,
        url: &str,
        activity: AcmeActivity,
    ) -> Result<AcmeReply, AcmeFailure> {
        self.post(url, b"", activity).await
    }

    /// Sends a signed request. A reply without success is a failure.
    pub(super) async fn post(
        &mut self,
        url: &str,
        payload: &[u8],
        activity: AcmeActivity,
    ) -> Result<AcmeReply, AcmeFailure> {
        let mut attempts = 0;
        loop {
            let reply = self.post_once(url, payload, activity).await?;
            if reply.is_success() {
                return Ok(reply);
            }
            let failure = problem::failure(&reply, activity);
            attempts += 1;
            if failure.kind != AcmeFailureKind::BadNonce || attempts == NONCES_MAX {
                return Err(failure);
            }
        }
    }

    async fn post_once(
        &mut self,
        url: &str,
        payload: &[u8],
        activity: AcmeActivity,
    ) -> Result<AcmeReply, AcmeFailure> {
        let nonce = match self.nonce.take() {
            Some(nonce) => nonce,
            None => self.new_nonce().await?,
        };
        let author = self.url.as_deref().map_or(JwsAuthor::Key, JwsAuthor::Account);
        let body = jws::signed(&*self.key, author, &nonce, url, payload)
            .map_err(|_| AcmeFailure::new(AcmeFailureKind::Key, activity, ""))?;
        let (method, content_type) = (Method::Post, Some(JOSE));
        let request = AcmeRequest { method, url: url.into(), content_type, body };
        let mut reply = self.conversation.send(request, activity).await?;
        self.nonce = reply.nonce.take();
        Ok(reply)
    }

    async fn new_nonce(&mut self) -> Result<String, AcmeFailure> {
        const ACTIVITY: AcmeActivity = AcmeActivity::Nonce;
        let (url, body) = (self.directory.new_nonce.clone(), Vec::new());
        let request = AcmeRequest { method: Method::Head, url, content_type: None, body };
        let reply = self.conversation.send(request, ACTIVITY).await?;
        if !reply.is_success() {
            return Err(problem::failure(&reply, ACTIVITY));
        }
        reply
            .nonce
            .ok_or_else(|| AcmeFailure::new(AcmeFailureKind::InvalidReply, ACTIVITY, "no nonce"))
    }
}

fn registration(
    account: &AcmeAccount,
    endpoint: &str,
    crypto: &dyn AcmeCrypto,
) -> Result<Vec<u8>, crate::signer::SigningFailed> {
    let mut members = Vec::new();
    if account.accepts_terms {
        members.push(("termsOfServiceAgreed", "true"));
    }
    let contact: Vec<_> = account.contact.iter().map(|contact| jws::quoted(contact)).collect();
    let contact = alloc::format!("[{}]", contact.join(","));
    if !account.contact.is_empty() {
        members.push(("contact", &contact));
    }
    if account.only_existing {
        members.push(("onlyReturnExisting", "true"));
    }
    let binding = match &account.external {
        Some(external) => Some(jws::external_binding(external, &*account.key, endpoint, crypto)?),
        None => None,
    };
    if let Some(binding) = &binding {
        members.push(("externalAccountBinding", binding));
    }
    Ok(object::written(&members))
}
