//! The folder of each server while it runs, and the folder of a study's results.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use processes::certificate;
use processes::topology::ProcessorMap;
use serde_json::Value;

use super::RunArguments;
use super::part::ServerOrder;
use crate::record::StudyRecord;
use crate::report;
use crate::study::{BUILT_IN, StudyPlaces};

/// The sizes in KB of the files in a server's folder.
const FILES_KB: [usize; 4] = [0, 1, 10, 100];
/// The size of a text to compress: that of the studies, over and over. They are longer than what
/// gzip looks back at.
const TEXT_BYTES: usize = 100 * 1024;

/// A server's own folder, with its configuration and files to serve, and two ports that were free.
/// Dropping it removes the folder.
pub(crate) struct ServerFolder {
    path: PathBuf,
    pub(super) port: u16,
    pub(super) tls_port: u16,
}

/// The prefix of the names of server folders; the process id and a number follow.
const PREFIX: &str = "weir-lab-";

impl ServerFolder {
    pub(crate) fn new() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            remove_abandoned();
        }
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        // An existing folder is refused: its owner could change the files that a server reads.
        fs::create_dir(&path).map_err(failed)?;
        fs::create_dir(path.join("logs")).map_err(failed)?;
        for kb in FILES_KB {
            fs::write(path.join(format!("{kb}k.bin")), vec![b'x'; kb * 1024]).map_err(failed)?;
        }
        let texts = BUILT_IN.iter().flat_map(|(_, text)| text.bytes());
        let text: Vec<u8> = texts.cycle().take(TEXT_BYTES).collect();
        fs::write(path.join("text.html"), text).map_err(failed)?;
        // Both ports are held until both are known, so that they differ.
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed);
        let listeners = [free()?, free()?];
        let port = |at: usize| listeners[at].local_addr().map(|address| address.port());
        let (port, tls_port) = (port(0).map_err(failed)?, port(1).map_err(failed)?);
        Ok(Self { path, port, tls_port })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.path.join("server.conf")
    }

    /// Writes a configuration. The server stays in the foreground, with its own pid file and log.
    pub(super) fn write(&self, order: &ServerOrder) -> Result<(), String> {
        let dir = &self.path.display().to_string();
        let own = format!("daemon off; pid \"{dir}/pid\"; error_log \"{dir}/error.log\";\n");
        let text = self.fill(order)?;
        if text.contains(CERTIFICATE) {
            certificate::make(&self.path.join(KEY), &self.path.join(CERTIFICATE))?;
        }
        if text.contains(RSA_CERTIFICATE) {
            certificate::make_rsa(&self.path.join(RSA_KEY), &self.path.join(RSA_CERTIFICATE))?;
        }
        write(&self.configuration(), own + &text)
    }

    /// A configuration with this folder and its ports.
    fn fill(&self, order: &ServerOrder) -> Result<String, String> {
        let address = |port| SocketAddrV4::new(order.listen, port);
        let (listen, listen_tls) = (address(self.port), address(self.tls_port));
        let dir = &self.path.display().to_string();
        let processors = match order.processors {
            0 => ProcessorMap::of_this_machine()?.count(),
            some => some,
        };
        let places = StudyPlaces { listen, listen_tls, dir, backends: &[], processors };
        Ok(places.fill(&order.text))
    }

    /// A generator's options with the folder's name; writes the list of paths if they name it.
    pub(super) fn options(&self, options: &[String], path: &str) -> Result<Vec<String>, String> {
        if options.iter().any(|word| word.ends_with(VARIED)) {
            let lines = (0..VARIED_PATHS).map(|number| format!("{path}?i={number}\n"));
            write(&self.path.join(VARIED), lines.collect::<String>())?;
        }
        let dir = self.path.display().to_string();
        Ok(options.iter().map(|word| word.replace("%%dir%%", &dir)).collect())
    }
}

/// Certificates and their keys, which are made if the configuration names the certificate: of
/// ECDSA P-256, and of RSA 2048.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";
const RSA_CERTIFICATE: &str = "server-rsa.crt";
const RSA_KEY: &str = "server-rsa.key";

/// The list of paths that differ in their queries, for `--list`.
const VARIED: &str = "vary.list";
const VARIED_PATHS: usize = 50_000;

