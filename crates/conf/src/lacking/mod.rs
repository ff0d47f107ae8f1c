//! Unsupported directives: the purpose of each, and Weir's behaviour without it.
//!
//! `lacking.tsv` has nginx's own directives that Weir may lack, `third_party.tsv` those of modules
//! that are not part of nginx. In both, the first row that fits a name applies, and a `*` ends a
//! pattern. A row has the directive's class, the values that make it inactive, and the directive
//! that it belongs to (column `of`): a setting of `fastcgi_pass` has no effect without
//! `fastcgi_pass`, and with `fastcgi_pass`, that directive is the one to report. So a directive
//! with an `of` is never an error itself. `modules.tsv` has the file names of modules that are not
//! part of nginx, for `load_module`.
//!
//! Deliberately absent: a list of Weir's directives. Only names that no feature accepts are looked
//! up here.

mod arguments;
mod load;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::LazyLock;

pub use load::{EnclosingBlock, LinePart};

use crate::Span;
use crate::known::KnownDirective;

/// The purpose of a directive, as far as it matters when it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It decides about access.
    Protection,
    /// It answers all requests of its location.
    Handler,
    /// It turns stored or received content into the content for clients.
    Source,
    /// It opens a block of its own with servers in it.
    Block,
    /// It sets variables.
    Variable,
    /// It changes replies to clients or requests to backends.
    Behavior,
    /// It saves time, memory or bandwidth, and changes nothing else.
    Performance,
    /// It counts, traces or logs.
    Metadata,
    /// It has no effect by itself.
    Nothing,
}

/// The consequence of a missing directive, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// Someone could see or do something that is forbidden.
    Security,
    /// Some content is not served.
    Content,
    /// Clients, backends or logs get different data.
    Behavior,
    /// More resources are used.
    Performance,
    Nothing,
}

impl Class {
    fn of(word: &str) -> Option<Self> {
        let all = [
            (Self::Protection, "protection"),
            (Self::Handler, "handler"),
            (Self::Source, "source"),
            (Self::Block, "block"),
            (Self::Variable, "variable"),
            (Self::Behavior, "behavior"),
            (Self::Performance, "performance"),
            (Self::Metadata, "metadata"),
            (Self::Nothing, "nothing"),
        ];
        all.into_iter().find(|(_, name)| *name == word).map(|(class, _)| class)
    }

    pub fn consequence(self) -> Consequence {
        match self {
            Self::Protection => Consequence::Security,
            Self::Handler | Self::Source | Self::Block => Consequence::Content,
            Self::Variable | Self::Behavior | Self::Metadata => Consequence::Behavior,
            Self::Performance => Consequence::Performance,
            Self::Nothing => Consequence::Nothing,
        }
    }

    /// Whether requests are refused in its place.
    fn is_enforced(self) -> bool {
        matches!(self, Self::Protection | Self::Handler | Self::Source)
    }

    /// What a lenient Weir does in its place.
    pub fn instead(self) -> &'static str {
        match self {
            Self::Protection => "requests it would protect are answered with 403",
            Self::Handler => "requests to its location are answered with 503",
            Self::Source => "requests it would apply to are answered with 503",
            Self::Block => "its block is not served and none of its ports is opened",
            Self::Variable => {
                "ignored, but Weir refuses to start if a variable that it sets is used"
            }
            Self::Behavior | Self::Performance | Self::Metadata | Self::Nothing => "ignored",
        }
    }
}

/// A part of a configuration that this version does not support.
#[derive(Clone, Debug)]
pub struct Lack {
    /// The directive, or the part of it that is not supported: `listen ... ssl`.
    pub what: Box<str>,
    /// The module that has it; empty if unknown.
    pub module: &'static str,
    pub class: Class,
    /// Whether it has an effect: it has no value such as `off`, and is not a setting of another
    /// directive.
    pub active: bool,
    /// The directive that it configures, such as `proxy_cache`; empty if there is none.
    pub of: &'static str,
    /// What a lenient Weir does in its place.
    pub instead: &'static str,
    /// The place of the directive.
    pub at: Span,
}

#[derive(Clone, Copy, Debug)]
pub struct LackingRow {
    /// The module, or a pattern.
    pub module: &'static str,
    /// The directive, or a pattern.
    pub name: &'static str,
    pub class: Class,
    /// The values that make it inactive.
    inert: &'static str,
    /// The directive, value of a directive, or variable that activates it; empty if it is active by
    /// itself.
    pub of: &'static str,
    /// The variables that it defines: numbers of arguments, `block`, or names with their `$`.
    defines: &'static str,
}

impl LackingRow {
    /// Whether a directive with these arguments is inactive.
    fn is_inert(&self, args: &[crate::Word]) -> bool {
        let value = |word: &str| match args {
            [only] => only.text.eq_ignore_ascii_case(word.as_bytes()),
            _ => false,
        };
        self.inert.split(' ').any(|word| !word.is_empty() && value(word))
    }

    /// The length of the longest pattern for this variable in the row, if it has one.
    fn variable(&self, name: &str) -> Option<usize> {
        let names = self.defines.split(',').filter_map(|word| word.strip_prefix('$'));
        names.filter(|pattern| fits(pattern, name)).map(str::len).max()
    }
}

/// The row of an unsupported directive of nginx.
pub fn of(known: &KnownDirective) -> Option<&'static LackingRow> {
    OWN.iter().find(|row| fits(row.module, known.module) && fits(row.name, known.name))
}

/// The row of a third-party directive.
pub fn third_party(name: &[u8]) -> Option<&'static LackingRow> {
    let name = std::str::from_utf8(name).ok()?;
    THIRD_PARTY.iter().find(|row| fits(row.name, name))
}

/// The row of the module that defines a variable of that name.
pub fn of_variable(name: &[u8]) -> Option<&'static LackingRow> {
    let name = std::str::from_utf8(name).ok()?;
    let rows = OWN.iter().chain(THIRD_PARTY.iter());
    let rows = rows.filter_map(|row| Some((row.variable(name)?, row)));
    rows.min_by_key(|(length, _)| Reverse(*length)).map(|(_, row)| row)
}

/// Whether a module that is not part of nginx has this file name: `ngx_http_lua_module`. The
/// directives of such a module have rows here.
pub fn is_module_file(name: &str) -> bool {
    module_files().any(|(file, _)| file == name)
}

/// The file names, each with its module's name in `third_party.tsv`.
fn module_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../../modules.tsv").lines().skip(1);
    lines.map(|line| line.split_once('\t').expect("the table has two columns"))
}

static OWN: LazyLock<Vec<LackingRow>> = LazyLock::new(|| rows(include_str!("../../lacking.tsv")));
static THIRD_PARTY: LazyLock<Vec<LackingRow>> =
    LazyLock::new(|| rows(include_str!("../../third_party.tsv")));

fn rows(table: &'static str) -> Vec<LackingRow> {
    table.lines().skip(1).map(row).collect()
}

fn row(line: &'static str) -> LackingRow {
    let mut columns = line.split('\t');
    let mut column = || columns.next().expect("the tables have six columns");
    let (module, name, class, inert) = (column(), column(), column(), column());
    let class = Class::of(class).expect("the table's classes are Weir's");
    LackingRow { module, name, class, inert, of: column(), defines: column() }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}
