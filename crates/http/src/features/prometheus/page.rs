//! The page: family by family, each with the values at its path.
//!
//! The tree is walked once for each family, and only where its path leads. So the page is written
//! in pieces, and the values of a family stand together, as the format demands.

use std::borrow::Cow;
use std::io::Write;

use metrics::tree::{Items, StatusTree, TreeSection, TreeSource, Visitor};
use metrics::{BOUNDS, BUCKETS};

use super::families::{FAMILIES, Family, FamilyKind};
use crate::status_page::WrittenPage;

/// The format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricsFormat {
    /// Prometheus's text, version 0.0.4.
    Text,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

pub(super) struct FamiliesPage {
    tree: StatusTree,
    format: MetricsFormat,
    /// The family, the section and the item that come next.
    family: usize,
    section: usize,
    item: usize,
    /// Whether the head of the family is written.
    has_head: bool,
    is_over: bool,
}

impl FamiliesPage {
    pub fn new(tree: StatusTree, format: MetricsFormat) -> Self {
        let (family, section, item) = (0, 0, 0);
        Self { tree, format, family, section, item, has_head: false, is_over: false }
    }

    fn next_family(&mut self) {
        (self.family, self.section, self.item) = (self.family + 1, 0, 0);
        self.has_head = false;
    }

    fn end(&mut self, out: &mut Vec<u8>) -> bool {
        if std::mem::replace(&mut self.is_over, true) {
            return false;
        }
        out.extend_from_slice(b"# HELP nginx_up Whether the server answers.\n");
        out.extend_from_slice(b"# TYPE nginx_up gauge\nnginx_up 1\n");
        if self.format == MetricsFormat::OpenMetrics {
            out.extend_from_slice(b"# EOF\n");
        }
        true
    }
}

impl WrittenPage for FamiliesPage {
    fn write_piece(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(family) = FAMILIES.get(self.family) else { return self.end(out) };
        let path = FamilyPath::new(family.path);
        let mut sections = self.tree.sections.iter().enumerate().skip(self.section);
        let found = sections.find_map(|(at, section)| {
            let mut labels = Vec::new();
            Some((at, section, path.enter(section, &mut labels)?, labels))
        });
        let Some((at, section, rest, labels)) = found else {
            self.next_family();
            return true;
        };
        if at != self.section {
            (self.section, self.item) = (at, 0);
        }
        let mut values = FamilyValues {
            family,
            format: self.format,
            rest,
            at: 0,
            labels,
            out,
            has_head: self.has_head,
            histogram: None,
        };
        let goes_on = values.visit_item(section, self.item);
        self.has_head = values.has_head;
        match goes_on {
            true => self.item += 1,
            false => (self.section, self.item) = (self.section + 1, 0),
        }
        true
    }
}

/// The names of a path.
struct FamilyPath {
    parts: Vec<&'static str>,
}

impl FamilyPath {
    fn new(path: &'static str) -> Self {
        Self { parts: path.split('/').skip(1).collect() }
    }

    /// The names below a section; `None` if the path does not lead there.
    fn enter<'t>(
        &self,
        section: &'t TreeSection,
        labels: &mut Vec<(&'static str, Cow<'t, [u8]>)>,
    ) -> Option<Vec<&'static str>> {
        let (above, below) = self.parts.split_at_checked(section.path.len())?;
        for (part, name) in above.iter().zip(&section.path) {
            match label(part) {
                Some(label) => labels.push((label, Cow::Borrowed(name))),
                None if part.as_bytes() == &**name => {}
                None => return None,
            }
        }
        (!below.is_empty()).then(|| below.to_vec())
    }
}

/// The label that a part of a path stands for.
fn label(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// Writes the values of a family that a visit meets.
struct FamilyValues<'a> {
    family: &'static Family,
    format: MetricsFormat,
    /// The names below the section.
    rest: Vec<&'static str>,
    /// How many of them are open.
    at: usize,
    labels: Vec<(&'static str, Cow<'a, [u8]>)>,
    out: &'a mut Vec<u8>,
    has_head: bool,
    histogram: Option<Collected>,
}

/// A histogram that is being read.
#[derive(Default)]
struct Collected {
    counts: Vec<u64>,
    sum: f64,
    is_in_list: bool,
}

impl<'a> FamilyValues<'a> {
    /// Visits an item of a section. False: there is none.
    fn visit_item(&mut self, section: &'a TreeSection, item: usize) -> bool {
        match &section.items {
            Items::Fields(source) => {
                if item == 0 {
                    source.visit(self);
                }
                item == 0
            }
            Items::Named(items) => {
                let Some((name, source)) = items.get(item) else { return false };
                if self.begins_with(Cow::Borrowed(name)) {
                    source.visit(self);
                }
                true
            }
            Items::List(items) => {
                let Some(source) = items.get(item) else { return false };
                let name = self.element_name(&**source);
                if self.begins_with(name.unwrap_or_else(|| item.to_string().into_bytes()).into()) {
                    source.visit(self);
                }
                true
            }
        }
    }

    /// Goes into an item of that name, if the path does.
    fn begins_with(&mut self, name: Cow<'a, [u8]>) -> bool {
        let part = self.rest.remove(0);
        match label(part) {
            Some(label) => {
                self.labels.push((label, name));
                !self.rest.is_empty()
            }
            None => part.as_bytes() == &*name && !self.rest.is_empty(),
        }
    }

    /// The text that an element of a list has under the name of its label. Elements without one are
    /// numbered.
    fn element_name(&self, source: &dyn TreeSource) -> Option<Vec<u8>> {
        let label = self.rest.first().and_then(|part| label(part))?;
        let mut found = ElementName { label: label.as_bytes(), text: None };
        source.visit(&mut found);
        // What is in the configuration itself has no name of its own.
        found.text.filter(|text| !text.starts_with(b"data:"))
    }

