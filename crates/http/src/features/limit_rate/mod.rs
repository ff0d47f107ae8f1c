//! How fast a reply may be sent to its client.

use std::sync::Arc;

use conf::{Result, SizeTemplate};
use observe::Level;

use crate::exchange::Exchange;
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION | IF_IN_LOCATION;

    /// Limits how many bytes per second of a response are sent. 0 is no limit.
    ///
    /// Default: 0
    ///
    /// ```nginx
    /// location /download/ {
    ///     limit_rate_after 10m;
    ///     limit_rate 500k;
    /// }
    /// ```
    limit_rate: Option<SizeTemplate>,
    /// How many bytes at the beginning of a response are not limited.
    ///
    /// Default: 0
    limit_rate_after: Option<SizeTemplate>,
}

/// `limit_rate` and `limit_rate_after` of a location.
#[derive(Clone, Debug, Default)]
pub struct LimitRate {
    rate: Option<SizeTemplate>,
    after: Option<SizeTemplate>,
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.limit_rate =
        LimitRate { rate: conf.limit_rate.clone(), after: conf.limit_rate_after.clone() };
    Ok(())
}

/// Settles how fast the exchange's reply is sent, unless `$limit_rate` or a backend did.
pub(crate) fn settle(x: &mut Exchange) -> u64 {
    if let Some(rate) = x.reply.limit_rate {
        return rate;
    }
    let generation = x.generation.clone();
    let here = &generation.location(x.location).core.limit_rate;
    let rate = size(&here.rate, x);
    x.reply.limit_rate = Some(rate);
    rate
}

/// The bytes that are not limited.
pub(crate) fn settle_after(x: &mut Exchange) -> u64 {
    let generation = x.generation.clone();
    size(&generation.location(x.location).core.limit_rate.after, x)
}

fn size(template: &Option<SizeTemplate>, x: &mut Exchange) -> u64 {
    match template {
        None => 0,
        Some(SizeTemplate::Fixed(size)) => *size,
        Some(SizeTemplate::Computed(template)) => {
            let text = x.render(template);
            conf::units::size(&text).unwrap_or_else(|| {
                let shown = text.escape_ascii();
                x.log(Level::Error, format_args!("invalid size \"{shown}\""));
                0
            })
        }
    }
}
