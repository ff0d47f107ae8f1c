//! A process that is killed.

use std::process::{Child, Command, Stdio};

use processes::procfs;

/// A process that is killed with its children when this is dropped.
pub(super) struct KilledProcess(Child);

impl KilledProcess {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().map(Self).map_err(|err| format!("{command:?}: {err}"))
    }
}

impl Drop for KilledProcess {
    fn drop(&mut self) {
        let family = procfs::family(self.0.id());
        let family: Vec<String> = family.iter().map(u32::to_string).collect();
        let _ = Command::new("kill").args(["-s", "KILL"]).args(&family).status();
        let _ = self.0.wait();
    }
}
