//! A configuration as the checks see it: blocks with the settings that hold in them. Unknown
//! directives are as good as any: it may be nginx's, and need not be valid here.

use std::path::Path;

use conf::{Directive, Files, Sources};

/// A configuration that was read.
pub(super) struct ExaminedConfig {
    pub(super) sources: Sources,
    root: Vec<Directive>,
}

/// A block, and those around it.
#[derive(Clone)]
pub(super) struct ConfigScope<'c> {
    /// The innermost last. The first is the whole file.
    blocks: Vec<&'c [Directive]>,
    /// The directive that opened the block; `None`: the file.
    pub(super) opened_by: Option<&'c Directive>,
}

impl ExaminedConfig {
    /// Reads a file and what it includes; an error is a message in nginx's words.
    pub(super) fn read(path: &Path, files: &mut dyn Files) -> Result<Self, String> {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = path.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
        let prefix = [folder, b"/"].concat();
        let parsed = conf::parse(path.as_os_str().as_bytes(), &prefix, None, files);
        match parsed.error {
            None => Ok(Self { sources: parsed.sources, root: parsed.tree.root }),
            Some(error) => Err(format!(
                "{}{}",
                error.message,
                error.span.map_or(String::new(), |at| parsed.sources.place(at))
            )),
        }
    }

    /// The whole file.
    pub(super) fn main(&self) -> ConfigScope<'_> {
        ConfigScope { blocks: vec![&self.root], opened_by: None }
    }

    /// The blocks `events {}`, at most one.
    pub(super) fn events(&self) -> Option<ConfigScope<'_>> {
        self.main().within("events").into_iter().next()
    }

    /// The servers of `http {}` and `stream {}`.
    pub(super) fn servers(&self) -> Vec<ConfigScope<'_>> {
        let subsystems = ["http", "stream"].iter().flat_map(|name| self.main().within(name));
        subsystems.flat_map(|subsystem| subsystem.within("server")).collect()
    }

    /// The places of `http {}` where requests are answered: servers and their locations, however
    /// deep.
    pub(super) fn http_places(&self) -> Vec<ConfigScope<'_>> {
        let mut places = Vec::new();
        for http in self.main().within("http") {
            for server in http.within("server") {
                server.with_locations(&mut places);
            }
        }
        places
    }

    /// The groups `upstream {}` of `http {}`.
    pub(super) fn groups(&self) -> Vec<ConfigScope<'_>> {
        let http = self.main().within("http");
        http.into_iter().flat_map(|http| http.within("upstream")).collect()
    }
}

impl<'c> ConfigScope<'c> {
    /// The blocks of that name directly in this one.
    pub(super) fn within(&self, name: &str) -> Vec<Self> {
        let block = |directive: &'c Directive| {
            let inner = directive.block.as_deref()?;
            let blocks = self.blocks.iter().copied().chain([inner]).collect();
            Some(Self { blocks, opened_by: Some(directive) })
        };
        self.own_all(name).filter_map(block).collect()
    }

    fn with_locations(self, into: &mut Vec<Self>) {
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

/// The value of a parameter such as `backlog=511`.
pub(super) fn parameter(directive: &Directive, name: &str) -> Option<String> {
    let value = |word: &conf::Word| {
        word.to_string().strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
    };
    directive.args.iter().find_map(value)
}
