//! `valid_referers` and `$invalid_referer`: whether the `Referer` of a request is valid.
//!
//! The host of `Referer` is compared, without port, and the beginning of the path if a line has
//! one. Regular expressions are matched against the text after `http://`.

mod lines;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Number, Result};
use wire::Known;

use crate::exchange::Exchange;
use crate::regex::MatchError;
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use lines::{RefererLines, Valid};

conf::directives! {
    in SERVER | LOCATION;

    /// The values of the field `Referer` that leave `$invalid_referer` empty: `none` (no such
    /// field), `blocked` (its value was removed by a firewall), `server_names`, names, and regular
    /// expressions after `~`.
    ///
    /// Syntax: none | blocked | server_names | NAME | ~REGEX ...
    ///
    /// ```nginx
    /// location /images/ {
    ///     valid_referers none blocked server_names *.example.com;
    ///     if ($invalid_referer) {
    ///         return 403;
    ///     }
    /// }
    /// ```
    valid_referers: Option<RefererLines>,
    /// The largest size of nginx's table of referers.
    ///
    /// Differs: no effect; the table is sized by its contents.
    referer_hash_max_size: Number = "2048",
    /// The size of a bucket in nginx's table of referers.
    ///
    /// Differs: no effect; the table is sized by its contents.
    referer_hash_bucket_size: Number = "64",
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_referer_module",
    &[BuiltIn::cached(
        "invalid_referer",
        "Empty where `valid_referers` lists the request's `Referer`, otherwise `1`.",
        invalid_referer,
    )
    .changeable()],
);

/// Passes the table to the core, where the variable finds it.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if let Some(lines) = &conf.valid_referers
        && let Some(valid) = lines.with_server_names(&location.server_names)?
    {
        location.core.own.add(valid);
    }
    Ok(())
}

/// `1`, or an empty value.
fn invalid_referer(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    let Some(valid) = x.location().core.own.find::<Arc<Valid>>().cloned() else { return true };
    match is_valid(&valid, x) {
        Ok(true) => true,
        Ok(false) => {
            out.push(b'1');
            true
        }
        Err(MatchError) => false,
    }
}

/// The longest host to look up.
const HOST_LENGTH_MAX: usize = 256;
/// As in nginx, a shorter text is not a URL.
const LENGTH_MIN: usize = b"http://i.ru".len();

fn is_valid(valid: &Valid, x: &Exchange) -> Result<bool, MatchError> {
    let Some(referer) = x.request.field(Known::Referer) else { return Ok(valid.none) };
    let Some(rest) = after_scheme(referer) else { return Ok(valid.blocked) };
    let host_length = memchr::memchr2(b'/', b':', rest).unwrap_or(rest.len());
    if host_length > HOST_LENGTH_MAX {
        return Ok(false);
    }
    let host = rest[..host_length].to_ascii_lowercase();
    if let Some(path) = valid.names.find(&host) {
        let start = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        return Ok(rest[start..].starts_with(path));
    }
    for pattern in &valid.server_patterns {
        if pattern.is_match(&host, x)? {
            return Ok(true);
        }
    }
    for pattern in valid.patterns.iter() {
        if pattern.is_match(rest, x)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn after_scheme(referer: &[u8]) -> Option<&[u8]> {
    if referer.len() < LENGTH_MIN {
        return None;
    }
    [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| {
        let (start, rest) = referer.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}
