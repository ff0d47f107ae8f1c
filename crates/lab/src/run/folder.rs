//! Folders: one for each server while it runs, and the one that keeps the results.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::RunArguments;
use super::program::ServerProgram;
use crate::record::{FORMAT, StudyRecord};
use crate::report;
use crate::study::{Study, StudyPlaces, StudyRow};

/// Sizes of the files that servers find in their folder, in KB.
const FILES_KB: [usize; 4] = [0, 1, 10, 100];

/// What a server has for itself: a port that was free, its configuration, and files to serve. It
/// is gone when this is dropped.
pub(super) struct ServerFolder {
    path: PathBuf,
    pub(super) port: u16,
}

/// How the names of server folders begin; a process's number and their own follow.
const PREFIX: &str = "weir-lab-";

impl ServerFolder {
    pub(super) fn new() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            remove_abandoned();
        }
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.join("logs")).map_err(failed)?;
        for kb in FILES_KB {
            fs::write(path.join(format!("{kb}k.bin")), vec![b'x'; kb * 1024]).map_err(failed)?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { path, port })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn configuration(&self) -> PathBuf {
        self.path.join("server.conf")
    }

    /// Writes the configuration of a row, with the backends' ports. The server stays in the
    /// foreground, with its own pid and log.
    pub(super) fn write(
        &self,
        study: &Study,
        row: &StudyRow,
        backends: &[u16],
    ) -> Result<(), String> {
        let dir = &self.path.display().to_string();
        let own = format!("daemon off; pid {dir}/pid; error_log {dir}/error.log;\n");
        let text = study.configuration(row, StudyPlaces { port: self.port, dir, backends });
        let file = self.configuration();
        fs::write(&file, own + &text).map_err(|error| format!("{}: {error}", file.display()))
    }
}

/// Removes the folders of processes that were interrupted.
fn remove_abandoned() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let pid = rest.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Where a study's results are kept.
pub(super) struct StudyFolder {
    path: PathBuf,
    resume: bool,
}

/// All turns.
const RECORD: &str = "record.json";

impl StudyFolder {
    /// Results of an earlier run are not overwritten.
    pub(super) fn open(arguments: &RunArguments, study: &Study) -> Result<Self, String> {
        let name = Path::new(&arguments.study).file_stem().unwrap_or_default();
        let path = arguments.out.clone().unwrap_or_else(|| Path::new("weir-lab").join(name));
        let shown = path.display();
        if !arguments.resume && path.join(RECORD).exists() {
            return Err(format!("{shown} has results of \"{}\": --resume or --out", study.title));
        }
        fs::create_dir_all(&path).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Self { path, resume: arguments.resume })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier run has left, without blocks that are not complete.
    pub(super) fn continued(
        &self,
        programs: &[ServerProgram],
    ) -> Result<Option<StudyRecord>, String> {
        let file = self.path.join(RECORD);
        if !self.resume || !file.exists() {
            return Ok(None);
        }
        let of_file = |what: String| format!("{}: {what}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| of_file(error.to_string()))?;
        let mut record: StudyRecord =
            serde_json::from_str(&text).map_err(|error| of_file(error.to_string()))?;
        let same = record.programs.iter().eq(programs.iter().map(|program| &program.record));
        if record.format != FORMAT || !same {
            return Err(of_file("it is of other programs, or of another version of weir".into()));
        }
        let complete = record.complete_blocks();
        record.turns.retain(|turn| turn.block < complete);
        Ok(Some(record))
    }

    /// Keeps what has been measured so far.
    pub(super) fn keep(&self, record: &StudyRecord) -> Result<(), String> {
        let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
        // A rename, so that whoever interrupts this finds the old file or the new one.
        let (new, file) = (self.path.join("record.json.new"), self.path.join(RECORD));
        let kept = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
        kept.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The reports beside it.
    pub(super) fn write_reports(&self, record: &StudyRecord) -> Result<(), String> {
        self.keep(record)?;
        let reports = [
            ("report.md", report::markdown::of(record)),
            ("report.html", report::html::of(record)),
        ];
        for (name, text) in reports {
            let file = self.path.join(name);
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(())
    }
}
