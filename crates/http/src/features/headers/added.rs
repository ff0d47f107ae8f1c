//! `add_header name value [always]`, `add_header_inherit`, and the same for `add_trailer`.

use std::ops::RangeInclusive;

use conf::{Absent, Directive, Inherited, Load, Result, Template, Value};

/// The lines of a block, with inherited ones.
#[derive(Clone, Default)]
pub(super) struct Added {
    pub(super) lines: Vec<AddedLine>,
    /// `None` until the outer block is known.
    inherit: Option<Inherit>,
}

#[derive(Clone)]
pub(super) struct AddedLine {
    pub(super) name: Box<[u8]>,
    pub(super) value: Template,
    pub(super) effect: Effect,
    always: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Add,
    /// Adds a field that filters ignore: as in nginx, even `Content-Encoding` is plain text here.
    AddText,
    SetLastModified,
    SetETag,
}

conf::words! {
    /// What becomes of the lines of an outer block.
    pub enum Inherit {
        /// They do not hold.
        Off = "off",
        /// They hold where there are no own ones.
        On = "on",
        /// They hold after the own ones.
        Merge = "merge",
    }
}

impl Added {
    /// The lines for a successful or unsuccessful reply.
    pub(super) fn lines_for(&self, is_success: bool) -> impl Iterator<Item = &AddedLine> {
        self.lines.iter().filter(move |line| is_success || line.always)
    }
}

impl Absent for Added {
    fn absent() -> Self {
        Self::default()
    }
}

impl Value for Added {
    const ARGS: RangeInclusive<usize> = 2..=3;
    const INHERITED: Inherited = Inherited::Changed;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut added = Self::default();
        added.repeat(from, load)?;
        Ok(added)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        if !from.name.text.ends_with(b"_inherit") {
            self.lines.push(AddedLine::parse(from, load)?);
            return Ok(());
        }
        if self.inherit.is_some() {
            return Err(from.refuse("is duplicate"));
        }
        self.inherit = Some(Inherit::parse(from, load)?);
        Ok(())
    }
    fn complete(&mut self, outer: &Self) {
        let inherit = self.inherit.or(outer.inherit).unwrap_or(Inherit::On);
        self.inherit = Some(inherit);
        if inherit == Inherit::Merge || inherit == Inherit::On && self.lines.is_empty() {
            self.lines.extend_from_slice(&outer.lines);
        }
    }
    fn handed_down(&self) -> Self {
        let mut inner = Self::default();
        inner.complete(self);
        inner
    }
}

impl AddedLine {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = &from.arg(0).text;
        let is_header = &*from.name.text == b"add_header";
        let effect = match name {
            name if is_header && name.eq_ignore_ascii_case(b"Last-Modified") => {
                Effect::SetLastModified
            }
            name if is_header && name.eq_ignore_ascii_case(b"ETag") => Effect::SetETag,
            name if [&b"Cache-Control"[..], b"Link"]
                .iter()
                .any(|n| name.eq_ignore_ascii_case(n)) =>
            {
                Effect::Add
            }
            _ => Effect::AddText,
        };
        let value = Template::compile(from.arg(1), from, load)?;
        let always = match from.args.get(2) {
            None => false,
            Some(word) if &*word.text == b"always" => true,
            Some(word) => return Err(from.error_at(word, format!("invalid parameter \"{word}\""))),
        };
        Ok(Self { name: name.clone(), value, effect, always })
    }
}
