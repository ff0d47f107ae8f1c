//! The tree in which everything is shown, whatever the format.
//!
//! A tree is a list of [`TreeSection`]s: a place, and the items there. An item tells its fields to
//! a [`Visitor`], which may decline parts of it. So a reader can take one item after the other, and
//! a page never exists as a whole.

mod fields;
mod json;
mod path;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use fields::only;
pub use json::JsonPage;
pub use path::{PathPart, find};

/// What a reader is told of an item.
pub trait Visitor {
    /// An object begins. False: its fields are not wanted, and it does not end either.
    fn open(&mut self, name: &[u8]) -> bool;
    /// A list begins, whose elements have no names. The same.
    fn list(&mut self, name: &[u8]) -> bool;
    /// The object or list ends.
    fn close(&mut self);
    fn number(&mut self, name: &[u8], value: u64);
    fn float(&mut self, name: &[u8], value: f64);
    fn text(&mut self, name: &[u8], value: &[u8]);
    fn flag(&mut self, name: &[u8], value: bool);
    fn null(&mut self, name: &[u8]);
}

/// What tells its fields.
pub trait TreeSource: Send + Sync {
    fn visit(&self, out: &mut dyn Visitor);
}

impl<F: Fn(&mut dyn Visitor) + Send + Sync> TreeSource for F {
    fn visit(&self, out: &mut dyn Visitor) {
        self(out);
    }
}

/// Objects by name.
pub type NamedItems = Vec<(Box<[u8]>, Arc<dyn TreeSource>)>;

/// Items at one place. A section without items is an empty object or list.
pub struct TreeSection {
    /// The names of the objects around the items.
    pub path: Vec<Box<[u8]>>,
    pub items: Items,
}

pub enum Items {
    /// The fields of the place itself.
    Fields(Arc<dyn TreeSource>),
    /// Objects by name.
    Named(NamedItems),
    /// Objects in a list.
    List(Vec<Arc<dyn TreeSource>>),
}

#[derive(Default)]
pub struct StatusTree {
    /// In the order of the page. Sections of one object follow each other.
    pub sections: Vec<TreeSection>,
}

impl TreeSection {
    pub fn new(path: &[&[u8]], items: Items) -> Self {
        Self { path: path.iter().map(|name| (*name).into()).collect(), items }
    }
}

impl StatusTree {
    pub fn add(&mut self, path: &[&[u8]], items: Items) {
        self.sections.push(TreeSection::new(path, items));
    }

    pub fn fields(&mut self, path: &[&[u8]], source: impl TreeSource + 'static) {
        self.add(path, Items::Fields(Arc::new(source)));
    }
}

/// Tells a part of an object, if it is wanted.
pub fn object(out: &mut dyn Visitor, name: &[u8], fields: impl FnOnce(&mut dyn Visitor)) {
    if out.open(name) {
        fields(out);
        out.close();
    }
}

/// Tells a list, if it is wanted.
pub fn list(out: &mut dyn Visitor, name: &[u8], elements: impl FnOnce(&mut dyn Visitor)) {
    if out.list(name) {
        elements(out);
        out.close();
    }
}
