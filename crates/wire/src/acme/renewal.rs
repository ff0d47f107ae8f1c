//! When to renew, by the server's suggestion (RFC 9773).

use alloc::format;
use alloc::string::String;

use super::conversation::Conversation;
use super::directory::Directory;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::jws::base64url;
use super::run::{AcmeRun, DriverLine};
use super::{object, problem};
use crate::date;
use crate::x509::X509;

/// The server's suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalInfo {
    /// The window to renew in, in seconds since 1970. It may be over.
    pub start_s: i64,
    pub end_s: i64,
    /// When to ask again, in seconds from now.
    pub retry_after_s: Option<u64>,
    /// A page for people about the reason.
    pub explanation_url: Option<String>,
}

/// The id of a certificate (DER), if it names its issuer's key.
pub fn renewal_id(certificate: &[u8]) -> Option<String> {
    renewal_id_of(&X509::parse(certificate).ok()?)
}

pub(super) fn renewal_id_of(certificate: &X509<'_>) -> Option<String> {
    let key_id = certificate.authority_key_id()?;
    Some(format!("{}.{}", base64url(key_id), base64url(certificate.serial)))
}

/// Asks when to renew the certificate with this id. The result is `None` if the server makes no
/// suggestions.
pub fn renewal_info(directory_url: String, id: String) -> AcmeRun<Option<RenewalInfo>> {
    AcmeRun::new(|line| ask(line, directory_url, id))
}

async fn ask(
    line: DriverLine,
    directory_url: String,
    id: String,
) -> Result<Option<RenewalInfo>, AcmeFailure> {
    const ACTIVITY: AcmeActivity = AcmeActivity::Renewal;
    let mut conversation = Conversation::new(line, 0);
    let directory = Directory::read(&mut conversation, &directory_url).await?;
    let Some(endpoint) = directory.renewal_info else { return Ok(None) };
    let url = format!("{}/{id}", endpoint.trim_end_matches('/'));
    let reply = conversation.get(&url, ACTIVITY).await?;
    if !reply.is_success() {
        return Err(problem::failure(&reply, ACTIVITY));
    }
    let (start_s, end_s, explanation_url) = parse_window(&reply.body, &directory_url)
        .map_err(|why| AcmeFailure::new(AcmeFailureKind::InvalidReply, ACTIVITY, why))?;
    let retry_after_s = reply.retry_after_s;
    Ok(Some(RenewalInfo { start_s, end_s, retry_after_s, explanation_url }))
}

/// Start, end and explanation.
pub(super) fn parse_window(
    body: &[u8],
    directory: &str,
) -> Result<(i64, i64, Option<String>), String> {
    let document = object::parse(body)?;
    let window = object::object(&document, "suggestedWindow").ok_or("no window")?;
    let time =
        |name| object::text(window, name).and_then(|text| date::parse_rfc3339(text.as_bytes()));
    let (Some(start_s), Some(end_s)) = (time("start"), time("end")) else {
        return Err("the window is not two times".into());
    };
    if start_s >= end_s {
        return Err("the window ends before it starts".into());
    }
    Ok((start_s, end_s, object::url(&document, "explanationURL", directory)))
}
