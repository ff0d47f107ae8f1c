//! This process and its children: functions that `std` lacks.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit, WaitOptions};

use crate::{signals, title};

/// The id of this process.
pub fn id() -> i32 {
    std::process::id().cast_signed()
}

/// The id of the parent process.
pub fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get())
}

/// The number of online processors.
pub fn processors() -> usize {
    // SAFETY: the call takes no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1).max(1)
}

/// Name and release of the operating system: `Linux 6.1.0`.
pub fn system() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// Goes into the background: continues in a child with a session of its own and no terminal.
///
/// Only for a process with one thread: the child would miss the others.
pub fn daemonize() -> io::Result<()> {
    // SAFETY: with one thread there is no lock that another could hold in the child.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: exits without running destructors, which are left to the child.
        _ => unsafe { libc::_exit(0) },
    }
    rustix::process::setsid()?;
    rustix::process::umask(Mode::empty());
    let null = nothing()?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Takes the descriptor of standard input and replaces it with `/dev/null`.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(nothing()?)?;
    Ok(taken)
}

/// Redirects standard error to a file.
pub fn redirect_stderr(file: &File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// A program to be started as a child: this one again, or one that replaces it.
pub struct Launch {
    command: Command,
    inherited: Vec<RawFd>,
}

impl Launch {
    /// This program itself, even if its file has been replaced since, called `name`.
    pub fn again(name: &OsStr) -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(name);
        Self::new(command)
    }

    /// The program at a path, called `name`.
    pub fn other(path: &OsStr, name: &OsStr) -> Self {
        let mut command = Command::new(path);
        command.arg0(name);
        Self::new(command)
    }

    fn new(mut command: Command) -> Self {
        command.env_clear().env(title::ROOM, "-".repeat(title::ROOM_BYTES));
        Self { command, inherited: Vec::new() }
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds an environment variable; no others are inherited.
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the standard input.
    pub fn stdin(mut self, fd: OwnedFd) -> Self {
        self.command.stdin(Stdio::from(fd));
        self
    }

    /// Passes on a descriptor under the same number.
    pub fn inherit(mut self, fd: BorrowedFd<'_>) -> Self {
        self.inherited.push(fd.as_raw_fd());
        self
    }

    /// Starts the program and returns its process id. [`reap`] reports its end.
    pub fn start(mut self) -> io::Result<i32> {
        let inherited = std::mem::take(&mut self.inherited);
        let prepare = move || {
            signals::unblock_all()?;
            for fd in &inherited {
                // SAFETY: the caller of `inherit` keeps the descriptor open until the start, and
                // the child has a copy of it.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure calls nothing but fcntl(2) and
        // pthread_sigmask(3), which is allowed there.
        unsafe { self.command.pre_exec(prepare) };
        Ok(self.command.spawn()?.id().cast_signed())
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The child exited with this code.
    Code(i32),
    /// A signal ended the child.
    Signal {
        number: i32,
        /// Whether a core file was written.
        core: bool,
    },
}

/// Reaps a child that has ended, if there is one.
pub fn reap() -> io::Result<Option<(i32, Exit)>> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(None) => return Ok(None),
            Ok(Some((child, status))) => {
                let core = libc::WCOREDUMP(status.as_raw());
                let exit = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (_, Some(number)) => Exit::Signal { number, core },
                    _ => continue,
                };
                return Ok(Some((child.as_raw_nonzero().get(), exit)));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The soft and the hard limit of open files; `None`: unlimited.
pub fn open_files_limit() -> (Option<u64>, Option<u64>) {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    (limit.current, limit.maximum)
}

/// Raises the soft limit of open files to the hard one.
pub fn raise_open_files_limit() -> io::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}

/// Makes room for `count` descriptors, as far as the limit allows. The kernel's table doubles when
/// it is full, and in a process with several threads the thread that fills it then waits for all
/// CPUs. That takes milliseconds, which would disturb requests and measurements.
pub fn reserve_descriptors(count: u64) -> io::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let last = i32::try_from(count.min(limit)).unwrap_or(i32::MAX) - 1;
    // The table never shrinks.
    drop(rustix::io::fcntl_dupfd_cloexec(File::open("/")?, last.max(0))?);
    Ok(())
}

/// Sets both limits of open files.
pub fn set_open_files_limit(files: u64) -> io::Result<()> {
    set_limit(Resource::Nofile, files)
}

/// Sets both limits of the size of core files.
pub fn set_core_limit(bytes: u64) -> io::Result<()> {
    set_limit(Resource::Core, bytes)
}

fn set_limit(resource: Resource, limit: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Names the calling thread; the name of the first thread is the process's, which ps, pidof and
/// ss show. The kernel keeps the first 15 bytes.
pub fn set_name(name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    Ok(rustix::thread::set_name(&name)?)
}

/// Sets the scheduling priority of the process.
pub fn set_priority(priority: i32) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, priority)?)
}