fn write(file: &Path, text: String) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Removes the folders of processes that no longer exist.
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

/// The folder of a study's results.
pub(super) struct StudyFolder {
    path: PathBuf,
    resume: bool,
}

const LOOKS: &str = "how often it is looked at (--stop-early, --quick) must not change, because \
                     errors would add up; name another folder with --out";

/// The file with all turns.
const RECORD: &str = "record.json";

impl StudyFolder {
    /// Opens the folder. Results of an earlier run are not overwritten.
    pub(super) fn open(arguments: &RunArguments) -> Result<Self, String> {
        let name = Path::new(&arguments.study).file_stem().unwrap_or_default();
        let path = arguments.out.clone().unwrap_or_else(|| Path::new("weir-lab").join(name));
        let shown = path.display();
        if !arguments.resume && path.join(RECORD).exists() {
            return Err(format!(
                "{shown} already has results: add --resume to go on, or name another folder with \
                 --out"
            ));
        }
        fs::create_dir_all(&path).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Self { path, resume: arguments.resume })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The results of an earlier run without its incomplete blocks. They must have the same study,
    /// programs and hosts as `new`, which has no turns yet.
    pub(super) fn continued(&self, new: &StudyRecord) -> Result<Option<StudyRecord>, String> {
        let file = self.path.join(RECORD);
        if !self.resume || !file.exists() {
            return Ok(None);
        }
        let of_file = |what: String| format!("{}: {what}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| of_file(error.to_string()))?;
        let old: Value = serde_json::from_str(&text).map_err(|error| of_file(error.to_string()))?;
        let expected = serde_json::to_value(new).map_err(|error| error.to_string())?;
        for part in ["format", "study", "programs", "hosts"] {
            if old[part] != expected[part] {
                return Err(of_file(format!(
                    "its {part} is not the same as now; name another folder with --out"
                )));
            }
        }
        let mut record: StudyRecord =
            serde_json::from_value(old).map_err(|error| of_file(error.to_string()))?;
        let most = |record: &StudyRecord| record.looks.as_ref().map(|looks| looks.most);
        if most(&record) != most(new) {
            return Err(of_file(LOOKS.to_owned()));
        }
        record.blocks = record.blocks.max(new.blocks);
        record.keep_complete_blocks();
        Ok(Some(record))
    }

    /// Writes the results so far.
    pub(super) fn keep(&self, record: &StudyRecord) -> Result<(), String> {
        let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
        // Renamed into place, so that an interruption leaves either the old file or the new one.
        let (new, file) = (self.path.join("record.json.new"), self.path.join(RECORD));
        let kept = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
        kept.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Writes the reports beside the record.
    pub(super) fn write_reports(&self, record: &StudyRecord) -> Result<(), String> {
        self.keep(record)?;
        let reports = [
            ("report.md".to_owned(), report::markdown::of(record)),
            ("report.html".to_owned(), report::html::of(record)),
        ];
        let charts = report::charts::all(record);
        let charts = charts.into_iter().map(|chart| (chart.file.clone(), chart.svg_file()));
        let flames = report::why::charts(record);
        let flames = flames.into_iter().map(|chart| (chart.file.clone(), chart.svg_file()));
        for (name, text) in reports.into_iter().chain(charts).chain(flames) {
            write(&self.path.join(name), text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_report_embeds_each_written_chart() {
        let folder = ServerFolder::new().unwrap();
        let path = folder.path().join("study");
        let arguments = RunArguments { out: Some(path.clone()), ..RunArguments::default() };
        let study = StudyFolder::open(&arguments).unwrap();
        study.write_reports(&crate::testing::profiled(8)).unwrap();
        let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let written: BTreeSet<String> = names.filter(|name| name.ends_with(".svg")).collect();
        let text = fs::read_to_string(path.join("report.md")).unwrap();
        let embedded = text.lines().filter_map(|line| line.strip_prefix("![")?.strip_suffix(')'));
        let embedded = embedded.map(|image| image.rsplit_once("](").unwrap().1.to_owned());
        assert_eq!(embedded.collect::<BTreeSet<_>>(), written);
        assert_eq!(written.len(), 6);
    }
}
