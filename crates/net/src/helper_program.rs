//! A program that does a short job for this one, such as a script of the administrator's.
//!
//! It runs in a process group of its own, with the variables it is given and no others, `/` as its
//! folder, and nothing to read. The invariant: at its deadline, or when the job is dropped, the
//! program is killed with its process group. A child that outlives a program that ended by itself
//! goes on.

use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};

use crate::event_loop::{Interest, Watched};
use crate::process::Exit;
use crate::{Timer, process, signals, sleep, spawn_if_running};

/// How long a killed program may take to end.
const DYING_MS_MAX: u64 = 5000;
/// How often a killed program that nobody waits for is looked at, and how many times.
const REAP_PAUSE: Duration = Duration::from_millis(100);
const REAPS_MAX: usize = 50;
/// Bytes of output that are read at once.
const READ_BYTES: usize = 4096;
/// The most bytes read after the program has ended: a child of it may still write.
const LAST_BYTES_MAX: usize = 64 * 1024;

/// A program to be run.
#[derive(Clone, Debug)]
pub struct HelperProgram {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The environment.
    pub variables: Vec<(&'static str, OsString)>,
}

/// What a program has done.
#[derive(Debug)]
pub struct HelperOutcome {
    /// `None`: it was killed at its deadline.
    pub exit: Option<Exit>,
    /// The first bytes of what it wrote to its standard output and error.
    pub output: Vec<u8>,
}

impl HelperProgram {
    /// Runs the program for `time_ms_max` at most, after which its process group is killed. So it
    /// is if this is dropped.
    pub async fn run(
        &self,
        time_ms_max: u64,
        output_bytes_max: usize,
    ) -> io::Result<HelperOutcome> {
        let (mut running, pipe) = self.start()?;
        let deadline = Timer::new();
        deadline.set(time_ms_max);
        let mut output = Vec::new();
        let exit = deadline.limit(running.follow(&pipe, &mut output, output_bytes_max)).await;
        let exit = match exit {
            Some(exit) => Some(exit?),
            None => {
                running.kill();
                deadline.set(DYING_MS_MAX);
                let _ = deadline.limit(running.end()).await;
                None
            }
        };
        read_rest(pipe.get(), &mut output, output_bytes_max);
        Ok(HelperOutcome { exit, output })
    }

    fn start(&self) -> io::Result<(RunningHelper, Watched)> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        process::set_nonblocking(&read)?;
        let read = Watched::new(read, Interest::Read)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (OsStr::new(name), value)));
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(write.try_clone()?).stderr(write);
        // SAFETY: between fork and exec the closure calls nothing but pthread_sigmask(3), which is
        // allowed there.
        unsafe { command.pre_exec(signals::unblock_all) };
        let pid = Pid::from_child(&command.spawn()?);
        // From here on, it is killed and reaped if anything fails.
        let mut running = RunningHelper { pid, watch: None, is_over: false };
        let watch = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        running.watch = Some(Watched::new(watch, Interest::Read)?);
        Ok((running, read))
    }
}

/// A started program. Dropping it kills the program.
struct RunningHelper {
    pid: Pid,
    /// Readable once the program has ended.
    watch: Option<Watched>,
    is_over: bool,
}

impl RunningHelper {
    /// Reads what the program writes until it ends.
    async fn follow(
        &mut self,
        pipe: &Watched,
        output: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<Exit> {
        let mut reading = pin!(read_all(pipe, output, bytes_max));
        let mut end = pin!(self.end());
        let mut is_read = false;
        poll_fn(|cx| {
            is_read = is_read || reading.as_mut().poll(cx).is_ready();
            end.as_mut().poll(cx)
        })
        .await
    }

    /// Waits until the program has ended.
    async fn end(&mut self) -> io::Result<Exit> {
        let pid = self.pid;
        let ended = match &self.watch {
            Some(watch) => watch.read(|_| wait(pid)).await,
            None => wait(pid),
        };
        self.is_over = true;
        Ok(ended?)
    }

    fn kill(&self) {
        // It fails if nothing of the group is left.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }
}

impl Drop for RunningHelper {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.kill();
        let pid = self.pid;
        if matches!(wait(pid), Err(Errno::AGAIN | Errno::INTR)) {
            spawn_if_running(async move {
                for _ in 0..REAPS_MAX {
                    sleep(REAP_PAUSE).await;
                    if !matches!(wait(pid), Err(Errno::AGAIN | Errno::INTR)) {
                        return;
                    }
                }
            });
        }
    }
}

/// How a child has ended; `EAGAIN`: it runs.
fn wait(pid: Pid) -> Result<Exit, Errno> {
    match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG)? {
        None => Err(Errno::AGAIN),
        Some((_, status)) => Ok(exit(status)),
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(number)) => Exit::Signal { number, core: libc::WCOREDUMP(status.as_raw()) },
        (code, None) => Exit::Code(code.unwrap_or(-1)),
    }
}

