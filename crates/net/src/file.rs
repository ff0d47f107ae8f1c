//! Files, as a server needs them: what changed, and whether the way there is trusted.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

/// What a path leads to, and by which it is recognised as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The device it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// When its content changed, in seconds since 1970.
    pub modified: i64,
    modified_nanoseconds: u64,
    changed: i64,
    changed_nanoseconds: u64,
    /// Its owner.
    pub owner: u32,
    mode: u32,
}

impl Stat {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Whether it is a file with content.
    pub fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    /// Whether its owner may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether content read now may be kept: a change within the same tick of the file system's
    /// clock would not show.
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

/// How long after its last change a file's content is not kept.
const SETTLED_MS: i64 = 2_000;

/// Whether a link stood in the way.
pub fn is_refused_link(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EMLINK))
}

/// Which symbolic links may be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// All.
    #[default]
    Follow,
    /// Those whose owner also owns what they lead to.
    IfNotOwner,
    /// None.
    Refuse,
}

/// What the path leads to.
pub fn stat(path: &[u8]) -> io::Result<Stat> {
    Ok(Stat::of(&rustix::fs::stat(OsStr::from_bytes(path))?))
}

/// What an open file is.
pub fn stat_open(file: &File) -> io::Result<Stat> {
    Ok(Stat::of(&rustix::fs::fstat(file)?))
}

/// Opens a file to read it. Never waits for a pipe's other end.
pub fn open(path: &[u8]) -> io::Result<File> {
    Ok(rustix::fs::open(OsStr::from_bytes(path), READ, Mode::empty())?.into())
}

/// Tells the kernel that a file will be read from its beginning to its end.
pub fn read_ahead(file: &File) {
    // Advice: that it is not taken is no error.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens a file, part by part of its path, so that links are not followed unseen. The first
/// `trusted` bytes of the path are taken as they are.
pub fn open_checked(path: &[u8], trusted: usize, links: Links) -> io::Result<File> {
    let trusted = trusted.min(path.len());
    let base = match &path[..trusted] {
        b"" if path.starts_with(b"/") => b"/",
        b"" => b".",
        base => base,
    };
    let mut at = walk(CWD.as_fd(), base, OFlags::DIRECTORY)?;
    let mut parts = path[trusted..].split(|b| *b == b'/').filter(|p| !p.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none() && !path.ends_with(b"/");
        at = step(&at, part, last, links)?;
    }
    Ok(at.into())
}

fn step(at: &OwnedFd, part: &[u8], last: bool, links: Links) -> io::Result<OwnedFd> {
    let kind = if last { OFlags::empty() } else { OFlags::DIRECTORY };
    if links == Links::Refuse {
        return walk(at.as_fd(), part, kind | OFlags::NOFOLLOW);
    }
    let opened = walk(at.as_fd(), part, kind)?;
    let name = OsStr::from_bytes(part);
    let link = Stat::of(&rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if link.is_link() && link.owner != rustix::fs::fstat(&opened)?.st_uid {
        return Err(io::Error::from_raw_os_error(libc::ELOOP));
    }
    Ok(opened)
}

fn walk(at: std::os::fd::BorrowedFd<'_>, part: &[u8], kind: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(at, OsStr::from_bytes(part), READ | kind, Mode::empty())?)
}
