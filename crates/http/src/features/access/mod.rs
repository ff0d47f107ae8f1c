//! `allow` and `deny`: access by the client's address.
//!
//! The first rule that matches the client decides. Without a match, access is neither granted nor
//! refused. A client of a Unix socket matches only `unix:`.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::Level;
use session::access::{AccessRules, RuleVerdict};

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;

conf::directives! {
    also {
        /// Allows clients by address. The first `allow` or `deny` that matches decides; if none
        /// does, access is allowed.
        ///
        /// Syntax: ADDRESS | CIDR | unix: | all
        ///
        /// ```nginx
        /// location /admin/ {
        ///     allow 10.0.0.0/8;
        ///     allow 2001:db8::/32;
        ///     deny all;
        /// }
        /// ```
        allow(1..=1) in MAIN | SERVER | LOCATION | LIMIT_EXCEPT => rules;
        /// Denies clients by address: they are answered with 403. The first `allow` or `deny` that
        /// matches decides.
        ///
        /// Syntax: ADDRESS | CIDR | unix: | all
        ///
        /// ```nginx
        /// deny 192.0.2.7;
        /// ```
        deny(1..=1) in MAIN | SERVER | LOCATION | LIMIT_EXCEPT => rules;
    }
    slots {
        /// The rules, in order.
        rules: Option<AccessRules>,
    }

    in MAIN;
}

/// Installs the check if there are rules.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.rules.is_some() {
        let conf = conf.clone();
        location.access(move |x| conf.rules.as_ref().map_or(Flow::Next, |rules| check(rules, x)));
    }
    Ok(())
}

fn check(rules: &AccessRules, x: &mut Exchange) -> Flow {
    match rules.verdict(x.client.peer.map(|peer| peer.ip())) {
        None => Flow::Next,
        Some(RuleVerdict::Allow) => Flow::Skip,
        Some(RuleVerdict::Deny) => {
            // With `satisfy any`, another check may grant access; the refusal is logged at the end.
            if !x.location().core.satisfy_any {
                x.log(Level::Error, format_args!("access forbidden by rule"));
            }
            Flow::Status(403)
        }
    }
}
