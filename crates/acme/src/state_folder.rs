//! Where an issuer's state is kept: small files with names, in a folder or in memory.
//!
//! The invariant: a file has its old contents or its new ones, whatever happens meanwhile. A name
//! is in the folder only after the contents are on the disk, and a call that returns has made the
//! name durable as well. Files whose names begin with a dot are unfinished.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The state of one issuer. All calls block on the disk.
#[derive(Debug)]
pub(crate) enum StateFolder {
    Disk(PathBuf),
    /// `state_path off`: as long as the process lives.
    Memory(FilesInMemory),
}

#[derive(Debug, Default)]
pub(crate) struct FilesInMemory {
    issuer: String,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The changes that are possible before the disk takes no more.
    #[cfg(test)]
    changes_left: Option<std::sync::atomic::AtomicUsize>,
    #[cfg(test)]
    has_failed: std::sync::atomic::AtomicBool,
}

impl StateFolder {
    /// The state of an issuer with `state_path off`, which is in memory.
    pub(crate) fn in_memory_of(issuer: &str) -> Self {
        Self::Memory(FilesInMemory { issuer: issuer.to_owned(), ..FilesInMemory::default() })
    }

    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        Self::in_memory_of("a")
    }

    /// The folder's name, which no other one has.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Disk(path) => path.display().to_string(),
            Self::Memory(files) => format!("memory of {}", files.issuer),
        }
    }

    /// The contents; `None`: there is no such file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Memory(files) => Ok(files.lock().get(name).cloned()),
            Self::Disk(folder) => match read_file(&folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                read => read.map(Some),
            },
        }
    }

    /// Writes a file, or replaces it.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(files) => {
                files.change()?.insert(name.to_owned(), contents.to_vec());
                Ok(())
            }
            Self::Disk(folder) => {
                let unfinished = write_unfinished(folder, contents)?;
                let renamed = fs::rename(&unfinished, folder.join(name));
                finish(folder, &unfinished, renamed)
            }
        }
    }

    /// Writes a file if there is none of that name. Returns whether it did.
    pub(crate) fn create(&self, name: &str, contents: &[u8]) -> io::Result<bool> {
        match self {
            Self::Memory(files) => {
                let mut files = files.change()?;
                let is_new = !files.contains_key(name);
                if is_new {
                    files.insert(name.to_owned(), contents.to_vec());
                }
                Ok(is_new)
            }
            Self::Disk(folder) => {
                let unfinished = write_unfinished(folder, contents)?;
                let linked = fs::hard_link(&unfinished, folder.join(name));
                let _ = fs::remove_file(&unfinished);
                match linked {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    Err(error) => Err(error),
                    Ok(()) => sync(folder).map(|()| true),
                }
            }
        }
    }

    /// Gives a file another name. Returns whether it was there.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<bool> {
        match self {
            Self::Memory(files) => {
                let mut files = files.change()?;
                let contents = files.remove(from);
                let was_there = contents.is_some();
                contents.into_iter().for_each(|contents| {
                    files.insert(to.to_owned(), contents);
                });
                Ok(was_there)
            }
            Self::Disk(folder) => match fs::rename(folder.join(from), folder.join(to)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
                Ok(()) => sync(folder).map(|()| true),
            },
        }
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Memory(files) => {
                files.change()?.remove(name);
                Ok(())
            }
            Self::Disk(folder) => match fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
                Ok(()) => sync(folder),
            },
        }
    }

    /// The names that begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        match self {
            Self::Memory(files) => {
                let files = files.lock();
                Ok(files.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
            }
            Self::Disk(folder) => {
                let mut names = Vec::new();
                for entry in fs::read_dir(folder)? {
                    let name = entry?.file_name().into_string();
                    names.extend(name.ok().filter(|name| name.starts_with(prefix)));
                }
                Ok(names)
            }
        }
    }

    /// The names that end with `suffix`.
    pub(crate) fn names_with(&self, suffix: &str) -> io::Result<Vec<String>> {
        match self {
            Self::Memory(files) => {
                let files = files.lock();
                Ok(files.keys().filter(|name| name.ends_with(suffix)).cloned().collect())
            }
            Self::Disk(folder) if !folder.is_dir() => Ok(Vec::new()),
            Self::Disk(folder) => {
                let mut names = Vec::new();
                for entry in fs::read_dir(folder)? {
                    let name = entry?.file_name().into_string();
                    let is_finished = |name: &String| !name.starts_with('.');
                    let name = name.ok().filter(is_finished);
                    names.extend(name.filter(|name| name.ends_with(suffix)));
                }
                Ok(names)
            }
        }
    }

    /// When a name in the folder has changed last; in memory only this process changes any.
    pub(crate) fn changed(&self) -> Option<SystemTime> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(folder) => fs::metadata(folder).and_then(|folder| folder.modified()).ok(),
        }
    }

    /// The stems of the manifests in the folder, and when each was written.
    pub(crate) fn manifests(&self) -> io::Result<Vec<(String, SystemTime)>> {
        let Self::Disk(folder) = self else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Some(stem) = name.strip_suffix(".json") {
                found.push((stem.to_owned(), entry.metadata()?.modified()?));
            }
        }
        Ok(found)
    }

    /// Whether files can be written and read again. The folder is made if it is not there.
    pub(crate) fn test(&self) -> io::Result<()> {
        const CONTENTS: &[u8] = b"Weir tests whether it can write here.\n";
        let name = format!("test.{:016x}", net::system::random());
        self.make()?;
        self.write(&name, CONTENTS)?;
        let read = self.read(&name)?;
        self.remove(&name)?;
        match read.as_deref() {
            Some(CONTENTS) => Ok(()),
            _ => Err(io::Error::other("what was written cannot be read")),
        }
    }

    /// Makes the folder, for this user alone. The master does so before workers start; a folder may
    /// have been removed since.
    fn make(&self) -> io::Result<()> {
        match self {
            Self::Disk(folder) if !folder.is_dir() => {
                DirBuilder::new().mode(0o700).recursive(true).create(folder)
            }
            _ => Ok(()),
        }
    }
}

