//! The configuration that the checks read. Unknown directives are accepted: the file may be
//! nginx's, and need not be valid in Weir.

use std::path::Path;
use std::sync::Arc;

use conf::{Directive, FileError, Files, Sources};

use super::certificates::NamedCertificates;
use super::scope::ConfigScope;

pub(super) struct ExaminedConfig {
    pub(super) sources: Sources,
    root: Vec<Directive>,
    pub(super) certificates: NamedCertificates,
    /// Included files that do not exist; the others are examined without them.
    pub(super) missing: Vec<String>,
}

impl ExaminedConfig {
    /// Reads a file and what it includes; an error is a message in nginx's words.
    pub(super) fn read(path: &Path, files: &mut dyn Files) -> Result<Self, String> {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = path.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
        let prefix = [folder, b"/"].concat();
        let name = path.as_os_str().as_bytes();
        let mut included = IncludedFiles { main: name, files: &mut *files, missing: Vec::new() };
        let parsed = conf::parse(name, &prefix, None, &mut included);
        let missing = included.missing;
        match parsed.error {
            None => {
                let root = parsed.tree.root;
                let folder = path.parent().unwrap_or(Path::new("/"));
                let certificates = NamedCertificates::read(&root, folder, files);
                Ok(Self { sources: parsed.sources, root, certificates, missing })
            }
            Some(error) => Err(format!(
                "{}{}",
                error.message,
                error.span.map_or(String::new(), |at| parsed.sources.place(at))
            )),
        }
    }

    /// The whole file.
    pub(super) fn main(&self) -> ConfigScope<'_> {
        ConfigScope::of(&self.root)
    }

    /// The directives outside all blocks, with the blocks among them.
    pub(super) fn root(&self) -> &[Directive] {
        &self.root
    }

    /// The block `events {}`.
    pub(super) fn events(&self) -> Option<ConfigScope<'_>> {
        self.main().within("events").into_iter().next()
    }

    /// The servers of `http {}` and their locations at any depth.
    pub(super) fn http_places(&self) -> Vec<ConfigScope<'_>> {
        let mut places = Vec::new();
        for http in self.main().within("http") {
            for server in http.within("server") {
                server.with_locations(&mut places);
            }
        }
        places
    }

    /// The places of `http {}` that requests for files reach: no handler answers there, and no
    /// location of all paths hides the server.
    pub(super) fn file_places(&self) -> Vec<ConfigScope<'_>> {
        let mut places = self.http_places();
        places.retain(|place| !place.has_handler() && !place.is_hidden());
        places
    }

    /// The lines `root` and `alias` of which files are served, each once.
    pub(super) fn roots(&self) -> Vec<&Directive> {
        let mut roots: Vec<&Directive> = Vec::new();
        for place in self.file_places() {
            let applies = ["alias", "root"].into_iter().find_map(|name| place.setting(name));
            if let Some(line) =
                applies.filter(|line| !roots.iter().any(|r| std::ptr::eq(*r, *line)))
            {
                roots.push(line);
            }
        }
        roots
    }

    /// The groups `upstream {}` of `http {}`.
    pub(super) fn groups(&self) -> Vec<ConfigScope<'_>> {
        self.blocks_of("http", "upstream")
    }

    /// The groups `upstream {}` of `stream {}`.
    pub(super) fn stream_groups(&self) -> Vec<ConfigScope<'_>> {
        self.blocks_of("stream", "upstream")
    }

    /// The servers of `stream {}`.
    pub(super) fn stream_servers(&self) -> Vec<ConfigScope<'_>> {
        self.blocks_of("stream", "server")
    }

    fn blocks_of(&self, subsystem: &str, name: &str) -> Vec<ConfigScope<'_>> {
        self.main().within(subsystem).into_iter().flat_map(|of| of.within(name)).collect()
    }
}

/// Files of which the missing ones are empty, except the main file.
struct IncludedFiles<'f> {
    main: &'f [u8],
    files: &'f mut dyn Files,
    missing: Vec<String>,
}

impl Files for IncludedFiles<'_> {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        match self.files.read(path) {
            Err(error) if error.is_not_found() && path != self.main => {
                self.missing.push(String::from_utf8_lossy(path).into_owned());
                Ok(Arc::default())
            }
            read => read,
        }
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        self.files.glob(pattern)
    }
}

/// The value of a parameter such as `backlog=511`.
pub(super) fn parameter(directive: &Directive, name: &str) -> Option<String> {
    let value = |word: &conf::Word| {
        word.to_string().strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
    };
    directive.args.iter().find_map(value)
}
