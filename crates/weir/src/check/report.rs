//! The findings in order, and as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use conf::lacking::{Consequence, Lack};
use conf::{Error, ErrorLevel, SharedCause, Sources, Span};
use serde::{Serialize, Serializer};

use crate::load::Examined;
use crate::name::name;

/// Something in a configuration that this version does not support.
pub struct UnsupportedItem<'a> {
    pub file: String,
    /// Errors that nginx would report too.
    pub errors: Vec<&'a Error>,
    /// Unsupported features, most severe first, then in the order of the configuration.
    pub findings: Vec<Finding>,
    /// Settings of something that is not supported or not used, with the number of their lines.
    pub settings: BTreeMap<&'a str, usize>,
    pub warnings: Vec<&'a Error>,
    /// Notices that may need no change.
    pub remarks: Vec<&'a Error>,
    pub sources: &'a Sources,
}

/// Something that is not supported.
#[derive(Serialize)]
pub struct Finding {
    #[serde(serialize_with = "consequence")]
    pub consequence: Consequence,
    /// The directive, a directive with its value, or a variable.
    #[serde(rename = "directive")]
    pub what: String,
    /// The module that has it, if known.
    pub module: Option<&'static str>,
    /// What a lenient Weir does instead.
    pub instead: String,
    /// Whether a lenient Weir starts all the same.
    pub starts: bool,
    #[serde(flatten, serialize_with = "place")]
    pub place: Option<ReportPosition>,
    #[serde(skip)]
    at: Option<Span>,
}

pub struct ReportPosition {
    pub file: String,
    pub line: u32,
}

impl ReportPosition {
    pub fn of(at: Option<Span>, sources: &Sources) -> Option<Self> {
        let at = at?;
        let file = sources.source(at.file)?.name().into_owned();
        Some(Self { file, line: at.line })
    }
}

/// The fields `file` and `line`, which are null without a place.
pub fn place<S: Serializer>(place: &Option<ReportPosition>, out: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct PlaceRecord<'r> {
        file: Option<&'r str>,
        line: Option<u32>,
    }
    let place = place.as_ref();
    let file = place.map(|place| &*place.file);
    PlaceRecord { file, line: place.map(|place| place.line) }.serialize(out)
}

const REFUSES: &str = "Weir refuses to start, even with --lenient";

impl Finding {
    fn of_lack(lack: &Lack, sources: &Sources) -> Self {
        Self {
            consequence: lack.class.consequence(),
            what: lack.what.to_string(),
            module: Some(lack.module).filter(|module| !module.is_empty()),
            instead: lack.instead.to_owned(),
            starts: true,
            place: ReportPosition::of(Some(lack.at), sources),
            at: Some(lack.at),
        }
    }

    /// An error that says what this version does not have.
    fn of_error(error: &Error, sources: &Sources) -> Option<Self> {
        error.lacks?;
        let at = error.mark.or(error.span);
        let help = error.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
        Some(Self {
            // Nothing at all is served.
            consequence: Consequence::Content,
            what: at
                .map_or(String::new(), |at| String::from_utf8_lossy(sources.raw(at)).into_owned()),
            module: None,
            instead: format!("{REFUSES} ({}{help})", error.message),
            starts: false,
            place: ReportPosition::of(at, sources),
            at,
        })
    }

    fn order(&self) -> (Consequence, Option<(u32, u32)>) {
        (self.consequence, self.at.map(order))
    }
}

/// The order of reading, as far as files do not include each other in their middle.
fn order(at: Span) -> (u32, u32) {
    (at.file.0, at.start)
}

impl<'a> UnsupportedItem<'a> {
    pub fn new(file: &[u8], examined: &'a Examined) -> Self {
        let Examined { errors, warnings, lacks, sources } = examined;
        let mut findings: Vec<_> = lacks
            .iter()
            .filter(|lack| lack.active)
            .map(|lack| Finding::of_lack(lack, sources))
            .chain(errors.iter().filter_map(|error| Finding::of_error(error, sources)))
            .collect();
        findings.sort_by_key(Finding::order);
        let mut settings = BTreeMap::new();
        for lack in lacks.iter().filter(|lack| !lack.of.is_empty()) {
            *settings.entry(&*lack.what).or_default() += 1;
        }
        let mut errors: Vec<_> = errors.iter().filter(|error| error.lacks.is_none()).collect();
        errors.sort_by_key(|error| error.span.map(order));
        let is_remark = |said: &&Error| said.level == ErrorLevel::Notice;
        let (remarks, warnings) = warnings.iter().partition(is_remark);
        Self {
            file: String::from_utf8_lossy(file).into_owned(),
            errors,
            findings,
            settings,
            warnings,
            remarks,
            sources,
        }
    }

