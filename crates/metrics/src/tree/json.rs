//! The tree as JSON, piece by piece.

use std::io::Write;

use wire::json::write_text;

use super::{Items, NamedItems, StatusTree, TreeSection, TreeSource, Visitor};

/// A page that is being written: one item at a time.
pub struct JsonPage {
    sections: std::vec::IntoIter<TreeSection>,
    /// What is left of the current section.
    left: Left,
    out: JsonText,
    /// The objects that are open around the items.
    path: Vec<Box<[u8]>>,
    state: PageState,
}

/// Items of the current section, in reverse order.
enum Left {
    Named(NamedItems),
    List(Vec<std::sync::Arc<dyn TreeSource>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PageState {
    Begins,
    Goes,
    Over,
}

impl JsonPage {
    pub fn new(tree: StatusTree) -> Self {
        Self {
            sections: tree.sections.into_iter(),
            left: Left::Named(Vec::new()),
            out: JsonText::default(),
            path: Vec::new(),
            state: PageState::Begins,
        }
    }

    /// Appends the next piece. False: nothing is left.
    pub fn write_piece(&mut self, page: &mut Vec<u8>) -> bool {
        std::mem::swap(&mut self.out.text, page);
        let goes_on = self.step();
        std::mem::swap(&mut self.out.text, page);
        goes_on
    }

    /// The whole page, for one that is known to be small.
    pub fn text(mut self) -> Vec<u8> {
        let mut page = Vec::new();
        while self.write_piece(&mut page) {}
        page
    }

    fn step(&mut self) -> bool {
        match self.state {
            PageState::Over => return false,
            PageState::Begins => {
                self.state = PageState::Goes;
                let is_list = self.sections.as_slice().first().is_some_and(is_list_itself);
                self.out.begin(b"", if is_list { b'[' } else { b'{' });
            }
            PageState::Goes => {}
        }
        if let Some(one) = self.next_item() {
            return one;
        }
        let Some(section) = self.sections.next() else {
            self.close_to(0);
            self.out.close();
            self.state = PageState::Over;
            return true;
        };
        self.begin(section);
        true
    }

    /// Writes an item of the current section. `None`: there is no more.
    fn next_item(&mut self) -> Option<bool> {
        match &mut self.left {
            Left::Named(items) => {
                let (name, source) = items.pop()?;
                self.out.begin(&name, b'{');
                source.visit(&mut self.out);
            }
            Left::List(items) => {
                let Some(source) = items.pop() else {
                    self.left = Left::Named(Vec::new());
                    if self.path.pop().is_some() {
                        self.out.close();
                    }
                    return None;
                };
                self.out.begin(b"", b'{');
                source.visit(&mut self.out);
            }
        }
        self.out.close();
        Some(true)
    }

    fn begin(&mut self, section: TreeSection) {
        let is_list = matches!(section.items, Items::List(_));
        let common = self.path.iter().zip(&section.path).take_while(|(a, b)| a == b).count();
        self.close_to(common);
        for (at, name) in section.path.iter().enumerate().skip(common) {
            let last = at + 1 == section.path.len();
            self.out.begin(name, if last && is_list { b'[' } else { b'{' });
        }
        self.path = section.path;
        match section.items {
            Items::Fields(source) => source.visit(&mut self.out),
            Items::Named(mut items) => {
                items.reverse();
                self.left = Left::Named(items);
            }
            Items::List(mut items) => {
                items.reverse();
                self.left = Left::List(items);
            }
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.path.len() > depth {
            self.path.pop();
            self.out.close();
        }
    }
}

/// Whether the whole page is this list.
fn is_list_itself(section: &TreeSection) -> bool {
    section.path.is_empty() && matches!(section.items, Items::List(_))
}

/// JSON text that is being written.
#[derive(Default)]
pub(super) struct JsonText {
    pub text: Vec<u8>,
    /// For each open object or list: what ends it, and whether it has elements.
    open: Vec<(u8, bool)>,
}

impl JsonText {
    /// Begins an object or list, by its bracket.
    fn begin(&mut self, name: &[u8], bracket: u8) {
        self.name(name);
        self.text.push(bracket);
        self.open.push((if bracket == b'{' { b'}' } else { b']' }, false));
    }

    /// What stands before a value: a comma, and the name within an object.
    fn name(&mut self, name: &[u8]) {
        let Some((end, has_elements)) = self.open.last_mut() else { return };
        if std::mem::replace(has_elements, true) {
            self.text.push(b',');
        }
        if *end == b'}' {
            write_text(name, &mut self.text);
            self.text.push(b':');
        }
    }
}

impl Visitor for JsonText {
    fn open(&mut self, name: &[u8]) -> bool {
        self.begin(name, b'{');
        true
    }

    fn list(&mut self, name: &[u8]) -> bool {
        self.begin(name, b'[');
        true
    }

    fn close(&mut self) {
        if let Some((end, _)) = self.open.pop() {
            self.text.push(end);
        }
    }

    fn number(&mut self, name: &[u8], value: u64) {
        self.name(name);
        // Writing to a vector does not fail.
        let _ = write!(self.text, "{value}");
    }

    fn float(&mut self, name: &[u8], value: f64) {
        self.name(name);
        let value = if value.is_finite() { value } else { 0.0 };
        let _ = write!(self.text, "{value}");
    }

    fn text(&mut self, name: &[u8], value: &[u8]) {
        self.name(name);
        write_text(value, &mut self.text);
    }

    fn flag(&mut self, name: &[u8], value: bool) {
        self.name(name);
        self.text.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn null(&mut self, name: &[u8]) {
        self.name(name);
        self.text.extend_from_slice(b"null");
    }
}
