//! The path of a control socket, from its creation to its removal.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where the control socket is to be.
#[derive(Default)]
pub struct ControlPlace {
    /// The path that `-l` names, which holds whatever the configuration says.
    pub fixed: Option<PathBuf>,
    /// The socket, once it is open.
    pub open: Option<SocketPlace>,
}

/// A socket at its path.
pub struct SocketPlace {
    path: PathBuf,
    inode: u64,
    socket: OwnedFd,
}

impl SocketPlace {
    /// Creates a socket that only its owner may use. One that a process has left behind is
    /// replaced; `takes_over`: also one that is in use, by the program that this one replaces.
    pub fn open(path: &Path, takes_over: bool) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        if !takes_over && UnixStream::connect(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        if fs::symlink_metadata(&path).is_ok_and(|at| !is_socket(&at)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // It gets its name when nobody else can use it any more.
        let mut name = path.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let own = PathBuf::from(name);
        let _ = fs::remove_file(&own);
        let socket = UnixListener::bind(&own)?;
        let placed = Self::name(&own, &path, socket);
        if placed.is_err() {
            let _ = fs::remove_file(&own);
        }
        placed
    }

    fn name(own: &Path, path: &Path, socket: UnixListener) -> io::Result<Self> {
        fs::set_permissions(own, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        let inode = fs::symlink_metadata(own)?.ino();
        fs::rename(own, path)?;
        Ok(Self { path: path.to_owned(), inode, socket: socket.into() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn listener(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        // Another program may have put its own socket there.
        if fs::symlink_metadata(&self.path).is_ok_and(|at| at.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_socket(at: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    at.file_type().is_socket()
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    #[test]
    fn only_its_owner_may_use_it_and_it_is_removed() {
        let folder = Folder::new();
        let path = folder.join("weir.sock");
        let place = SocketPlace::open(&path, false).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(SocketPlace::open(&path, false).is_err(), "it is in use");
        let next = SocketPlace::open(&path, true).unwrap();
        drop(place);
        assert!(UnixStream::connect(&path).is_ok(), "that of the next program stays");
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_another_file_is_not() {
        let folder = Folder::new();
        let path = folder.join("weir.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        SocketPlace::open(&path, false).unwrap();
        let file = folder.join("file");
        fs::write(&file, "x").unwrap();
        assert!(SocketPlace::open(&file, false).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }
}
