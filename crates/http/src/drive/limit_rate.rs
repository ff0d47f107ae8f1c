//! How fast an exchange's reply is sent.

use conf::SizeTemplate;
use observe::Level;

use crate::exchange::Exchange;

/// Settles how fast the exchange's reply is sent, unless `$limit_rate` or a backend did.
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
