//! Whether a name that clients tell may have a certificate: what its endpoint says.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use observe::Level;

use crate::account::IssuerInUse;
use crate::now::now_s;
use crate::on_demand::DemandedName;
use crate::on_demand_rules::OnDemandRules;

/// How long an answer of the endpoint holds for attempts, in seconds.
const ALLOWED_S: i64 = 60 * 60;

/// Whether a name may still have a certificate.
pub(crate) struct Permission {
    demanded: Arc<DemandedName>,
    rules: OnDemandRules,
    issuer: Rc<IssuerInUse>,
    /// When the endpoint has allowed it last, in seconds since 1970.
    allowed_s: Cell<i64>,
}

/// What the endpoint has said.
pub(crate) enum NameVerdict {
    Allowed,
    Refused,
    Unknown(String),
}

impl Permission {
    pub(crate) fn new(
        demanded: Arc<DemandedName>,
        rules: OnDemandRules,
        issuer: Rc<IssuerInUse>,
    ) -> Self {
        Self { demanded, rules, issuer, allowed_s: Cell::new(0) }
    }

    pub(crate) fn allowed_at(&self, time_s: i64) {
        self.allowed_s.set(time_s);
    }

    /// Whether nobody has used the name for long.
    pub(crate) fn is_unused(&self) -> bool {
        self.demanded.is_unused(self.rules.unused_s)
    }

    /// Whether the name is allowed. Asks the endpoint unless its last answer is recent; fails if it
    /// cannot be asked.
    pub(crate) async fn holds(&self) -> io::Result<bool> {
        if now_s() - self.allowed_s.get() <= ALLOWED_S {
            return Ok(true);
        }
        let name = self.demanded.certificate.shown();
        match ask(&self.issuer, &self.rules.ask, &name).await {
            NameVerdict::Allowed => {
                self.allowed_s.set(now_s());
                self.demanded.give_up(false);
                Ok(true)
            }
            NameVerdict::Refused => {
                let text = format_args!("acme: on demand: \"{name}\" is not allowed any more");
                observe::log(Level::Notice, text);
                self.demanded.give_up(true);
                Ok(false)
            }
            NameVerdict::Unknown(why) => Err(io::Error::other(format!("\"on_demand\": {why}"))),
        }
    }
}

/// Asks whether a name may have a certificate.
pub(crate) async fn ask(issuer: &IssuerInUse, ask: &str, name: &str) -> NameVerdict {
    let separator = if ask.contains('?') { '&' } else { '?' };
    match issuer.client.status(&format!("{ask}{separator}domain={name}")).await {
        Ok(200) => NameVerdict::Allowed,
        Ok(status @ 500..) => NameVerdict::Unknown(format!("the answer of {ask} is {status}")),
        Ok(_) => NameVerdict::Refused,
        Err(why) => NameVerdict::Unknown(why),
    }
}
