//! Temporary files: numbered, in a directory with levels of subdirectories that keep each small.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use cache::FileFacts;
use conf::{Directive, Load, Result, Span, Value, units};

use crate::exchange::FileSlice;
use crate::places::Places;

/// The most levels of subdirectories.
const LEVELS_MAX: usize = 3;
/// The most characters in the names of all levels.
const LEVEL_CHARACTERS_MAX: u64 = 10;
/// The most names to try before an error.
const TRIES_MAX: u32 = 64;

/// The directory of temporary files: `client_body_temp_path /tmp/body 1 2`.
#[derive(Clone, Debug)]
pub struct TempPath {
    directory: Arc<Path>,
    /// The line that names it; `None` for the default.
    named: Option<Span>,
    levels: [u8; LEVELS_MAX],
}

/// The directories for temporary files of a configuration. They are created before workers start.
#[derive(Default)]
pub struct TempPaths(pub Vec<TempFolder>);

pub struct TempFolder {
    pub path: PathBuf,
    /// The first line that names it; `None` for the default.
    pub named: Option<Span>,
}

/// When a temporary file is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TempFileEnd {
    /// At its creation: it has no name, and is gone once it is closed.
    Nameless,
    /// When it is closed.
    Deleted,
    Kept,
}

pub struct TempFile {
    file: Rc<File>,
    path: PathBuf,
    fate: TempFileEnd,
    length: u64,
}

impl Value for TempPath {
    const ARGS: RangeInclusive<usize> = 1..=1 + LEVELS_MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = &from.arg(0).text;
        let installed = load.registry.of::<Places>().temp(name).filter(|_| load.reads_defaults);
        let directory = match installed {
            Some(place) => load.prefix.join(place),
            None => load.path(name.strip_suffix(b"/").unwrap_or(name)),
        };
        let mut levels = [0; LEVELS_MAX];
        let mut characters = 0;
        for (level, word) in levels.iter_mut().zip(&from.args[1..]) {
            let invalid = || from.refuse("invalid value").marked(word.span);
            let number = units::number(&word.text).filter(|n| *n > 0).ok_or_else(invalid)?;
            characters += number.min(LEVEL_CHARACTERS_MAX + 1);
            if characters > LEVEL_CHARACTERS_MAX {
                return Err(invalid());
            }
            *level = number as u8;
        }
        let named = (!load.reads_defaults).then(|| from.words());
        Ok(Self { directory: directory.into(), named, levels })
    }
}

impl TempPaths {
    fn add(&mut self, path: &Path, named: Option<Span>) {
        if !self.0.iter().any(|known| known.path == path) {
            self.0.push(TempFolder { path: path.to_owned(), named });
        }
    }
}

impl TempPath {
    /// For users that create no files.
    pub fn none() -> Self {
        Self { directory: Path::new("").into(), named: None, levels: [0; LEVELS_MAX] }
    }

    /// Demands that the directory is created before workers start, because a block uses it.
    pub fn need(&self, load: &mut Load<'_>) {
        load.registry.of::<TempPaths>().add(&self.directory, self.named);
    }

    /// Creates a file. Errors come with the path that could not be created.
    pub fn create(&self, fate: TempFileEnd) -> Result<TempFile, (PathBuf, io::Error)> {
        let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut made_directories = false;
        for _ in 0..TRIES_MAX {
            let path = self.path(number);
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(TempFile::new(file, path, fate)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number = NEXT.fetch_add(1 + collision(), Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !made_directories => {
                    made_directories = true;
                    make_directories(&path)?;
                }
                Err(error) => return Err((path, error)),
            }
        }
        Err((self.path(number), io::ErrorKind::AlreadyExists.into()))
    }

    /// `0000000026` with levels 1 and 2 is `6/02/0000000026`.
    fn path(&self, number: u32) -> PathBuf {
        let name = format!("{number:010}");
        let mut path = self.directory.to_path_buf();
        let mut end = name.len();
        for level in self.levels.iter().take_while(|level| **level > 0) {
            let start = end - usize::from(*level);
            path.push(&name[start..end]);
            end = start;
        }
        path.push(name);
        path
    }
}

/// The number of the next file of this process. As in nginx, the first is 1.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// An increment that skips the numbers of files that an earlier process has left.
fn collision() -> u32 {
    (net::clock::unix_ms() as u32).wrapping_mul(0x9e37_79b9) >> 8
}

/// The path of a temporary file beside the place of another.
fn beside(place: &Path, number: u32) -> PathBuf {
    let mut path = place.as_os_str().to_owned();
    path.push(format!(".{number:010}"));
    path.into()
}

fn make_directories(path: &Path) -> Result<(), (PathBuf, io::Error)> {
    let directory = path.parent().unwrap_or(path);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| (directory.to_owned(), error))
}

impl TempFile {
    fn new(file: File, path: PathBuf, fate: TempFileEnd) -> Self {
        if fate == TempFileEnd::Nameless {
            // If this fails, the file only stays on disk.
            let _ = std::fs::remove_file(&path);
        }
        Self { file: Rc::new(file), path, fate, length: 0 }
    }

