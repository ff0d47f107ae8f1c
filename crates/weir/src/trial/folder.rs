//! The folder of a trial: its configuration, logs, pid and temporary files.
//!
//! Its name cannot be guessed, because every user may write to its parent directory. Workers of
//! another user can pass through it, but only its owner can list it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::messages::Reported;
use crate::messages::complain;

/// The folder; dropping this removes it, unless it is to be kept.
pub(super) struct TrialFolder {
    path: PathBuf,
    keep: bool,
}

impl TrialFolder {
    pub(super) fn make(keep: bool) -> Result<Self, Reported> {
        // The user of root's workers may not get through root's own TMPDIR.
        let parent = if net::is_privileged() { "/tmp".into() } else { std::env::temp_dir() };
        let number = RandomState::new().hash_one(std::process::id()) as u32;
        let path = parent.join(format!("weir-trial-{number:08x}"));
        let failed =
            |error: io::Error| complain(format_args!("trial: {}: {error}", path.display()));
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        if net::is_privileged() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).map_err(failed)?;
        }
        Ok(Self { path, keep })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_kept(&self) -> bool {
        self.keep
    }

    /// The path of the copy of the configuration.
    pub(super) fn configuration(&self) -> PathBuf {
        self.path.join("nginx.conf")
    }

    /// Writes the configuration, readable only by its owner because it may contain secrets.
    pub(super) fn write(&self, text: &[u8]) -> Result<(), Reported> {
        let file = self.configuration();
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&file);
        opened
            .and_then(|mut opened| opened.write_all(text))
            .map_err(|error| complain(format_args!("trial: {}: {error}", file.display())))
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        if !self.keep {
            // A leftover folder does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
