//! Sources of lists that can be killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::killed_process::KilledProcess;
use crate::project;
use crate::prove::free_port;

/// How long etcd may take to start.
const START_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

pub(super) trait KilledLists {
    /// What `weir discover` is told; the first is the source's name.
    fn arguments(&self) -> Vec<String>;
    /// Replaces the list of a group by one server.
    fn put(&mut self, group: usize, server: &str) -> Result<(), String>;
    fn remove(&mut self, group: usize) -> Result<(), String>;
    fn kill(&mut self) -> Result<(), String>;
    fn start(&mut self) -> Result<(), String>;
}

/// A folder of files. It is killed by taking it away.
pub(super) struct FileLists {
    folder: PathBuf,
    away: PathBuf,
}

impl FileLists {
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        let (folder, away) = (folder.join("lists"), folder.join("away"));
        fs::create_dir(&away).map_err(|err| err.to_string())?;
        Ok(Self { folder, away })
    }
}

impl KilledLists for FileLists {
    fn arguments(&self) -> Vec<String> {
        vec!["files".to_owned(), self.folder.display().to_string()]
    }

    fn put(&mut self, group: usize, server: &str) -> Result<(), String> {
        let next = self.folder.join(".next");
        let written = fs::write(&next, server);
        let put = written.and_then(|()| fs::rename(next, self.folder.join(format!("g{group}"))));
        put.map_err(|err| err.to_string())
    }

    fn remove(&mut self, group: usize) -> Result<(), String> {
        fs::remove_file(self.folder.join(format!("g{group}"))).map_err(|err| err.to_string())
    }

    fn kill(&mut self) -> Result<(), String> {
        fs::rename(&self.folder, &self.away).map_err(|err| err.to_string())
    }

    fn start(&mut self) -> Result<(), String> {
        fs::rename(&self.away, &self.folder).map_err(|err| err.to_string())
    }
}

/// A real etcd.
pub(super) struct EtcdLists {
    folder: PathBuf,
    url: String,
    peer: String,
    process: Option<KilledProcess>,
}

impl EtcdLists {
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        let url = || free_port().map(|port| format!("http://127.0.0.1:{port}"));
        let (url, peer) = (url()?, url()?);
        Ok(Self { folder: folder.to_owned(), url, peer, process: None })
    }

    fn control(&self, words: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.url]).args(words);
        command
    }
}

impl KilledLists for EtcdLists {
    fn arguments(&self) -> Vec<String> {
        vec!["etcd".to_owned(), self.url.clone(), "/weir/".to_owned()]
    }

    fn put(&mut self, group: usize, server: &str) -> Result<(), String> {
        project::output(&mut self.control(&["put", &format!("/weir/g{group}/1"), server]))
            .map(|_| ())
    }

    fn remove(&mut self, group: usize) -> Result<(), String> {
        project::output(&mut self.control(&["del", &format!("/weir/g{group}/1")])).map(|_| ())
    }

    fn kill(&mut self) -> Result<(), String> {
        self.process = None;
        Ok(())
    }

    fn start(&mut self) -> Result<(), String> {
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(self.folder.join("etcd"));
        command.args(["--listen-client-urls", &self.url, "--advertise-client-urls", &self.url]);
        command.args(["--listen-peer-urls", &self.peer, "--initial-cluster"]);
        command.arg(format!("default={}", self.peer));
        command.args(["--initial-advertise-peer-urls", &self.peer]);
        self.process = Some(KilledProcess::start(&mut command)?);
        let end = Instant::now() + START_MAX;
        while project::output(&mut self.control(&["get", "/weir/"])).is_err() {
            if Instant::now() > end {
                return Err("etcd does not start".to_owned());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}
