//! `allow` and `deny`: access by the client's address (`session::access`).

use std::sync::Arc;

use ::session::Session as _;
use ::session::access::{AccessRules, RuleVerdict};
use conf::Result;
use observe::Level;

use crate::session::StreamSession;
use crate::site::{Decision, ServerBuilder};

conf::directives! {
    also {
        /// Allows clients by address. The first `allow` or `deny` that matches decides; if none
        /// does, access is allowed.
        ///
        /// Syntax: ADDRESS | CIDR | unix: | all
        ///
        /// ```nginx
        /// server {
        ///     listen 9000;
        ///     allow 10.0.0.0/8;
        ///     deny all;
        ///     return "hello\n";
        /// }
        /// ```
        allow(1..=1) in MAIN | SERVER => rules;
        /// Denies clients by address: their connections are closed. The first `allow` or `deny`
        /// that matches decides.
        ///
        /// Syntax: ADDRESS | CIDR | unix: | all
        ///
        /// ```nginx
        /// deny 192.0.2.7;
        /// ```
        deny(1..=1) in MAIN | SERVER => rules;
    }
    slots {
        /// The rules, in order.
        rules: Option<AccessRules>,
    }

    in MAIN;
}

/// The status of a session that is refused.
const FORBIDDEN: u16 = 403;

/// Installs the check if there are rules.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    if let Some(rules) = conf.rules.clone() {
        place.server.access.push(place.hook(Box::new(move |x| check(&rules, x))));
    }
    Ok(())
}

fn check(rules: &AccessRules, x: &mut StreamSession) -> Decision {
    match rules.verdict(x.peer()) {
        None => Decision::Next,
        Some(RuleVerdict::Allow) => Decision::Skip,
        Some(RuleVerdict::Deny) => {
            x.log(Level::Error, format_args!("access forbidden by rule"));
            Decision::Finish(FORBIDDEN)
        }
    }
}
