//! USR2: a new binary takes over the sockets, while the old master stays and can resume.

use std::path::{Path, PathBuf};

use observe::{Errno, Level};

use super::{Master, WorkerPlan, environment};
use crate::log::{alert, notice};
use crate::sockets::INHERITED;
use crate::steering::{AcceptedWhat, changes_on_disk};
use crate::{lenient, parent, pid_file, places};

/// The master of a new binary, while there is one.
#[derive(Default)]
pub(super) struct Upgrade {
    pid: Option<i32>,
    /// Whether it is to be started once the state files are written.
    is_wanted: bool,
}

impl Upgrade {
    /// Whether a new binary's master runs.
    pub(super) fn is_running(&self) -> bool {
        self.pid.is_some()
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether it is that process.
    pub(super) fn is(&self, pid: i32) -> bool {
        self.pid == Some(pid)
    }

    /// The path of this master's pid file meanwhile.
    pub(super) fn pid_file(&self, path: &Path) -> PathBuf {
        if self.is_running() { pid_file::old(path) } else { path.to_owned() }
    }
}

impl Master {
    /// Whether either binary should end before there is another change.
    pub(super) fn may_not_upgrade(&self) -> bool {
        parent::has_first() || self.upgrade.is_running()
    }

    /// Starts the file that has the program's name now.
    pub(super) fn change_binary(&mut self) {
        if self.may_not_upgrade() {
            let text = "the changing binary signal is ignored: you should shutdown or terminate \
                        before either old or new binary's process";
            return observe::log(Level::Crit, format_args!("{text}"));
        }
        if self.changes.steering.is_storing() {
            // The new master reads the files, and must find what is about to be answered.
            self.upgrade.is_wanted = true;
            return;
        }
        notice!("changing binary");
        let path = self.plan.loaded.settings.pid.clone();
        let called = self.arguments.called().unwrap_or_default().display().to_string();
        if let Err(error) = std::fs::rename(&path, pid_file::old(&path)) {
            let (from, to) = (path.display(), pid_file::old(&path));
            return alert!(
                "rename() {from} to {} failed before executing new binary process \"{called}\"{}",
                to.display(),
                Errno(&error)
            );
        }
        match self.start_new_binary() {
            Ok(pid) => {
                notice!("start new binary process {pid}");
                self.upgrade.pid = Some(pid);
            }
            Err(error) => {
                let what = "execve() failed while executing new binary process";
                alert!("{what} \"{called}\"{}", Errno(&error));
                self.take_name_back();
            }
        }
    }

    /// Starts the new binary that waited for state files.
    pub(super) fn change_binary_if_wanted(&mut self) {
        if std::mem::take(&mut self.upgrade.is_wanted) {
            self.change_binary();
        }
    }

    fn start_new_binary(&mut self) -> std::io::Result<i32> {
        self.service.prepare_successor()?;
        let mut launch = self.arguments.new_binary()?;
        for (name, value) in places::variables() {
            launch = launch.variable(name, value);
        }
        for (name, value) in environment::of_worker_process(&self.plan.loaded.settings.env) {
            launch = launch.variable(name, value);
        }
        if self.plan.origin.lenient {
            launch = launch.variable(lenient::VARIABLE, "1");
        }
        launch = launch.variable(INHERITED, self.sockets.names());
        let launch = self.service.hand_to(self.limits.hand_to(launch));
        self.sockets.descriptors().fold(launch, |launch, fd| launch.inherit(fd)).start()
    }

    /// Called when the new binary's master has exited: this one continues alone.
    pub(super) fn upgrade_over(&mut self) {
        self.upgrade.pid = None;
        self.service.no_successor();
        self.take_name_back();
        self.take_over_states();
        self.open_control_socket(true);
        if std::mem::take(&mut self.not_accepting) {
            self.start_worker_process();
        }
    }

    /// Makes the changes that the new binary's master has left in state files.
    fn take_over_states(&mut self) {
        let WorkerPlan { origin, recording, loaded, rosters } = &self.plan;
        let changes = changes_on_disk(origin, recording, &loaded.sites, rosters);
        changes.into_iter().for_each(|change| self.apply(&AcceptedWhat::Workers(change)));
    }

    fn take_name_back(&self) {
        let path = &self.plan.loaded.settings.pid;
        let old = pid_file::old(path);
        if let Err(error) = std::fs::rename(&old, path) {
            let (from, to) = (old.display(), path.display());
            let what = "after the new binary process exited";
            alert!("rename() {from} back to {to} failed {what}{}", Errno(&error));
        }
    }
}
