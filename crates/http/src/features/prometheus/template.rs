//! `prometheus_template`: metrics that the configuration names, made of the values of Angie's tree.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use ::session::regex::Pattern;
use ::session::status::shapes::{Shape, angie};
use conf::{Directive, Load, Result, Template, Word};
use metrics::tree::{Items, StatusTree, Visitor};

use crate::exchange::{Exchange, FeatureState, Flow};
use crate::status_page;

/// The metrics of a template.
pub(super) struct PrometheusTemplate {
    name: Box<[u8]>,
    metrics: Vec<TemplateMetric>,
}

struct TemplateMetric {
    /// The name with its labels.
    name: Template,
    /// The name without labels, for its head.
    bare: Box<[u8]>,
    value: Template,
    path: MetricPath,
    kind: Box<[u8]>,
    help: Box<[u8]>,
}

/// Which values of the tree a metric shows.
enum MetricPath {
    /// None: it is made of variables.
    None,
    Exact(Box<[u8]>),
    Pattern(Pattern<Exchange>),
}

/// The value that `$p8s_value` gives.
#[derive(Default)]
pub(super) struct TemplateValue(Option<Vec<u8>>);

impl TemplateValue {
    pub fn get(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}

impl FeatureState for TemplateValue {
    fn clear(&mut self) {
        self.0 = None;
    }
}

/// The templates by name.
#[derive(Default)]
struct Templates(HashMap<Box<[u8]>, Arc<PrometheusTemplate>>);

/// Reads a template.
pub(super) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = from.arg(0).text.clone();
    let lines = from.block.iter().flatten();
    let metrics = lines.map(|line| TemplateMetric::parse(line, load)).collect::<Result<_>>()?;
    let template = PrometheusTemplate { name: name.clone(), metrics };
    match load.own.of::<Templates>().0.insert(name, Arc::new(template)) {
        None => Ok(()),
        Some(_) => {
            let message = format!("prometheus template \"{}\" is already defined", from.arg(0));
            Err(from.error(message))
        }
    }
}

impl TemplateMetric {
    fn parse(line: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let Some(value) = line.args.first() else {
            return Err(line.error("a metric needs a name and a value"));
        };
        let name = Template::compile(&line.name, line, load)?;
        let bare = line.name.text.split(|byte| *byte == b'{').next().unwrap_or_default().into();
        let value = Template::compile(value, line, load)?;
        let (path, kind, help) = (MetricPath::None, Box::default(), Box::default());
        let mut metric = Self { name, bare, value, path, kind, help };
        for word in &line.args[1..] {
            metric.parameter(word, line, load)?;
        }
        Ok(metric)
    }

    fn parameter(&mut self, word: &Word, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        let text = &*word.text;
        if let Some(pattern) = text.strip_prefix(b"path=~") {
            let pattern = Pattern::compile(pattern, false, word, line, load)?;
            self.path = MetricPath::Pattern(pattern);
        } else if let Some(path) = text.strip_prefix(b"path=") {
            self.path = MetricPath::Exact(path.into());
        } else if let Some(kind) = text.strip_prefix(b"type=") {
            const KINDS: [&[u8]; 5] = [b"counter", b"gauge", b"histogram", b"summary", b"untyped"];
            if !KINDS.contains(&kind) {
                return Err(line.error_at(word, format!("invalid metric type \"{word}\"")));
            }
            self.kind = kind.into();
        } else if let Some(help) = text.strip_prefix(b"help=") {
            self.help = help.into();
        } else {
            return Err(line.error_at(word, format!("invalid parameter \"{word}\"")));
        }
        Ok(())
    }
}

impl PrometheusTemplate {
    /// The template of a name, once all lines have been read.
    pub fn find(name: &[u8], from: &Directive, load: &mut Load<'_>) -> Result<Arc<Self>> {
        let found = load.own.of::<Templates>().0.get(name).cloned();
        found.ok_or_else(|| {
            let shown = String::from_utf8_lossy(name);
            from.error(format!("prometheus template \"{shown}\" is not defined"))
        })
    }