    /// 0: all is supported; 1: the configuration is not valid; 2: something that is not supported
    /// concerns security or content; 3: only behavior or performance.
    pub fn exit_code(&self) -> u8 {
        let worst = self.findings.first().map(|finding| finding.consequence);
        match worst {
            _ if !self.errors.is_empty() => 1,
            Some(Consequence::Security | Consequence::Content) => 2,
            Some(_) => 3,
            None => 0,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let each = |error: &&'a Error| SharedCause { first: error, count: 1 };
        self.messages(&mut out, "Not valid", self.errors.iter().map(each).collect());
        let warnings = SharedCause::group(self.warnings.iter().copied());
        self.messages(&mut out, "Warnings", warnings);
        self.remarks(&mut out);
        for (title, consequence) in GROUPS {
            let of_group = |finding: &&Finding| finding.consequence == consequence;
            group(&mut out, title, self.findings.iter().filter(of_group));
        }
        if !self.settings.is_empty() {
            let each = self.settings.iter().map(|(what, count)| match count {
                1 => (*what).to_owned(),
                _ => format!("{what} ({count} lines)"),
            });
            let list = each.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "Settings of unsupported or unused directives: {list}\n");
        }
        out.push_str(&self.summary());
        out
    }

    fn messages(&self, out: &mut String, title: &str, messages: Vec<SharedCause<'_>>) {
        if messages.is_empty() {
            return;
        }
        let _ = writeln!(out, "{title}:");
        for cause in messages {
            let excerpt = cause.diagnostic(self.sources).excerpt();
            let _ = write!(out, "  {}\n{excerpt}", cause.headline(self.sources));
        }
        out.push('\n');
    }

    /// Without an excerpt: there is nothing to mend, or not here.
    fn remarks(&self, out: &mut String) {
        if self.remarks.is_empty() {
            return;
        }
        out.push_str("Remarks:\n");
        for cause in SharedCause::group(self.remarks.iter().copied()) {
            let _ = writeln!(out, "  {}", cause.headline(self.sources));
            if let Some(help) = &cause.first.help {
                let _ = writeln!(out, "      {help}");
            }
        }
        out.push('\n');
    }

    fn summary(&self) -> String {
        let (file, version) = (&self.file, name().version);
        match (self.exit_code(), self.findings.len()) {
            (1, _) => format!("{file}: not valid\n"),
            (_, 0) => format!("{file}: weir {version} supports everything in it\n"),
            (_, count) => {
                let starts = self.findings.iter().all(|finding| finding.starts);
                let lenient = match starts {
                    true => "with --lenient or \"lenient on;\" it starts and does the above",
                    false => "see above",
                };
                format!(
                    "{file}: {count} unsupported; weir {version} refuses to start with this file; \
                     {lenient}\n"
                )
            }
        }
    }
}

const GROUPS: [(&str, Consequence); 4] = [
    ("Security", Consequence::Security),
    ("Content", Consequence::Content),
    ("Behavior", Consequence::Behavior),
    ("Performance", Consequence::Performance),
];

fn consequence<S: Serializer>(consequence: &Consequence, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(match consequence {
        Consequence::Security => "security",
        Consequence::Content => "content",
        Consequence::Behavior => "behavior",
        Consequence::Performance => "performance",
        Consequence::Nothing => "nothing",
    })
}

fn group<'f>(out: &mut String, title: &str, findings: impl Iterator<Item = &'f Finding>) {
    let mut findings = findings.peekable();
    if findings.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for finding in findings {
        let place = finding.place.as_ref();
        let place = place
            .map(|ReportPosition { file, line }| format!("{file}:{line}: "))
            .unwrap_or_default();
        let module = finding.module.map(|module| format!(", of {module}")).unwrap_or_default();
        let Finding { what, instead, .. } = finding;
        let _ = writeln!(out, "  {place}{what}{module}\n      {instead}");
    }
    out.push('\n');
}
