//! Programs that tests run.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Output, Stdio};

use crate::eventually;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct TestProcess(pub Child);

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program that prints little to its end.
pub fn output(mut command: Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = TestProcess(command.spawn().unwrap());
    let status = eventually("end of a program", || running.0.try_wait().unwrap());
    let TestProcess(child) = &mut running;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout, stderr }
}

/// The standard error of a program that has ended.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal by its name: `TERM`.
pub fn kill(pid: i32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -s {signal} {pid}");
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}
