//! Orders as the server shows them (RFC 8555, section 7.1.3).

use alloc::string::String;
use alloc::vec::Vec;

use super::authorization::name_of;
use super::object;
use super::problem::AcmeProblem;
use crate::x509::SubjectName;

/// The most authorizations of an order.
const AUTHORIZATIONS_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderState {
    pub(super) status: OrderStatus,
    pub(super) names: Vec<SubjectName>,
    pub(super) authorizations: Vec<String>,
    pub(super) finalize: String,
    pub(super) certificate: Option<String>,
    pub(super) problem: Option<AcmeProblem>,
}

/// ```text
/// pending -> ready -> processing -> valid
///    |         |          |
///    +---------+----------+-> invalid
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderStatus {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
}

impl OrderState {
    pub(super) fn parse(body: &[u8], directory: &str) -> Result<Self, String> {
        let document = object::parse(body)?;
        let status = match object::text(&document, "status") {
            Some("pending") => OrderStatus::Pending,
            Some("ready") => OrderStatus::Ready,
            Some("processing") => OrderStatus::Processing,
            Some("valid") => OrderStatus::Valid,
            Some("invalid") => OrderStatus::Invalid,
            _ => return Err("no known status of an order".into()),
        };
        let names = object::list(&document, "identifiers").iter();
        let names = names.filter_map(|identifier| name_of(identifier.as_object()?)).collect();
        let urls = object::list(&document, "authorizations").iter().take(AUTHORIZATIONS_MAX);
        let urls = urls.map(|url| object::checked_url(url.as_text()?, directory));
        let finalize = object::url(&document, "finalize", directory);
        Ok(Self {
            status,
            names,
            authorizations: urls.collect::<Option<_>>().ok_or("an authorization without URL")?,
            finalize: finalize.ok_or("no URL to finalize the order")?,
            certificate: object::url(&document, "certificate", directory),
            problem: object::object(&document, "error").map(AcmeProblem::read),
        })
    }

    /// Whether it is for exactly these names.
    pub(super) fn is_for(&self, names: &[SubjectName]) -> bool {
        let has_all =
            |all: &[SubjectName], some: &[SubjectName]| some.iter().all(|name| all.contains(name));
        has_all(&self.names, names) && has_all(names, &self.names)
    }
}
