//! Signals and their senders, read from a descriptor instead of handled.
//!
//! They are blocked in the thread that takes them and in the threads that it starts afterwards:
//! take them before any worker starts, or block them in each worker. Child programs start with no
//! signal blocked.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::event_loop::{Interest, Watched};

/// A signal's number on Linux.
pub type SignalNumber = i32;

pub use libc::{SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub number: SignalNumber,
    /// The process that sent it; 0: the kernel.
    pub sender: i32,
}

/// The signals that this process reads from a descriptor.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals in order to read them, and ignores SIGPIPE.
    pub fn take(numbers: &[SignalNumber]) -> io::Result<Self> {
        block(numbers)?;
        let set = set_of(numbers);
        // SAFETY: `set` is only read.
        let fd = unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Calls `take` with every signal. Runs until dropped.
    pub async fn each(self, mut take: impl FnMut(Signal)) -> io::Result<()> {
        let signals = Watched::new(self.fd, Interest::Read)?;
        loop {
            take(signals.read(|fd| next(fd.as_fd())).await?);
        }
    }
}

/// The next pending signal.
fn next(fd: BorrowedFd<'_>) -> Result<Signal, Errno> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes at most `size` bytes into `info`.
    let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
    if read != size as isize {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: the kernel has filled all of it, and any bytes are a valid `signalfd_siginfo`.
    let info = unsafe { info.assume_init() };
    Ok(Signal { number: info.ssi_signo as SignalNumber, sender: info.ssi_pid as i32 })
}

/// Blocks these signals in this thread: other threads handle or read them.
pub fn block(numbers: &[SignalNumber]) -> io::Result<()> {
    mask(libc::SIG_BLOCK, numbers)
}

/// Restores the default effect of these signals, even if the parent process ignores them, as a
/// shell does with SIGINT for background jobs.
pub fn set_default(numbers: &[SignalNumber]) -> io::Result<()> {
    for &number in numbers {
        // SAFETY: the default effect replaces no handler of ours; no memory is touched.
        if unsafe { libc::signal(number, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether the signal of [`note_once`] has come.
static NOTED: AtomicBool = AtomicBool::new(false);

/// Notes a signal once instead of ending this process: a second one has the default effect. Child
/// programs start with the default effect. A signal that the parent process ignores stays ignored.
///
/// For programs without an event loop, which cannot read [`Signals`] while they wait for a child.
pub fn note_once(number: SignalNumber) -> io::Result<&'static AtomicBool> {
    extern "C" fn note(_: SignalNumber) {
        NOTED.store(true, Ordering::Relaxed);
    }
    // SAFETY: all zeroes are a valid `sigaction`; the handler only stores to an atomic, which is
    // safe at any time.
    let done = unsafe {
        let mut old = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        let mut new = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        new.sa_sigaction = note as extern "C" fn(SignalNumber) as libc::sighandler_t;
        new.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
        match libc::sigaction(number, std::ptr::null(), &raw mut old) {
            0 if old.sa_sigaction == libc::SIG_IGN => 0,
            0 => libc::sigaction(number, &raw const new, std::ptr::null_mut()),
            refused => refused,
        }
    };
    if done == 0 { Ok(&NOTED) } else { Err(io::Error::last_os_error()) }
}

/// Unblocks these signals in this thread.
pub fn unblock(numbers: &[SignalNumber]) -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, numbers)
}

/// Unblocks all signals, in a child between fork and exec, where this is allowed.
pub(crate) fn unblock_all() -> io::Result<()> {
    mask(libc::SIG_SETMASK, &[])
}

fn mask(how: i32, numbers: &[SignalNumber]) -> io::Result<()> {
    let set = set_of(numbers);
    // SAFETY: `set` is only read, and the old mask is not requested.
    match unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        refused => Err(io::Error::from_raw_os_error(refused)),
    }
}

fn set_of(numbers: &[SignalNumber]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set; an invalid signal number is not added.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &number in numbers {
            libc::sigaddset(set.as_mut_ptr(), number);
        }
        set.assume_init()
    }
}

/// Sends a signal to a process.
pub fn send(process: i32, number: SignalNumber) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::kill(process, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
