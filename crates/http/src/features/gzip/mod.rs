//! `gzip`: compresses replies.
//!
//! A body that is complete, or ends before much of it was gathered, is compressed as a whole by
//! libdeflate ([`whole`]), which needs the least CPU, and no memory while the client reads. Other
//! bodies are compressed as streams by zlib-rs ([`stream`]), with memory that the worker lends
//! ([`pool`]). [`levels`] maps `gzip_comp_level` to their levels.

mod levels;
mod pool;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

use std::io::Write;
use std::sync::Arc;

use conf::{Bounded, Buffers, Directive, Load, Result, Size, Value, units};

use crate::exchange::{Exchange, FieldName, Filtered};
use crate::features::gzip_clients;
use crate::mime_types::MimeTypes;
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use settings::{GzipSettings, Ratio, WINDOW_BITS_MAX};
use stream::Gzip;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether responses are compressed for clients that accept gzip.
    ///
    /// Differs: the compressed bytes differ from nginx's, because another library produces them;
    /// they are at most 2 % more (docs/gzip.md).
    ///
    /// ```nginx
    /// gzip on;
    /// ```
    gzip + IF_IN_LOCATION: bool = "off",
    /// Limits the memory for compressed data that has not been sent yet: NUMBER times SIZE.
    ///
    /// Differs: a response has one buffer of at most 16 KB at a time.
    ///
    /// ```nginx
    /// gzip_buffers 16 8k;
    /// ```
    gzip_buffers: Buffers = "32 4k",
    /// The MIME types, besides `text/html`, of responses that are compressed. `*` means all.
    ///
    /// Syntax: TYPE...
    ///
    /// ```nginx
    /// gzip_types text/css application/javascript application/json;
    /// ```
    gzip_types: Option<MimeTypes>,
    /// How thoroughly responses are compressed: 1 uses the least CPU time, 9 gives the smallest
    /// size.
    ///
    /// ```nginx
    /// gzip_comp_level 5;
    /// ```
    gzip_comp_level: GzipLevel = "1",
    /// The window of the compressor: how far back it looks for repetitions.
    ///
    /// Syntax: 512 | 1k | 2k | 4k | 8k | 16k | 32k
    gzip_window: Window = "32k",
    /// The memory of the compressor for the symbols of a block.
    ///
    /// Syntax: 512 | 1k | 2k | 4k | 8k | 16k | 32k | 64k | 128k
    ///
    /// Differs: the hash table, to which this also applies in nginx, always has 128 KB.
    gzip_hash: Hash = "64k",
    /// How much of a response is collected before compression starts.
    ///
    /// Differs: responses of unknown length are collected up to 64 KB in any case, others up to
    /// 256 KB.
    postpone_gzipping: Size = "0",
    /// Whether compressed data is sent as it leaves the compressor instead of filling a buffer.
    gzip_no_buffer: bool = "off",
    /// Responses with a shorter `Content-Length` are not compressed.
    ///
    /// ```nginx
    /// gzip_min_length 1000;
    /// ```
    gzip_min_length: Size = "20",
}

/// `gzip_comp_level`
type GzipLevel = Bounded<1, 9>;

/// `gzip_window`, as the number of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window(u8);

/// `gzip_hash`, as zlib's level of memory use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash(u8);

const WINDOW_BITS_MIN: u8 = 9;
const MEM_LEVEL_MAX: u8 = 9;

impl Value for Window {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let must = "must be 512, 1k, 2k, 4k, 8k, 16k, or 32k";
        let bits =
            exponent(from)?.filter(|bits| (WINDOW_BITS_MIN..=WINDOW_BITS_MAX).contains(bits));
        bits.map(Self).ok_or_else(|| from.refuse(must))
    }
}

impl Value for Hash {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let must = "must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k";
        // 512 bytes are level 1.
        let level = exponent(from)?.and_then(|bits| bits.checked_sub(8));
        let level = level.filter(|level| (1..=MEM_LEVEL_MAX).contains(level));
        level.map(Self).ok_or_else(|| from.refuse(must))
    }
}

/// The exponent of a size that is a power of two.
fn exponent(from: &Directive) -> Result<Option<u8>> {
    let size = units::size(&from.arg(0).text);
    let size = size.ok_or_else(|| from.refuse("invalid value").marked(from.arg(0).span))?;
    Ok(size.is_power_of_two().then(|| size.trailing_zeros() as u8))
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_gzip_filter_module",
    &[BuiltIn::fresh(
        "gzip_ratio",
        "How many times larger the reply was before it was compressed, with two digits.",
        |x, out| {
            x.states
                .find::<Ratio>()
                .is_some_and(|ratio| write_ratio(ratio.before, ratio.after, out))
        },
    )],
);

/// Writes the ratio with two decimals. Returns false if nothing was compressed.
fn write_ratio(before: u64, after: u64, out: &mut Vec<u8>) -> bool {
    if after == 0 {
        return false;
    }
    // nginx rounds by the third digit alone.
    let thousandths = u128::from(before) * 1000 / u128::from(after);
    let hundredths = thousandths / 10 + u128::from(thousandths % 10 > 4);
    write!(out, "{}.{:02}", hundredths / 100, hundredths % 100).is_ok()
}

/// Adds the filter if `gzip` is on.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if !conf.gzip {
        return Ok(());
    }
    let in_memory = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let settings = Arc::new(GzipSettings {
        level: conf.gzip_comp_level.0 as u8,
        window_bits: conf.gzip_window.0,
        mem_level: conf.gzip_hash.0,
        piece_max: in_memory(conf.gzip_buffers.number.saturating_mul(conf.gzip_buffers.size)),
        postpone: in_memory(conf.postpone_gzipping.0),
        no_buffer: conf.gzip_no_buffer,
    });
    let conf = conf.clone();
    location.main_filter(move |x| {
        if suits(&conf, x) {
            x.varies = true;
            if gzip_clients::allows(x) {
                compress(&settings, x);
            }
        }
        Filtered::Pass
    });
    Ok(())
}

/// The types; the default is `text/html` only.
fn types(conf: &Conf) -> &MimeTypes {
    const HTML: &MimeTypes = &MimeTypes::html();
    conf.gzip_types.as_ref().unwrap_or(HTML)
}

/// Whether the reply may be compressed.
fn suits(conf: &Conf, x: &Exchange) -> bool {
    let reply = &x.reply;
    let is_encoded = || {
        let coding = reply.fields.known(FieldName::ContentEncoding);
        coding.is_some_and(|coding| !coding.is_empty())
    };
    matches!(reply.status, 200 | 403 | 404)
        && reply.content_length.is_none_or(|length| length >= conf.gzip_min_length.0)
        && types(conf).has(&reply.content_type)
        && !is_encoded()
}

fn compress(settings: &Arc<GzipSettings>, x: &mut Exchange) {
    let length = x.reply.content_length;
    x.reply.forget_bytes_of_body();
    x.reply.fields.append(b"Content-Encoding", b"gzip");
    if x.request.header_only {
        return;
    }
    // Events must not be delayed, and a few more bytes do not matter.
    let flushes_at_pauses = x.reply.content_type.eq_ignore_ascii_case(b"text/event-stream");
    x.reply.filter_body(Gzip::new(settings.clone(), length, flushes_at_pauses));
}