/// Restricts the calling thread to these processors.
pub fn set_affinity(processors: &[usize]) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    let known = |processor: &&usize| **processor < rustix::thread::CpuSet::MAX_CPU;
    processors.iter().filter(known).for_each(|processor| set.set(*processor));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Allows core files although the process has changed its user.
pub fn allow_core_files() -> io::Result<()> {
    let dumpable = rustix::process::DumpableBehavior::Dumpable;
    Ok(rustix::process::set_dumpable_behavior(dumpable)?)
}

/// Takes a descriptor that was passed to this program by number.
///
/// `None`: it was not passed, or has been taken already. Passed descriptors lack the close-on-exec
/// flag; all descriptors that this program opens have it, and taken ones get it. So a descriptor
/// with an owner cannot be taken.
pub fn inherited(number: RawFd) -> Option<OwnedFd> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a query about a number that is not open fails harmlessly.
    let borrowed = (number > 2).then(|| unsafe { BorrowedFd::borrow_raw(number) })?;
    let flags = rustix::io::fcntl_getfd(borrowed).ok()?;
    if flags.contains(FdFlags::CLOEXEC) {
        return None;
    }
    rustix::io::fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC).ok()?;
    // SAFETY: the descriptor is open, and was passed to this program. It has no owner here, or it
    // would have the close-on-exec flag.
    Some(unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) })
}

/// Sets a descriptor to non-blocking.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// Lets the tests with children run one after the other: [`reap`] takes any child.
#[cfg(test)]
pub(crate) fn children_of_one_test() -> std::sync::MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_get_arguments_and_descriptors_and_are_reaped() {
        let _turn = children_of_one_test();
        let (near, far) = crate::channel::pair().unwrap();
        let number = far.as_raw_fd();
        let _taken = signals::Signals::take(&[signals::SIGUSR1]).unwrap();
        let blocked = "grep -q 'SigBlk:.*0000$' /proc/self/status";
        let script =
            format!("test \"$A\" = b && test -e /proc/self/fd/{number} && {blocked} && exit 7");
        let child = Launch::other(OsStr::new("/bin/sh"), OsStr::new("sh"))
            .argument("-c")
            .argument(script)
            .variable("A", "b")
            .inherit(far.as_fd())
            .start()
            .unwrap();
        let ended = loop {
            match reap().unwrap() {
                Some(ended) => break ended,
                None => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        };
        assert_eq!(ended, (child, Exit::Code(7)));
        drop(near);
    }

    #[test]
    fn a_closed_descriptor_is_not_inherited() {
        assert!(inherited(1 << 20).is_none());
    }

    #[test]
    fn a_descriptor_with_an_owner_is_not_taken() {
        let (own, given) = crate::channel::pair().unwrap();
        assert!(inherited(own.as_raw_fd()).is_none());
        // As exec would leave it.
        rustix::io::fcntl_setfd(&given, FdFlags::empty()).unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(given);
        let taken = inherited(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(inherited(number).is_none(), "it has an owner now");
    }
}
