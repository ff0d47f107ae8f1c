//! The rate at which an exchange's reply is sent.

use conf::SizeTemplate;
use observe::Level;

use crate::exchange::Exchange;

/// Determines the rate of the exchange's reply, unless `$limit_rate` or a backend has set it.
pub(crate) fn settle(x: &mut Exchange) -> u64 {
    if let Some(rate) = x.reply.limit_rate {
        return rate;
    }
    let rate = match x.location().core.limit_rate.rate {
        None => 0,
        Some(SizeTemplate::Fixed(rate)) => rate,
        Some(SizeTemplate::Computed(_)) => {
            let generation = x.generation.clone();
            size(&generation.location(x.location).core.limit_rate.rate, x)
        }
    };
    x.reply.limit_rate = Some(rate);
    rate
}

/// The number of bytes that are sent without a limit first (`limit_rate_after`).
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