    /// Whether a value of that name is one of the family, and the label that the name gives it.
    fn value(&self, name: &[u8]) -> Option<Option<&'static str>> {
        if self.at + 1 != self.rest.len() {
            return None;
        }
        match label(self.rest[self.at]) {
            Some(label) => Some(Some(label)),
            None => (self.rest[self.at].as_bytes() == name).then_some(None),
        }
    }

    fn head(&mut self) {
        if std::mem::replace(&mut self.has_head, true) {
            return;
        }
        let Family { name, help, kind, .. } = self.family;
        let is_total = name.ends_with("_total");
        let (name, kind) = match (kind, self.format) {
            (FamilyKind::Counter, MetricsFormat::OpenMetrics) if is_total => {
                (name.trim_end_matches("_total"), "counter")
            }
            // Names of others that OpenMetrics does not allow for counters.
            (FamilyKind::Counter, MetricsFormat::OpenMetrics) => (*name, "unknown"),
            (FamilyKind::Counter, MetricsFormat::Text) => (*name, "counter"),
            (FamilyKind::Gauge | FamilyKind::States(_), _) => (*name, "gauge"),
            (FamilyKind::Histogram, _) => (*name, "histogram"),
        };
        // Writing to a vector does not fail.
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes a line; `more`: the last label.
    fn line(&mut self, suffix: &str, more: Option<(&str, &[u8])>, value: impl std::fmt::Display) {
        self.head();
        let _ = write!(self.out, "{}{suffix}", self.family.name);
        let mut open = b'{';
        let own = self.labels.iter().map(|(label, value)| (*label, &**value));
        for (label, value) in own.chain(more) {
            self.out.push(std::mem::replace(&mut open, b','));
            let _ = write!(self.out, "{label}=\"");
            write_label(value, self.out);
            self.out.push(b'"');
        }
        if open == b',' {
            self.out.push(b'}');
        }
        let _ = writeln!(self.out, " {value}");
    }

    fn end_histogram(&mut self, histogram: &Collected) {
        if histogram.counts.len() != BUCKETS {
            return;
        }
        let mut so_far = 0;
        for (bound, count) in BOUNDS.iter().zip(&histogram.counts) {
            so_far += count;
            let bound = format!("{:?}", *bound as f64 / 1e9);
            self.line("_bucket", Some(("le", bound.as_bytes())), so_far);
        }
        let count: u64 = histogram.counts.iter().sum();
        self.line("_bucket", Some(("le", b"+Inf")), count);
        self.line("_sum", None, histogram.sum);
        self.line("_count", None, count);
    }
}

/// Looks for a text of an element.
struct ElementName {
    label: &'static [u8],
    text: Option<Vec<u8>>,
}

impl Visitor for ElementName {
    fn open(&mut self, _: &[u8]) -> bool {
        false
    }
    fn list(&mut self, _: &[u8]) -> bool {
        false
    }
    fn close(&mut self) {}
    fn number(&mut self, _: &[u8], _: u64) {}
    fn float(&mut self, _: &[u8], _: f64) {}
    fn text(&mut self, name: &[u8], value: &[u8]) {
        if name == self.label {
            self.text = Some(value.to_vec());
        }
    }
    fn flag(&mut self, _: &[u8], _: bool) {}
    fn null(&mut self, _: &[u8]) {}
}

impl Visitor for FamilyValues<'_> {
    fn open(&mut self, name: &[u8]) -> bool {
        if self.histogram.is_some() {
            return false;
        }
        if self.family.kind == FamilyKind::Histogram && self.value(name) == Some(None) {
            self.histogram = Some(Collected::default());
            return true;
        }
        let enters = self.rest.get(self.at).is_some_and(|part| part.as_bytes() == name)
            && self.at + 1 < self.rest.len();
        self.at += usize::from(enters);
        enters
    }

    fn list(&mut self, name: &[u8]) -> bool {
        match &mut self.histogram {
            Some(histogram) if name == b"counts" => {
                histogram.is_in_list = true;
                true
            }
            _ => false,
        }
    }

    fn close(&mut self) {
        match self.histogram.take() {
            Some(histogram) if histogram.is_in_list => {
                self.histogram = Some(Collected { is_in_list: false, ..histogram });
            }
            Some(histogram) => self.end_histogram(&histogram),
            None => self.at -= 1,
        }
    }

    fn number(&mut self, name: &[u8], value: u64) {
        match &mut self.histogram {
            Some(histogram) => histogram.counts.push(value),
            None if self.family.scale == 1.0 => {
                if let Some(label) = self.value(name) {
                    self.line("", label.map(|label| (label, name)), value);
                }
            }
            None => self.float(name, value as f64),
        }
    }

    fn float(&mut self, name: &[u8], value: f64) {
        if let Some(histogram) = &mut self.histogram {
            histogram.sum = value;
        } else if let Some(label) = self.value(name) {
            self.line("", label.map(|label| (label, name)), value * self.family.scale);
        }
    }

    fn text(&mut self, name: &[u8], value: &[u8]) {
        let FamilyKind::States(states) = self.family.kind else { return };
        if self.value(name) == Some(None) {
            for state in states {
                let is_in = u8::from(state.as_bytes() == value);
                self.line("", Some(("state", state.as_bytes())), is_in);
            }
        }
    }

    fn flag(&mut self, name: &[u8], value: bool) {
        self.number(name, value.into());
    }

    fn null(&mut self, _: &[u8]) {}
}

fn write_label(value: &[u8], out: &mut Vec<u8>) {
    for chunk in value.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                _ => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}
