//! Users and groups: finding them by name, and changing those of the process.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

/// The user and group that a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The user's name, for its supplementary groups.
    pub name: Box<[u8]>,
    pub user: u32,
    pub group: u32,
}

/// Maximum size of an entry in the user database: a group's entry lists all its members.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The process at the other end of a Unix socket, when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPeer {
    pub user: u32,
    pub process: i32,
}

/// Who is at the other end of a Unix socket.
pub fn peer(socket: BorrowedFd<'_>) -> Option<SocketPeer> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(SocketPeer { user: peer.uid.as_raw(), process: peer.pid.as_raw_nonzero().get() })
}

/// The ids of a user and of its primary group; `None`: there is no such user.
pub fn user(name: &[u8]) -> io::Result<Option<(u32, u32)>> {
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let found = find(name, |name, buffer, result| {
        let (bytes, len) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: all pointers are valid for the call, and `len` is the buffer's length.
        unsafe { libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), bytes, len, result) }
    })?;
    // SAFETY: all-zero bytes are a valid `passwd`, and the call has filled it where it found one.
    let entry = unsafe { entry.assume_init() };
    Ok(found.then_some((entry.pw_uid, entry.pw_gid)))
}

/// The id of a group; `None`: there is no such group.
pub fn group(name: &[u8]) -> io::Result<Option<u32>> {
    let mut entry = MaybeUninit::<libc::group>::zeroed();
    let found = find(name, |name, buffer, result| {
        let (bytes, len) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: all pointers are valid for the call, and `len` is the buffer's length.
        unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), bytes, len, result) }
    })?;
    // SAFETY: all-zero bytes are a valid `group`, and the call has filled it where it found one.
    let entry = unsafe { entry.assume_init() };
    Ok(found.then_some(entry.gr_gid))
}

/// Looks a name up with a buffer that grows until the entry fits.
fn find<T>(
    name: &[u8],
    mut ask: impl FnMut(&CStr, &mut [u8], *mut *mut T) -> i32,
) -> io::Result<bool> {
    let name = CString::new(name)?;
    let mut buffer = vec![0u8; 1024];
    loop {
        let mut result = std::ptr::null_mut();
        match ask(&name, &mut buffer, &mut result) {
            0 => return Ok(!result.is_null()),
            libc::ERANGE if buffer.len() < ENTRY_BYTES_MAX => buffer.resize(buffer.len() * 2, 0),
            libc::EINTR => {}
            // Errors for an unknown name, by getpwnam(3).
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(false),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A failed step of [`become_identity`], in nginx's words up to the system's reason.
#[derive(Debug)]
pub struct NotBecome {
    /// `setuid(33) failed`
    pub what: String,
    pub error: io::Error,
}

/// Permanently changes the user and groups of the whole process, with libc's calls for all threads;
/// meant for a process that still has only one.
pub fn become_identity(identity: &ProcessIdentity) -> Result<(), NotBecome> {
    let ProcessIdentity { name, user, group } = identity;
    let display = String::from_utf8_lossy(name);
    let name = CString::new(&**name).unwrap_or_default();
    // SAFETY: the call takes only numbers.
    check(format!("setgid({group}) failed"), unsafe { libc::setgid(*group) })?;
    // SAFETY: the name is a C string that outlives the call.
    let groups = unsafe { libc::initgroups(name.as_ptr(), *group) };
    check(format!("initgroups({display}, {group}) failed"), groups)?;
    // SAFETY: the call takes only numbers.
    check(format!("setuid({user}) failed"), unsafe { libc::setuid(*user) })
}

fn check(what: String, result: i32) -> Result<(), NotBecome> {
    match result {
        0 => Ok(()),
        _ => Err(NotBecome { what, error: io::Error::last_os_error() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name() {
        assert_eq!(user(b"root").unwrap(), Some((0, 0)));
        assert_eq!(group(b"root").unwrap(), Some(0));
        assert_eq!(user(b"nobody at all").unwrap(), None);
        assert_eq!(group(b"nobody at all").unwrap(), None);
        assert!(user(b"ro\0ot").is_err());
    }
}
