//! The folder of a proof.

use std::fs;
use std::path::PathBuf;

/// A folder of a proof; it goes away with this.
pub(crate) struct ProofFolder(pub(crate) PathBuf);

impl ProofFolder {
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        Self::within(std::env::temp_dir(), name)
    }

    /// In memory where there is a folder of that kind: a disk may have a program wait with its log.
    pub(super) fn in_memory(name: &str) -> Result<Self, String> {
        let memory = PathBuf::from("/dev/shm");
        Self::within(if memory.is_dir() { memory } else { std::env::temp_dir() }, name)
    }

    fn within(parent: PathBuf, name: &str) -> Result<Self, String> {
        let folder = parent.join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|err| format!("{}: {err}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.join(name);
        fs::write(&file, text).map_err(|err| format!("{}: {err}", file.display()))?;
        Ok(file)
    }
}

impl Drop for ProofFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
