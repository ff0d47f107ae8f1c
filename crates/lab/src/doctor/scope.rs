//! Blocks of a configuration, with the settings that apply in them.

use conf::Directive;

/// A block with the blocks around it.
#[derive(Clone)]
pub(super) struct ConfigScope<'c> {
    /// The directives of each block, from the whole file to the innermost block.
    blocks: Vec<&'c [Directive]>,
    /// The directive that opened the innermost block; `None` for the whole file.
    pub(super) opened_by: Option<&'c Directive>,
}

impl<'c> ConfigScope<'c> {
    /// The whole file.
    pub(super) fn of(root: &'c [Directive]) -> Self {
        Self { blocks: vec![root], opened_by: None }
    }

    /// The servers of `http {}` and `stream {}` in a file.
    pub(super) fn servers(&self) -> Vec<Self> {
        let subsystems = ["http", "stream"].iter().flat_map(|name| self.within(name));
        subsystems.flat_map(|subsystem| subsystem.within("server")).collect()
    }

    /// The blocks of a name directly in this one.
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

    /// The directives of a name directly in this block.
    pub(super) fn own_all(&self, name: &str) -> impl Iterator<Item = &'c Directive> + use<'c> {
        let name = name.to_owned();
        let own = self.blocks.last().copied().unwrap_or_default();
        own.iter().filter(move |directive| *directive.name.text == *name.as_bytes())
    }

    /// The first directive of a name directly in this block.
    pub(super) fn own(&self, name: &str) -> Option<&'c Directive> {
        self.own_all(name).next()
    }

    /// The directive of a name that applies here: this block's own, or the nearest outer block's.
    pub(super) fn setting(&self, name: &str) -> Option<&'c Directive> {
        self.inherited(name).first().copied()
    }

    /// All directives of a name that apply here.
    pub(super) fn inherited(&self, name: &str) -> Vec<&'c Directive> {
        let is_named = |directive: &&Directive| *directive.name.text == *name.as_bytes();
        let here = |block: &&'c [Directive]| block.iter().any(|directive| is_named(&directive));
        let nearest = self.blocks.iter().rev().copied().find(|block| here(block));
        nearest.unwrap_or_default().iter().filter(is_named).collect()
    }

    /// The first argument of a setting, if it applies here.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.setting(name)?.args.first().map(ToString::to_string)
    }

    /// The first argument as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.word(name)?.parse().ok()
    }

    /// Whether a handler answers all requests: another server, or `return`.
    pub(super) fn has_handler(&self) -> bool {
        let own = self.blocks.last().copied().unwrap_or_default();
        let answers =
            |line: &Directive| line.name.text.ends_with(b"_pass") || *line.name.text == *b"return";
        own.iter().any(answers)
    }

    /// Whether requests reach only the locations in this block.
    pub(super) fn is_hidden(&self) -> bool {
        let is_all = |location: &Self| ["/", "^~ /"].contains(&&*location.title());
        self.within("location").iter().any(is_all)
    }

    /// The arguments of the directive that opened the block.
    pub(super) fn title(&self) -> String {
        let words = self.opened_by.iter().flat_map(|opened| &opened.args);
        words.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}
