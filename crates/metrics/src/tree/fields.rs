//! Only some fields of the objects of a tree.

use std::sync::Arc;

use super::{Items, StatusTree, TreeSection, TreeSource, Visitor};

/// Leaves only these fields; `depth`: of the objects around which there are so many names.
pub fn only(tree: StatusTree, fields: Vec<Box<[u8]>>, depth: usize) -> StatusTree {
    let fields: Arc<[Box<[u8]>]> = fields.into();
    let sections = tree.sections.into_iter().filter_map(|section| {
        let TreeSection { path, items } = section;
        if let Some(name) = path.get(depth) {
            return fields.contains(name).then_some(TreeSection { path, items });
        }
        let some = |source: Arc<dyn TreeSource>| -> Arc<dyn TreeSource> {
            Arc::new(SomeFields { source, fields: fields.clone() })
        };
        let items = match items {
            Items::Fields(source) if path.len() == depth => Items::Fields(some(source)),
            Items::Named(items) if path.len() + 1 == depth => {
                Items::Named(items.into_iter().map(|(name, item)| (name, some(item))).collect())
            }
            Items::List(items) if path.len() + 1 == depth => {
                Items::List(items.into_iter().map(some).collect())
            }
            items => items,
        };
        Some(TreeSection { path, items })
    });
    StatusTree { sections: sections.collect() }
}

/// An object with only some of its fields.
struct SomeFields {
    source: Arc<dyn TreeSource>,
    fields: Arc<[Box<[u8]>]>,
}

impl TreeSource for SomeFields {
    fn visit(&self, out: &mut dyn Visitor) {
        self.source.visit(&mut WantedFields { out, fields: &self.fields, depth: 0 });
    }
}

struct WantedFields<'a> {
    out: &'a mut dyn Visitor,
    fields: &'a [Box<[u8]>],
    /// How many objects are open.
    depth: usize,
}

impl WantedFields<'_> {
    fn is_wanted(&self, name: &[u8]) -> bool {
        self.depth > 0 || self.fields.iter().any(|field| **field == *name)
    }

    fn enter(&mut self, name: &[u8], begin: impl FnOnce(&mut dyn Visitor) -> bool) -> bool {
        let enters = self.is_wanted(name) && begin(self.out);
        self.depth += usize::from(enters);
        enters
    }
}

impl Visitor for WantedFields<'_> {
    fn open(&mut self, name: &[u8]) -> bool {
        self.enter(name, |out| out.open(name))
    }
    fn list(&mut self, name: &[u8]) -> bool {
        self.enter(name, |out| out.list(name))
    }
    fn close(&mut self) {
        self.depth -= 1;
        self.out.close();
    }
    fn number(&mut self, name: &[u8], value: u64) {
        if self.is_wanted(name) {
            self.out.number(name, value);
        }
    }
    fn float(&mut self, name: &[u8], value: f64) {
        if self.is_wanted(name) {
            self.out.float(name, value);
        }
    }
    fn text(&mut self, name: &[u8], value: &[u8]) {
        if self.is_wanted(name) {
            self.out.text(name, value);
        }
    }
    fn flag(&mut self, name: &[u8], value: bool) {
        if self.is_wanted(name) {
            self.out.flag(name, value);
        }
    }
    fn null(&mut self, name: &[u8]) {
        if self.is_wanted(name) {
            self.out.null(name);
        }
    }
}
