//! This process and its children: what has no place in `std`.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// This process's number.
pub fn id() -> i32 {
    std::process::id().cast_signed()
}

/// Waits until one of the descriptors can be read, or the time is over; says which can.
pub fn wait_readable(
    descriptors: &[BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let mut polled: Vec<_> =
        descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match rustix::event::poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// Goes into the background: the caller goes on in a child of its own session without a terminal.
///
/// Only for a process that has one thread yet: the child would miss the others.
pub fn daemonize() -> io::Result<()> {
    // SAFETY: with one thread there is no lock another could hold in the child; the parent leaves
    // at once without running destructors, which belong to the child.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        _ => unsafe { libc::_exit(0) },
    }
    rustix::process::setsid()?;
    rustix::process::umask(rustix::fs::Mode::empty());
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// The local time, as strftime(3) writes it.
pub fn local_time(format: &str) -> String {
    let format = std::ffi::CString::new(format).unwrap_or_default();
    let mut text = [0u8; 64];
    // SAFETY: `time` takes a null pointer; `localtime_r` fills the structure given to it, and
    // `strftime` writes no more than the length given.
    let len = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut broken_down: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut broken_down);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &broken_down)
    };
    String::from_utf8_lossy(&text[..len]).into_owned()
}

/// The number of processors.
pub fn processors() -> usize {
    // SAFETY: takes and touches no memory.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1).max(1)
}