impl FilesInMemory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files, to change one of them.
    fn change(&self) -> io::Result<MutexGuard<'_, BTreeMap<String, Vec<u8>>>> {
        #[cfg(test)]
        self.count_change()?;
        Ok(self.lock())
    }
}

#[cfg(test)]
mod failing {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    use super::*;

    impl StateFolder {
        /// A folder that takes so many changes, and then no more.
        pub(crate) fn failing_after(changes: usize, files: BTreeMap<String, Vec<u8>>) -> Self {
            Self::Memory(FilesInMemory {
                files: Mutex::new(files),
                changes_left: Some(AtomicUsize::new(changes)),
                has_failed: AtomicBool::new(false),
                ..FilesInMemory::default()
            })
        }

        pub(crate) fn has_failed(&self) -> bool {
            matches!(self, Self::Memory(files) if files.has_failed.load(Relaxed))
        }

        /// What is in it, as another folder that does not fail.
        pub(crate) fn contents(&self) -> Self {
            let Self::Memory(files) = self else { panic!("not in memory") };
            Self::Memory(FilesInMemory {
                files: Mutex::new(files.lock().clone()),
                ..FilesInMemory::default()
            })
        }
    }

    impl FilesInMemory {
        pub(super) fn count_change(&self) -> io::Result<()> {
            let Some(left) = &self.changes_left else { return Ok(()) };
            let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            taken.map(drop).map_err(|_| {
                self.has_failed.store(true, Relaxed);
                io::Error::from(io::ErrorKind::StorageFull)
            })
        }
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut contents = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(contents)
}

/// Writes contents to the disk, under a name that nobody looks for. Nothing is left if that fails.
fn write_unfinished(folder: &Path, contents: &[u8]) -> io::Result<PathBuf> {
    let path = folder.join(format!(".{:016x}", net::system::random()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
    written.map(|()| path.clone()).inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })
}

fn finish(folder: &Path, unfinished: &Path, renamed: io::Result<()>) -> io::Result<()> {
    match renamed {
        Ok(()) => sync(folder),
        Err(error) => {
            let _ = fs::remove_file(unfinished);
            Err(error)
        }
    }
}

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn each(check: impl Fn(&StateFolder)) {
        let folder = testing::Folder::new();
        check(&StateFolder::Disk(folder.join("state")));
        check(&StateFolder::in_memory());
    }

    #[test]
    fn files_are_written_read_and_removed() {
        each(|state| {
            state.test().unwrap();
            assert_eq!(state.read("a").unwrap(), None);
            state.write("a", b"1").unwrap();
            state.write("a", b"2").unwrap();
            assert_eq!(state.read("a").unwrap().as_deref(), Some(&b"2"[..]));
            assert_eq!(state.names("").unwrap(), ["a"]);
            state.remove("a").unwrap();
            state.remove("a").unwrap();
            assert_eq!(state.names("").unwrap(), [""; 0]);
        });
    }

    #[test]
    fn a_file_is_created_once() {
        each(|state| {
            state.test().unwrap();
            assert!(state.create("lock", b"1").unwrap());
            assert!(!state.create("lock", b"2").unwrap());
            assert_eq!(state.read("lock").unwrap().as_deref(), Some(&b"1"[..]));
            assert!(state.rename("lock", "old").unwrap());
            assert!(!state.rename("lock", "old").unwrap());
            assert_eq!(state.names("").unwrap(), ["old"], "nothing unfinished is left");
        });
    }

    #[test]
    fn nobody_else_may_read_the_files() {
        let folder = testing::Folder::new();
        let state = StateFolder::Disk(folder.join("a/state"));
        state.test().unwrap();
        state.write("key", b"secret").unwrap();
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode();
        assert_eq!(mode("a/state") & 0o777, 0o700);
        assert_eq!(mode("a/state/key") & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_found_out() {
        let folder = testing::Folder::new();
        let file = folder.join("file");
        fs::write(&file, "").unwrap();
        assert!(StateFolder::Disk(file).test().is_err());
    }
}
