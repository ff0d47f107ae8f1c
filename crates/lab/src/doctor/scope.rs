//! Blocks of a configuration, with the settings that hold in them.

use conf::Directive;

/// A block, and those around it.
#[derive(Clone)]
pub(super) struct ConfigScope<'c> {
    /// The innermost last. The first is the whole file.
    blocks: Vec<&'c [Directive]>,
    /// The directive that opened the block; `None`: the file.
    pub(super) opened_by: Option<&'c Directive>,
}

impl<'c> ConfigScope<'c> {
    /// A whole file.
    pub(super) fn of(root: &'c [Directive]) -> Self {
        Self { blocks: vec![root], opened_by: None }
    }

    /// The servers of `http {}` and `stream {}` in a file.
    pub(super) fn servers(&self) -> Vec<Self> {
        let subsystems = ["http", "stream"].iter().flat_map(|name| self.within(name));
        subsystems.flat_map(|subsystem| subsystem.within("server")).collect()
    }

    /// The blocks of that name directly in this one.
    pub(super) fn within(&self, name: &str) -> Vec<Self> {
        let block = |directive: &'c Directive| {
            let inner = directive.block.as_deref()?;
            let blocks = self.blocks.iter().copied().chain([inner]).collect();
            Some(Self { blocks, opened_by: Some(directive) })
        };
        self.own_all(name).filter_map(block).collect()
    }

    pub(super) fn with_locations(self, into: &mut Vec<Self>) {
        let inner = self.within("location");
        into.push(self);
        inner.into_iter().for_each(|location| location.with_locations(into));
    }

    /// The directives of that name in this block itself.
    pub(super) fn own_all(&self, name: &str) -> impl Iterator<Item = &'c Directive> + use<'c> {
        let name = name.to_owned();
        let own = self.blocks.last().copied().unwrap_or_default();
        own.iter().filter(move |directive| *directive.name.text == *name.as_bytes())
    }

    /// The first of them.
    pub(super) fn own(&self, name: &str) -> Option<&'c Directive> {
        self.own_all(name).next()
    }

    /// The directive of that name that holds here: this block's, or that of the nearest around it.
    pub(super) fn setting(&self, name: &str) -> Option<&'c Directive> {
        self.inherited(name).first().copied()
    }

    /// All directives of that name that hold here.
    pub(super) fn inherited(&self, name: &str) -> Vec<&'c Directive> {
        let is_named = |directive: &&Directive| *directive.name.text == *name.as_bytes();
        let here = |block: &&'c [Directive]| block.iter().any(|directive| is_named(&directive));
        let nearest = self.blocks.iter().rev().copied().find(|block| here(block));
        nearest.unwrap_or_default().iter().filter(is_named).collect()
    }

    /// The only word of a setting, if it holds here.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.setting(name)?.args.first().map(ToString::to_string)
    }

    /// The same as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.word(name)?.parse().ok()
    }

    /// The words after the name of the directive that opened the block.
    pub(super) fn title(&self) -> String {
        let words = self.opened_by.iter().flat_map(|opened| &opened.args);
        words.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}
