//! Parts of a tree: what is at a path, and which fields are wanted.

use std::sync::Arc;

use super::json::JsonText;
use super::{Items, StatusTree, TreeSection, TreeSource, Visitor};

/// What is at a path.
pub enum PathPart {
    /// An object, with the paths of its sections cut.
    Tree(StatusTree),
    /// A value or a list, as JSON.
    Value(Vec<u8>),
}

/// What is at a path. `None`: nothing.
pub fn find(tree: StatusTree, path: &[&[u8]]) -> Option<PathPart> {
    if path.is_empty() {
        return Some(PathPart::Tree(tree));
    }
    let mut found = StatusTree::default();
    for section in tree.sections {
        let common = section.path.iter().zip(path).take_while(|(a, b)| ***a == ***b).count();
        if common == path.len() {
            let path = section.path[common..].into();
            found.sections.push(TreeSection { path, items: section.items });
        } else if common == section.path.len()
            && let Some(part) = within(section.items, &path[common..])
        {
            match part {
                PathPart::Tree(part) => found.sections.extend(part.sections),
                value => return Some(value),
            }
        }
    }
    (!found.sections.is_empty()).then_some(PathPart::Tree(found))
}

/// What is at a path below the place of a section.
fn within(items: Items, path: &[&[u8]]) -> Option<PathPart> {
    let (name, rest) = path.split_first()?;
    let (source, rest) = match items {
        Items::Fields(source) => (source, path),
        Items::Named(items) => (items.into_iter().find(|(known, _)| **known == **name)?.1, rest),
        Items::List(items) => {
            let number: usize = std::str::from_utf8(name).ok()?.parse().ok()?;
            (items.into_iter().nth(number)?, rest)
        }
    };
    let fields =
        StatusTree { sections: vec![TreeSection::new(&[], Items::Fields(source.clone()))] };
    if rest.is_empty() {
        return Some(PathPart::Tree(fields));
    }
    let mut probe = Probe { path: rest, at: 0, found: None };
    source.visit(&mut probe);
    match probe.found? {
        FoundPart::Value(json) => Some(PathPart::Value(json)),
        FoundPart::Object => {
            let path = rest.iter().map(|name| (*name).into()).collect();
            let part = Arc::new(SourcePart { source, path });
            Some(PathPart::Tree(StatusTree {
                sections: vec![TreeSection::new(&[], Items::Fields(part))],
            }))
        }
    }
}

/// Looks for what is at a path of a source. A list has no path.
struct Probe<'a> {
    path: &'a [&'a [u8]],
    /// How many names of the path are open.
    at: usize,
    found: Option<FoundPart>,
}

enum FoundPart {
    Object,
    Value(Vec<u8>),
}

impl Probe<'_> {
    /// Whether a value of that name is what is sought.
    fn is_sought(&self, name: &[u8]) -> bool {
        self.path.len() == self.at + 1 && self.path[self.at] == name
    }

    fn value(&mut self, name: &[u8], write: impl FnOnce(&mut JsonText)) {
        if self.is_sought(name) {
            let mut json = JsonText::default();
            write(&mut json);
            self.found = Some(FoundPart::Value(json.text));
        }
    }
}

impl Visitor for Probe<'_> {
    fn open(&mut self, name: &[u8]) -> bool {
        if self.is_sought(name) {
            self.found = Some(FoundPart::Object);
            return false;
        }
        let is_on_way = self.path.get(self.at).is_some_and(|part| *part == name);
        self.at += usize::from(is_on_way);
        is_on_way
    }
    fn list(&mut self, _: &[u8]) -> bool {
        false
    }
    fn close(&mut self) {
        self.at -= 1;
    }
    fn number(&mut self, name: &[u8], value: u64) {
        self.value(name, |json| json.number(b"", value));
    }
    fn float(&mut self, name: &[u8], value: f64) {
        self.value(name, |json| json.float(b"", value));
    }
    fn text(&mut self, name: &[u8], value: &[u8]) {
        self.value(name, |json| json.text(b"", value));
    }
    fn flag(&mut self, name: &[u8], value: bool) {
        self.value(name, |json| json.flag(b"", value));
    }
    fn null(&mut self, name: &[u8]) {
        self.value(name, |json| json.null(b""));
    }
}

/// The part of a source at a path.
struct SourcePart {
    source: Arc<dyn TreeSource>,
    path: Vec<Box<[u8]>>,
}

impl TreeSource for SourcePart {
    fn visit(&self, out: &mut dyn Visitor) {
        let path: Vec<&[u8]> = self.path.iter().map(|name| &**name).collect();
        self.source.visit(&mut Below { out, path: &path, at: 0, depth: 0 });
    }
}

/// Passes on what is below a path.
struct Below<'a> {
    out: &'a mut dyn Visitor,
    path: &'a [&'a [u8]],
    /// How many names of the path are open.
    at: usize,
    /// How many objects are open below it.
    depth: usize,
}

impl Below<'_> {
    fn is_inside(&self) -> bool {
        self.at == self.path.len()
    }

    fn enter(&mut self, name: &[u8], pass: impl FnOnce(&mut dyn Visitor) -> bool) -> bool {
        if self.is_inside() {
            let enters = pass(self.out);
            self.depth += usize::from(enters);
            return enters;
        }
        let enters = self.path[self.at] == name;
        self.at += usize::from(enters);
        enters
    }
}

impl Visitor for Below<'_> {
    fn open(&mut self, name: &[u8]) -> bool {
        self.enter(name, |out| out.open(name))
    }
    fn list(&mut self, name: &[u8]) -> bool {
        self.enter(name, |out| out.list(name))
    }
    fn close(&mut self) {
        match self.depth {
            0 => self.at -= 1,
            _ => {
                self.depth -= 1;
                self.out.close();
            }
        }
    }
    fn number(&mut self, name: &[u8], value: u64) {
        if self.is_inside() {
            self.out.number(name, value);
        }
    }
    fn float(&mut self, name: &[u8], value: f64) {
        if self.is_inside() {
            self.out.float(name, value);
        }
    }
    fn text(&mut self, name: &[u8], value: &[u8]) {
        if self.is_inside() {
            self.out.text(name, value);
        }
    }
    fn flag(&mut self, name: &[u8], value: bool) {
        if self.is_inside() {
            self.out.flag(name, value);
        }
    }
    fn null(&mut self, name: &[u8]) {
        if self.is_inside() {
            self.out.null(name);
        }
    }
}
