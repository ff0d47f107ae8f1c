//! The directory of the built-in configuration: its temporary files, its pid.
//!
//! Its name cannot be guessed and only its user can access it, because every user may write to its
//! parent directory.

use std::fs::DirBuilder;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use observe::Errno;

use crate::log::emerg;
use crate::messages::Reported;

/// Its path, whether it exists or not.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let number = RandomState::new().hash_one(net::process::id()) as u32;
        std::env::temp_dir().join(format!("weir-{number:08x}"))
    })
}

/// The directory; dropping this removes it.
pub struct Home(());

impl Home {
    pub fn make() -> Result<Self, Reported> {
        match DirBuilder::new().mode(0o700).create(path()) {
            Ok(()) => Ok(Self(())),
            Err(error) => {
                emerg!("mkdir() \"{}\" failed{}", path().display(), Errno(&error));
                Err(Reported)
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A leftover directory does no harm.
        let _ = std::fs::remove_dir_all(path());
    }
}
