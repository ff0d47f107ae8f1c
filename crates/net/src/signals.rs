//! Signals as messages with their sender, read from a descriptor instead of handled.
//!
//! They are blocked for the thread that takes them and every thread it starts afterwards: take them
//! before any worker starts. Programs are started with none blocked.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A signal's number on Linux.
pub type Number = i32;

pub use libc::{SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Which.
    pub number: Number,
    /// The process that sent it; 0: the kernel.
    pub sender: i32,
}

/// The signals that this process reads.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals and reads them from now on; ignores SIGPIPE.
    pub fn take(numbers: &[Number]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set that the other calls then read; a signal number
        // that does not exist makes them fail, which the last call reports.
        let fd = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &number in numbers {
                libc::sigaddset(set.as_mut_ptr(), number);
            }
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            let refused =
                libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            if refused != 0 {
                return Err(io::Error::from_raw_os_error(refused));
            }
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Hands every signal to `take`. Runs until dropped.
    pub async fn each(self, mut take: impl FnMut(Signal)) -> io::Result<()> {
        // SAFETY: the `Signals` stays open and unchanged inside the `AsyncFd` until both go.
        let fd = unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) }?;
        loop {
            let mut ready = fd.readable().await?;
            match fd.get_ref().next()? {
                Some(signal) => take(signal),
                None => ready.clear_ready(),
            }
        }
    }

    /// The next signal that is there, if any.
    fn next(&self) -> io::Result<Option<Signal>> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if read == size as isize {
            // SAFETY: the kernel filled all of it, and any bytes are a valid `signalfd_siginfo`.
            let info = unsafe { info.assume_init() };
            return Ok(Some(Signal {
                number: info.ssi_signo as Number,
                sender: info.ssi_pid as i32,
            }));
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error if error.kind() == io::ErrorKind::Interrupted => self.next(),
            error => Err(error),
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Blocks none any more: for a child between fork and exec, where this is allowed.
pub(crate) fn unblock_all() -> io::Result<()> {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that the other call then reads.
    let refused = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if refused == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(refused)) }
}

/// Sends a signal.
pub fn send(process: i32, number: Number) -> io::Result<()> {
    // SAFETY: takes and touches no memory.
    match unsafe { libc::kill(process, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
