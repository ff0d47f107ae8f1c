//! The directory: the URLs of a server (RFC 8555, section 7.1.1).

use alloc::string::String;
use alloc::vec::Vec;

use super::conversation::Conversation;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::{object, problem};

#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) url: String,
    pub(super) new_nonce: String,
    pub(super) new_account: String,
    pub(super) new_order: String,
    pub(super) renewal_info: Option<String>,
    pub(super) terms_of_service: Option<String>,
    pub(super) profiles: Vec<String>,
}

impl Directory {
    pub(super) async fn read(
        conversation: &mut Conversation,
        url: &str,
    ) -> Result<Self, AcmeFailure> {
        let reply = conversation.get(url, AcmeActivity::Directory).await?;
        if !reply.is_success() {
            return Err(problem::failure(&reply, AcmeActivity::Directory));
        }
        Self::parse(&reply.body, url).map_err(|detail| {
            AcmeFailure::new(AcmeFailureKind::InvalidReply, AcmeActivity::Directory, detail)
        })
    }

    pub(super) fn parse(body: &[u8], url: &str) -> Result<Self, String> {
        let document = object::parse(body)?;
        let required = |name: &str| {
            object::url(&document, name, url).ok_or_else(|| alloc::format!("no URL \"{name}\""))
        };
        let meta = object::object(&document, "meta");
        let profiles = meta.and_then(|meta| object::object(meta, "profiles"));
        let profiles = profiles.into_iter().flatten().map(|profile| profile.name.clone().into());
        let terms = meta.and_then(|meta| object::text(meta, "termsOfService"));
        Ok(Self {
            new_nonce: required("newNonce")?,
            new_account: required("newAccount")?,
            new_order: required("newOrder")?,
            renewal_info: object::url(&document, "renewalInfo", url),
            terms_of_service: terms.map(String::from),
            profiles: profiles.collect(),
            url: url.into(),
        })
    }
}