/// Reads until all writers have closed the pipe, and keeps the first bytes.
async fn read_all(pipe: &Watched, output: &mut Vec<u8>, bytes_max: usize) {
    let mut buffer = [0; READ_BYTES];
    loop {
        match pipe.read(|fd| rustix::io::read(fd, &mut buffer)).await {
            Ok(0) | Err(_) => return,
            Ok(length) => keep(&buffer[..length], output, bytes_max),
        }
        // The program may write as fast as this reads.
        poll_fn(crate::poll_share).await;
    }
}

/// Reads what is there already.
fn read_rest(pipe: &OwnedFd, output: &mut Vec<u8>, bytes_max: usize) {
    let mut buffer = [0; READ_BYTES];
    for _ in 0..LAST_BYTES_MAX / READ_BYTES {
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(length) => keep(&buffer[..length], output, bytes_max),
        }
    }
}

fn keep(bytes: &[u8], output: &mut Vec<u8>, bytes_max: usize) {
    let room = bytes_max.saturating_sub(output.len());
    output.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::children_of_one_test;
    use crate::{testing, yield_now};

    const MINUTE_MS: u64 = 60_000;

    fn shell(script: &str) -> HelperProgram {
        HelperProgram {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into(), "hook".into(), "an argument".into()],
            variables: vec![("VALUE", "a value".into())],
        }
    }

    fn run(script: &str) -> io::Result<HelperOutcome> {
        let _turn = children_of_one_test();
        let program = shell(script);
        crate::run(async move { program.run(MINUTE_MS, 100).await }).unwrap()
    }

    fn is_alive(pid: i32) -> bool {
        // A zombie is as good as gone.
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !matches!(state.rsplit(") ").next().and_then(|rest| rest.chars().next()), None | Some('Z'))
    }

    #[test]
    fn a_program_gets_arguments_and_variables_and_nothing_else() {
        let outcome = run("echo \"$1, $VALUE, $HOME, $PWD\"; cat; echo no >&2; exit 3").unwrap();
        assert_eq!(outcome.exit, Some(Exit::Code(3)));
        assert_eq!(String::from_utf8_lossy(&outcome.output), "an argument, a value, , /\nno\n");
    }

    #[test]
    fn only_the_first_bytes_of_much_output_are_kept() {
        let outcome = run("head -c 1000000 /dev/zero").unwrap();
        assert_eq!((outcome.exit, outcome.output.len()), (Some(Exit::Code(0)), 100));
    }

    #[test]
    fn a_child_in_the_background_is_not_waited_for() {
        let outcome = run("sleep 1000 & echo $!").unwrap();
        assert_eq!(outcome.exit, Some(Exit::Code(0)));
        let child: i32 = String::from_utf8(outcome.output).unwrap().trim().parse().unwrap();
        signals::send(child, signals::SIGKILL).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let program = HelperProgram { program: "/no/such/program".into(), ..shell("") };
        let run = crate::run(async move { program.run(MINUTE_MS, 100).await }).unwrap();
        assert_eq!(run.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// The ids of the child of a program that hangs and of the program, once both run.
    async fn hanging(output: &std::path::Path) -> Vec<i32> {
        loop {
            let text = std::fs::read_to_string(output).unwrap_or_default();
            let ids: Vec<_> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if ids.len() == 2 && text.ends_with('\n') {
                return ids;
            }
            yield_now().await;
        }
    }

    /// Waits until the program has been reaped, and its child is dead.
    async fn until_gone(ids: &[i32]) {
        let is_there = |id: i32| std::path::Path::new(&format!("/proc/{id}")).exists();
        while is_alive(ids[0]) || is_there(ids[1]) {
            yield_now().await;
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let (_turn, folder) = (children_of_one_test(), ::testing::Folder::new());
        let ids = folder.join("ids");
        let script =
            format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; echo hung; wait", ids.display());
        crate::run(async move {
            testing::stop_clock();
            let (sender, mut mailbox) = crate::mailbox();
            let program = shell(&script);
            crate::spawn(async move { sender.send(program.run(MINUTE_MS, 100).await) });
            let ids = hanging(&ids).await;
            testing::advance(MINUTE_MS - 1000).await;
            assert!(ids.iter().all(|id| is_alive(*id)));
            testing::advance(2000).await;
            let outcome = mailbox.next().await.unwrap().unwrap();
            assert_eq!((outcome.exit, &outcome.output[..]), (None, &b"hung\n"[..]));
            until_gone(&ids).await;
        })
        .unwrap();
    }

    #[test]
    fn a_program_whose_job_is_given_up_is_killed() {
        let (_turn, folder) = (children_of_one_test(), ::testing::Folder::new());
        let ids = folder.join("ids");
        let script = format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; wait", ids.display());
        crate::run(async move {
            let program = shell(&script);
            let task = crate::spawn(async move {
                let _ = program.run(MINUTE_MS, 100).await;
            });
            let ids = hanging(&ids).await;
            task.stop();
            until_gone(&ids).await;
        })
        .unwrap();
    }
}