    /// Creates a file beside the place that it will be moved to. Errors come with the path that
    /// could not be created.
    pub fn beside(place: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (mut made_directories, mut tries) = (false, 0);
        loop {
            let path = beside(place, number);
            tries += 1;
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self::new(file, path, TempFileEnd::Deleted)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES_MAX => {
                    number = NEXT.fetch_add(1 + collision(), Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !made_directories => {
                    made_directories = true;
                    make_directories(&path)?;
                }
                Err(error) => return Err((path, error)),
            }
        }
    }

    /// What the index of a cache needs to know of it, and when it was written, in nanoseconds since
    /// 1970.
    pub fn facts(&self) -> io::Result<(FileFacts, u64)> {
        let metadata = self.file.metadata()?;
        Ok((FileFacts::of(&metadata), cache::purge::modified_ns(&metadata)))
    }

    /// Sets when it was written, in nanoseconds since 1970.
    pub fn set_modified(&self, modified_ns: u64) -> io::Result<()> {
        self.file.set_modified(UNIX_EPOCH + Duration::from_nanos(modified_ns))
    }

    /// Another descriptor of it.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes over bytes that it has already.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Its path, or its former path if it is nameless.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets its permissions and, if given, its time. Errors come with the name of the system call.
    pub fn prepare(
        &self,
        mode: u32,
        modified: Option<i64>,
    ) -> Result<(), (&'static str, io::Error)> {
        let set = self.file.set_permissions(Permissions::from_mode(mode));
        set.map_err(|error| ("chmod()", error))?;
        let Some(modified) = modified else { return Ok(()) };
        let distance = Duration::from_secs(modified.unsigned_abs());
        let time = match modified {
            0.. => UNIX_EPOCH.checked_add(distance),
            _ => UNIX_EPOCH.checked_sub(distance),
        };
        let set = time.map_or(Ok(()), |time| self.file.set_modified(time));
        set.map_err(|error| ("utimes()", error))
    }

    /// Moves it to `place` for good. Missing directories are created, with search permission for
    /// everybody who may read the file. Errors come with the name of the system call.
    pub fn move_to(mut self, place: &Path, mode: u32) -> Result<(), (&'static str, io::Error)> {
        let mut moved = std::fs::rename(&self.path, place);
        if matches!(&moved, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            let directory = place.parent().unwrap_or(place);
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(mode | (mode & 0o444) >> 2).create(directory);
            made.map_err(|error| ("mkdir()", error))?;
            moved = std::fs::rename(&self.path, place);
        }
        match moved {
            Ok(()) => {
                self.fate = TempFileEnd::Kept;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy_to(place),
            Err(error) => Err(("rename()", error)),
        }
    }

    /// Moves it to another file system: copies it into the directory of `place`, then renames it.
    fn copy_to(&self, place: &Path) -> Result<(), (&'static str, io::Error)> {
        let beside = &beside(place, NEXT.fetch_add(1, Ordering::Relaxed));
        let copied = std::fs::copy(&self.path, beside).and_then(|_| {
            let time = self.file.metadata()?.modified()?;
            File::options().write(true).open(beside)?.set_modified(time)
        });
        let moved = copied
            .map_err(|error| ("copy()", error))
            .and_then(|()| std::fs::rename(beside, place).map_err(|error| ("rename()", error)));
        if moved.is_err() {
            let _ = std::fs::remove_file(beside);
        }
        moved
    }

    /// The whole file.
    pub fn slice(&self) -> FileSlice {
        FileSlice { file: self.file.clone(), start: 0, end: self.length }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.fate == TempFileEnd::Deleted {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(directory: &Path, levels: [u8; 3]) -> TempPath {
        TempPath { directory: directory.into(), named: None, levels }
    }

    #[test]
    fn levels_are_the_end_of_the_name() {
        let table = [
            ([0, 0, 0], "/t/0000012345"),
            ([1, 0, 0], "/t/5/0000012345"),
            ([1, 2, 0], "/t/5/34/0000012345"),
            ([3, 3, 4], "/t/345/012/0000/0000012345"),
        ];
        for (levels, path) in table {
            assert_eq!(at(Path::new("/t"), levels).path(12345), Path::new(path));
        }
    }

    #[test]
    fn a_file_beside_another_has_a_name_of_its_own() {
        let folder = ::testing::Folder::new();
        let place = folder.join("deep/place");
        let one = TempFile::beside(&place).unwrap();
        // The numbers of a process that has crashed are in the way.
        NEXT.fetch_sub(1, Ordering::Relaxed);
        let other = TempFile::beside(&place).unwrap();
        assert!(one.path() != other.path() && one.path().parent() == place.parent());
    }

    #[test]
    fn a_file_is_deleted_as_demanded() {
        let folder = ::testing::Folder::new();
        for (fate, while_open, after) in [
            (TempFileEnd::Nameless, false, false),
            (TempFileEnd::Deleted, true, false),
            (TempFileEnd::Kept, true, true),
        ] {
            let mut file = at(&folder.join("deep"), [1, 2, 0]).create(fate).unwrap();
            file.append(b"one").unwrap();
            file.append(b"two").unwrap();
            let (path, slice) = (file.path().to_owned(), file.slice());
            assert_eq!(path.exists(), while_open, "{fate:?}");
            drop(file);
            assert_eq!(path.exists(), after, "{fate:?}");
            let mut bytes = [0; 6];
            slice.file.read_exact_at(&mut bytes, slice.start).unwrap();
            assert_eq!((&bytes, slice.end), (b"onetwo", 6));
        }
    }
}
