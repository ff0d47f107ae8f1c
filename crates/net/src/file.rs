//! Files for a server: identity, changes, permission, and paths with untrusted links.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::ReadWriteFlags;

/// Attributes of a file, which show whether it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub device: u64,
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change to the content, in seconds since 1970.
    pub modified: i64,
    modified_nanoseconds: u64,
    changed: i64,
    changed_nanoseconds: u64,
    /// The user id of the owner.
    pub owner: u32,
    mode: u32,
}

impl Stat {
    pub fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    pub fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    pub fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    /// The time of the last change to the content, in nanoseconds since 1970.
    pub fn modified_ns(&self) -> u64 {
        let seconds = u64::try_from(self.modified).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(self.modified_nanoseconds)
    }

    /// Whether the owner may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether content read now may be kept: a change within the same tick of the file system's
    /// clock would go unnoticed.
    pub fn is_settled(&self, unix_ms: u64) -> bool {
        self.changed.max(self.modified).saturating_mul(1000).saturating_add(SETTLED_MS)
            <= unix_ms as i64
    }

    fn of(raw: &rustix::fs::Stat) -> Self {
        Self {
            device: raw.st_dev,
            inode: raw.st_ino,
            size: raw.st_size as u64,
            modified: raw.st_mtime,
            modified_nanoseconds: raw.st_mtime_nsec,
            changed: raw.st_ctime,
            changed_nanoseconds: raw.st_ctime_nsec,
            owner: raw.st_uid,
            mode: raw.st_mode,
        }
    }
}

/// The user id of a file's owner.
pub fn owner(path: &Path) -> io::Result<u32> {
    Ok(rustix::fs::stat(path)?.st_uid)
}

/// Whether a path is a directory, not a link to one, that belongs to this process's user, and to
/// which no other user may write.
pub fn is_private_directory(path: &Path) -> io::Result<bool> {
    const OTHERS_WRITE: u32 = 0o022;
    let stat = rustix::fs::lstat(path)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    Ok(is_directory && stat.st_uid == crate::user() && stat.st_mode & OTHERS_WRITE == 0)
}

/// Fails unless this process may create files in a directory.
pub fn may_make_files_in(directory: &Path) -> io::Result<()> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(rustix::fs::accessat(CWD, directory, access, AtFlags::EACCESS)?)
}

/// Fails unless this process may write to a file.
pub fn may_write(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

/// Content is not kept until this long after the file's last change.
const SETTLED_MS: i64 = 2_000;

/// Why a path could not be opened or examined.
#[derive(Debug)]
pub struct PathError {
    /// The failed call, as log lines name it: `open()`.
    pub call: &'static str,
    pub error: io::Error,
}

impl PathError {
    /// An error remembered by its number.
    pub fn again(call: &'static str, errno: i32) -> Self {
        Self { call, error: io::Error::from_raw_os_error(errno) }
    }

    /// Whether the file does not exist, or cannot exist.
    pub fn is_not_found(&self) -> bool {
        use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
        matches!(self.error.kind(), NotFound | NotADirectory | InvalidFilename)
    }

    pub fn is_denied(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether the path has a symbolic link that may not be followed.
    pub fn is_refused_link(&self) -> bool {
        matches!(self.error.raw_os_error(), Some(libc::ELOOP | libc::EMLINK))
    }
}

fn failed<E: Into<io::Error>>(call: &'static str) -> impl Fn(E) -> PathError {
    move |error| PathError { call, error: error.into() }
}

/// The free space of the file system that a path is on, for users without privileges.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Which symbolic links may be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// All links.
    #[default]
    Follow,
    /// Links whose owner also owns the target.
    IfNotOwner,
    /// No links.
    Refuse,
}

/// The attributes of a file; links are followed.
pub fn stat(path: &[u8]) -> Result<Stat, PathError> {
    match rustix::fs::stat(OsStr::from_bytes(path)) {
        Ok(raw) => Ok(Stat::of(&raw)),
        Err(error) => Err(failed("stat()")(error)),
    }
}

/// The attributes of a file or, if it is a link, of the link.
pub fn stat_link(path: &[u8]) -> Result<Stat, PathError> {
    match rustix::fs::lstat(OsStr::from_bytes(path)) {
        Ok(raw) => Ok(Stat::of(&raw)),
        Err(error) => Err(failed("lstat()")(error)),
    }
}

/// The attributes of an open file.
pub fn stat_open(file: &File) -> Result<Stat, PathError> {
    rustix::fs::fstat(file).map(|raw| Stat::of(&raw)).map_err(failed("fstat()"))
}

/// Opens a file for reading. Does not wait for the other end of a pipe.
pub fn open(path: &[u8]) -> Result<File, PathError> {
    walk(CWD, path, READ).map(File::from).map_err(failed("open()"))
}

/// Opens an open file again, for reading without the kernel's cache.
pub fn open_direct(file: &File) -> io::Result<File> {
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(name, READ | OFlags::DIRECT, Mode::empty())?.into())
}

/// Whether the kernel has this part of the file in memory, so that reading it does not block.
pub fn is_in_memory(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let mut into = [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, &mut into, at, ReadWriteFlags::NOWAIT).is_ok()
}

/// Tells the kernel that a file will be read from its beginning to its end.
pub fn read_ahead(file: &File) {
    // Only advice: a failure does not matter.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Flags for a directory on the path, which need not be readable.
const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a file part by part of its path, to check each link. The first `trusted` bytes of the
/// path, which end before a slash, are not checked.
///
/// Where links are refused, a link in place of a directory fails with "not a directory", as in
/// nginx, since it is opened with `O_PATH`.
pub fn open_checked(path: &[u8], trusted: usize, links: Links) -> Result<File, PathError> {
    let (base, rest) = path.split_at(trusted.min(path.len()));
    let mut at = match (base, path) {
        (b"", [b'/', ..]) => walk(CWD, b"/", PASS).map_err(failed("openat()"))?,
        (b"", _) => walk(CWD, b".", PASS).map_err(failed("openat()"))?,
        _ => walk(CWD, base, PASS).map_err(failed("open()"))?,
    };
    let (directories, name) = match rest.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&rest[..slash], &rest[slash + 1..]),
        None => (&b""[..], rest),
    };
    for part in directories.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        at = step(at.as_fd(), part, PASS, links).map_err(failed("openat()"))?;
    }
    let opened = match name {
        b"" => walk(at.as_fd(), b".", READ),
        name => step(at.as_fd(), name, READ, links),
    };
    opened.map(File::from).map_err(failed("openat()"))
}

fn step(
    at: BorrowedFd<'_>,
    part: &[u8],
    flags: OFlags,
    links: Links,
) -> rustix::io::Result<OwnedFd> {
    if links == Links::Refuse {
        return walk(at, part, flags | OFlags::NOFOLLOW);
    }
    let opened = walk(at, part, flags)?;
    // Whether the part was a link when it was opened is unknown, so owners are always compared.
    let own = rustix::fs::statat(at, OsStr::from_bytes(part), AtFlags::SYMLINK_NOFOLLOW)?;
    if own.st_uid == rustix::fs::fstat(&opened)?.st_uid {
        Ok(opened)
    } else {
        Err(rustix::io::Errno::LOOP)
    }
}

fn walk(at: BorrowedFd<'_>, part: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(at, OsStr::from_bytes(part), flags, Mode::empty())
}

#[cfg(test)]
mod tests;
