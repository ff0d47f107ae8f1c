//! `$fastcgi_script_name` and `$fastcgi_path_info`: the two parts of the path.

use std::ops::Range;
use std::sync::Arc;

use conf::{Directive, Load, Result, Text, Value};

use crate::exchange::Exchange;
use crate::regex::Pattern;
use crate::variables::{BuiltIn, VariableTable};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_fastcgi_module",
    &[
        BuiltIn::fresh(
            "fastcgi_script_name",
            "The path of the script: `$uri`, with the file of `fastcgi_index` behind a final \
             slash, or the first group of `fastcgi_split_path_info`.",
            |x, out| {
                let generation = x.generation.clone();
                let names: Option<&ScriptNames> = generation.location(x.location).core.own.find();
                let Some((script, _)) = divide(names, x) else { return false };
                let script = &x.request.uri[script];
                out.extend_from_slice(script);
                if script.last() == Some(&b'/') {
                    out.extend_from_slice(names.map_or(b"", |names| &names.index));
                }
                true
            },
        ),
        BuiltIn::fresh(
            "fastcgi_path_info",
            "What follows the script's path: the second group of `fastcgi_split_path_info`.",
            |x, out| {
                let generation = x.generation.clone();
                let names: Option<&ScriptNames> = generation.location(x.location).core.own.find();
                let Some((_, info)) = divide(names, x) else { return false };
                out.extend_from_slice(&x.request.uri[info]);
                true
            },
        ),
    ],
);

/// A regular expression with a group for the script and one for what follows.
#[derive(Clone)]
pub struct SplitPathInfo(Arc<Pattern>);

/// The settings of a location for scripts.
pub(super) struct ScriptNames {
    split: Option<SplitPathInfo>,
    index: Box<[u8]>,
}

impl Value for SplitPathInfo {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let pattern = Pattern::compile_alone(&word.text, false, word, from)?;
        match pattern.groups() {
            2 => Ok(Self(Arc::new(pattern))),
            _ => Err(from.error_at(word, format!("pattern \"{word}\" must have 2 captures"))),
        }
    }
    /// The last line wins.
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        *self = Self::parse(from, load)?;
        Ok(())
    }
}

impl ScriptNames {
    /// `None` without settings: the script is the whole path.
    pub(super) fn new(split: Option<&SplitPathInfo>, index: Option<&Text>) -> Option<Self> {
        let index = index.map(|text| text.0.clone()).unwrap_or_default();
        let is_set = split.is_some() || !index.is_empty();
        is_set.then(|| Self { split: split.cloned(), index })
    }
}

/// The ranges of the path with the script and with the rest. `None`, after logging why, if the
/// match exceeded its limits.
fn divide(names: Option<&ScriptNames>, x: &Exchange) -> Option<(Range<usize>, Range<usize>)> {
    let uri = &x.request.uri;
    let groups = match names.and_then(|names| names.split.as_ref()) {
        None => None,
        Some(SplitPathInfo(pattern)) => pattern.groups_in(uri, x).ok()?,
    };
    Some(match groups {
        Some([script, info]) => (script, info),
        None => (0..uri.len(), 0..0),
    })
}
