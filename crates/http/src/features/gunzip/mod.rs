//! `gunzip`: expands compressed replies for clients that do not accept gzip.

pub(crate) mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Buffers, Result};

use crate::exchange::{Exchange, FieldName, Filtered};
use crate::features::gzip_clients;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether responses with `Content-Encoding: gzip` are decompressed for clients that do not
    /// accept gzip.
    ///
    /// ```nginx
    /// gunzip on;
    /// ```
    gunzip: bool = "off",
    /// Limits the memory for decompressed data that has not been sent yet: NUMBER times SIZE.
    ///
    /// Differs: a response has one buffer of at most 16 KB at a time.
    gunzip_buffers: Buffers = "32 4k",
}

/// Adds the filter if `gunzip` is on; it applies to subrequests as well.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if !conf.gunzip {
        return Ok(());
    }
    let Buffers { number, size } = conf.gunzip_buffers;
    let piece_max = usize::try_from(number.saturating_mul(size)).unwrap_or(usize::MAX);
    location.filter(move |x| {
        if is_gzip(x) {
            x.varies = true;
            if !gzip_clients::allows(x) {
                expand(piece_max, x);
            }
        }
        Filtered::Pass
    });
    Ok(())
}

fn is_gzip(x: &Exchange) -> bool {
    let coding = x.reply.fields.known(FieldName::ContentEncoding);
    coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"))
}

fn expand(piece_max: usize, x: &mut Exchange) {
    x.reply.forget_bytes_of_body();
    x.reply.fields.remove_known(FieldName::ContentEncoding);
    if !x.request.header_only {
        x.reply.filter_body(stream::Gunzip::new(piece_max));
    }
}
