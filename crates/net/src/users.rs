//! Users and groups: who a name means, and becoming them.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;

/// Who a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The user's name, for the groups that list it.
    pub name: Box<[u8]>,
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

/// Bytes for an entry of the user database: a group's entry names all its members.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The numbers of the user of that name and of its own group; `None`: there is none.
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

/// The number of the group of that name; `None`: there is none.
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

/// Asks with a buffer that grows until the answer fits.
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
            // What databases say of a name they do not have, by getpwnam(3).
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(false),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A step of becoming another that failed, in nginx's words up to the system's reason.
#[derive(Debug)]
pub struct NotBecome {
    /// `setuid(33) failed`
    pub what: String,
    /// Why.
    pub error: io::Error,
}

/// Makes the whole process run as another, for good. libc's calls do this for every thread; it is
/// meant for a process that has one yet.
pub fn become_identity(identity: &ProcessIdentity) -> Result<(), NotBecome> {
    let ProcessIdentity { name, user, group } = identity;
    let display = String::from_utf8_lossy(name);
    let name = CString::new(&**name).unwrap_or_default();
    // SAFETY: takes numbers only.
    check(format!("setgid({group}) failed"), unsafe { libc::setgid(*group) })?;
    // SAFETY: the name is a C string that outlives the call.
    let groups = unsafe { libc::initgroups(name.as_ptr(), *group) };
    check(format!("initgroups({display}, {group}) failed"), groups)?;
    // SAFETY: takes numbers only.
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
    fn names_have_numbers() {
        assert_eq!(user(b"root").unwrap(), Some((0, 0)));
        assert_eq!(group(b"root").unwrap(), Some(0));
        assert_eq!(user(b"nobody at all").unwrap(), None);
        assert_eq!(group(b"nobody at all").unwrap(), None);
        assert!(user(b"ro\0ot").is_err());
    }
}