    pub fn answer(&self, x: &mut Exchange) -> Flow {
        let tree = angie(b"", Shape { is_epoch: true, ..Shape::default() });
        let mut found = Leaves { path: Vec::new(), marks: Vec::new(), leaves: Vec::new() };
        found.visit(&tree);
        let mut lines: Vec<Vec<u8>> = self.metrics.iter().map(|_| Vec::new()).collect();
        for (metric, lines) in self.metrics.iter().zip(&mut lines) {
            if matches!(metric.path, MetricPath::None) {
                x.values.clear();
                self.line(metric, x, lines);
            }
        }
        for (path, value) in found.leaves {
            // The first metric whose path fits shows the value.
            let fits = |x: &mut Exchange, metric: &TemplateMetric| match &metric.path {
                MetricPath::None => false,
                MetricPath::Exact(exact) => **exact == *path,
                MetricPath::Pattern(pattern) => pattern.matches(&path, x).unwrap_or(false),
            };
            // Variables made of the value must not keep that of the last line.
            x.values.clear();
            let at = self.metrics.iter().position(|metric| fits(x, metric));
            if let Some(at) = at {
                x.states.of::<TemplateValue>().0 = Some(value);
                self.line(&self.metrics[at], x, &mut lines[at]);
                x.states.of::<TemplateValue>().0 = None;
            }
        }
        status_page::text(x, 200, b"text/plain", self.page(&lines))
    }

    fn line(&self, metric: &TemplateMetric, x: &mut Exchange, out: &mut Vec<u8>) {
        let start = out.len();
        metric.name.render(x, out);
        out.push(b' ');
        let value = out.len();
        metric.value.render(x, out);
        match out.len() == value {
            true => out.truncate(start),
            false => out.push(b'\n'),
        }
    }

    fn page(&self, lines: &[Vec<u8>]) -> Vec<u8> {
        let mut page = b"# Prometheus template \"".to_vec();
        page.extend_from_slice(&self.name);
        page.extend_from_slice(b"\"\n");
        for (metric, lines) in self.metrics.iter().zip(lines).filter(|(_, lines)| !lines.is_empty())
        {
            for (what, text) in [(&b"HELP"[..], &metric.help), (b"TYPE", &metric.kind)] {
                if !text.is_empty() {
                    page.extend_from_slice(
                        &[b"# ", what, b" ", &metric.bare, b" ", text, b"\n"].concat(),
                    );
                }
            }
            page.extend_from_slice(lines);
        }
        page
    }
}

/// All values of a tree, by path. An object has the number of its fields as its value.
struct Leaves {
    path: Vec<u8>,
    /// Where the open objects begin in the path, and how many fields they have had.
    marks: Vec<(usize, u64)>,
    leaves: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Leaves {
    fn visit(&mut self, tree: &StatusTree) {
        for section in &tree.sections {
            for name in &section.path {
                self.open(name);
            }
            match &section.items {
                Items::Fields(source) => source.visit(self),
                Items::Named(items) => {
                    for (name, source) in items {
                        self.open(name);
                        source.visit(self);
                        self.close();
                    }
                }
                Items::List(items) => {
                    for (at, source) in items.iter().enumerate() {
                        self.open(at.to_string().as_bytes());
                        source.visit(self);
                        self.close();
                    }
                }
            }
            for _ in &section.path {
                self.marks.pop().inspect(|(start, _)| self.path.truncate(*start));
            }
        }
    }

    fn leaf(&mut self, name: &[u8], value: Vec<u8>) {
        if let Some((_, fields)) = self.marks.last_mut() {
            *fields += 1;
        }
        let path = [&self.path[..], b"/", name].concat();
        self.leaves.push((path, value));
    }
}

impl Visitor for Leaves {
    fn open(&mut self, name: &[u8]) -> bool {
        if let Some((_, fields)) = self.marks.last_mut() {
            *fields += 1;
        }
        self.marks.push((self.path.len(), 0));
        self.path.push(b'/');
        self.path.extend_from_slice(name);
        true
    }

    fn list(&mut self, _: &[u8]) -> bool {
        false
    }

    fn close(&mut self) {
        if let Some((start, fields)) = self.marks.pop() {
            let path = [&self.path[..], b"/"].concat();
            self.leaves.push((path, fields.to_string().into_bytes()));
            self.path.truncate(start);
        }
    }

    fn number(&mut self, name: &[u8], value: u64) {
        self.leaf(name, value.to_string().into_bytes());
    }

    fn float(&mut self, name: &[u8], value: f64) {
        let mut text = Vec::new();
        // Writing to a vector does not fail.
        let _ = write!(text, "{value}");
        self.leaf(name, text);
    }

    fn text(&mut self, name: &[u8], value: &[u8]) {
        self.leaf(name, value.to_vec());
    }

    fn flag(&mut self, name: &[u8], value: bool) {
        self.leaf(name, if value { b"1" } else { b"0" }.to_vec());
    }

    fn null(&mut self, name: &[u8]) {
        self.leaf(name, b"(null)".to_vec());
    }
}
