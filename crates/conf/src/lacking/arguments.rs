//! The arguments of directives that Weir lacks, checked as nginx checks them.
//!
//! The valid arguments of a directive follow from nginx's function that reads it (its `setter`).
//! For a setter of a single directive, only the number of arguments is checked.

use crate::known::KnownDirective;
use crate::{
    Buffers, Directive, Error, Load, Milliseconds, Number, Offset, Result, Seconds, Size,
    SizeTemplate, Template, Value, units,
};

/// Refuses the arguments that nginx refuses, in its order and words. `lines` are those of the
/// block.
pub(super) fn check(
    known: &KnownDirective,
    line: &Directive,
    lines: &[Directive],
    load: &mut Load<'_>,
) -> Result<()> {
    shape(known, line)?;
    if !is_repeatable(known)
        && lines
            .iter()
            .take_while(|other| !same(other, line))
            .any(|other| other.name.text == line.name.text)
    {
        return Err(line.refuse("is duplicate"));
    }
    values(known, line, load)
}

fn same(a: &Directive, b: &Directive) -> bool {
    std::ptr::eq(a, b)
}

fn shape(known: &KnownDirective, line: &Directive) -> Result<()> {
    let (count, block) = match known.args.strip_prefix("block(") {
        Some(count) => (count.trim_end_matches(')'), true),
        None => (known.args, false),
    };
    if line.block.is_some() != block {
        let missing = if block { "has no opening \"{\"" } else { "is not terminated by \";\"" };
        return Err(Error::at(line.end, format!("directive \"{}\" {missing}", line.name)));
    }
    let len = line.args.len();
    let fits = |count: &str| match count.strip_suffix('+') {
        Some(least) => least.parse().is_ok_and(|least: usize| len >= least),
        None => count.parse() == Ok(len),
    };
    if if count.starts_with("flag") { len == 1 } else { count.split('|').any(fits) } {
        return Ok(());
    }
    Err(line.error(format!("invalid number of arguments in \"{}\" directive", line.name)))
}

/// Directives that can be repeated in a block.
fn is_repeatable(known: &KnownDirective) -> bool {
    matches!(
        known.setter,
        "ngx_conf_set_bitmask_slot"
            | "ngx_conf_set_str_array_slot"
            | "ngx_conf_set_keyval_slot"
            | "ngx_http_set_predicate_slot"
            | "ngx_http_types_slot"
            | "ngx_http_file_cache_valid_set_slot"
            | "ngx_http_file_cache_set_slot"
            | "ngx_http_upstream_param_set_slot"
            | "ngx_http_sub_filter"
            | "ngx_http_modern_browser"
            | "ngx_http_ancient_browser"
            | "ngx_http_flv"
            | "ngx_http_mp4"
            | "ngx_http_gzip_disable"
            | "ngx_http_ssl_session_cache"
            | "ngx_http_geoip_proxy"
            | "ngx_http_image_filter"
            | "ngx_http_xslt_stylesheet"
            | "ngx_http_xslt_param"
            | "ngx_http_perl_set"
    ) || matches!(known.name, "modern_browser_value" | "ancient_browser_value")
}

fn values(known: &KnownDirective, line: &Directive, load: &mut Load<'_>) -> Result<()> {
    match known.setter {
        "ngx_conf_set_flag_slot" => bool::parse(line, load).map(drop),
        "ngx_conf_set_num_slot" => Number::parse(line, load).map(drop),
        "ngx_conf_set_size_slot" => Size::parse(line, load).map(drop),
        "ngx_conf_set_off_slot" => Offset::parse(line, load).map(drop),
        "ngx_conf_set_msec_slot" => Milliseconds::parse(line, load).map(drop),
        "ngx_conf_set_sec_slot" => Seconds::parse(line, load).map(drop),
        "ngx_conf_set_bufs_slot" => Buffers::parse(line, load).map(drop),
        "ngx_conf_set_enum_slot" => words(known, line),
        "ngx_conf_set_bitmask_slot" => {
            words(known, line)?;
            repeated_words(line, load);
            Ok(())
        }
        "ngx_http_set_predicate_slot"
        | "ngx_http_set_complex_value_slot"
        | "ngx_http_set_complex_value_zero_slot" => unused(load, |load| {
            line.args.iter().try_for_each(|word| Template::compile(word, line, load).map(drop))
        }),
        "ngx_http_set_complex_value_size_slot" => {
            unused(load, |load| SizeTemplate::parse(line, load).map(drop))
        }
        "ngx_http_file_cache_valid_set_slot" => cache_valid(line),
        _ => Ok(()),
    }
}

/// Checks the words against the list in the table.
fn words(known: &KnownDirective, line: &Directive) -> Result<()> {
    let is_known = |text: &[u8]| {
        known.values.split(' ').any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
    };
    match line.args.iter().find(|word| !known.values.is_empty() && !is_known(&word.text)) {
        Some(word) => Err(line.error_at(word, format!("invalid value \"{word}\""))),
        None => Ok(()),
    }
}

fn repeated_words(line: &Directive, load: &mut Load<'_>) {
    for (at, word) in line.args.iter().enumerate() {
        if line.args[..at].iter().any(|other| other.text.eq_ignore_ascii_case(&word.text)) {
            load.warn(line.error_at(word, format!("duplicate value \"{word}\"")));
        }
    }
}

/// Reads strings whose variables do not count as uses, because their values are never needed.
fn unused(load: &mut Load<'_>, read: impl FnOnce(&mut Load<'_>) -> Result<()>) -> Result<()> {
    let names = std::mem::take(&mut load.names);
    let result = read(load);
    load.names = names;
    result
}

/// Statuses and the time for which replies with them are kept.
fn cache_valid(line: &Directive) -> Result<()> {
    let Some((time, statuses)) = line.args.split_last() else { return Ok(()) };
    if units::seconds(&time.text).is_none() {
        return Err(line.error_at(time, format!("invalid time value \"{time}\"")));
    }
    let is_status = |text: &[u8]| units::number(text).is_some_and(|n| (100..=599).contains(&n));
    match statuses.iter().find(|word| &*word.text != b"any" && !is_status(&word.text)) {
        Some(word) => Err(line.error_at(word, format!("invalid status \"{word}\""))),
        None => Ok(()),
    }
}
