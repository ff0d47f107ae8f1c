//! The server programs: finding them, querying their versions, and testing configurations.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::RunArguments;
use super::folder::ServerFolder;
use super::part::{PartMachine, PartPlace, ServerOrder};
use crate::record::ProgramRecord;
use crate::study::{BackendAddress, Study};

/// A server program.
pub(crate) struct ServerProgram {
    pub(crate) path: PathBuf,
    pub(crate) record: ProgramRecord,
}

/// The path of nginx if it is not in PATH.
const NGINX: &str = "/usr/sbin/nginx";

impl ServerProgram {
    /// The programs on the machine of servers.
    pub(super) fn all(
        arguments: &RunArguments,
        machine: &dyn PartMachine,
    ) -> Result<Vec<Self>, String> {
        let found = |name: &String| {
            machine.program(name).map(|record| Self { path: (&record.path).into(), record })
        };
        let mut all = arguments.servers.iter().map(found).collect::<Result<Vec<Self>, String>>()?;
        if let [first, second] = &mut all[..]
            && first.record.name == second.record.name
        {
            // Two builds of the same program.
            for program in [first, second] {
                program.record.name = program.record.path.clone();
            }
        }
        Ok(all)
    }

    /// Finds a program: `weir`, `nginx` or a path.
    pub(crate) fn find(name: &str, weir: &Path) -> Result<Self, String> {
        let path = match name {
            "weir" => weir.to_owned(),
            "nginx" => in_path("nginx").unwrap_or_else(|| NGINX.into()),
            path => path.into(),
        };
        let output = Command::new(&path).arg("-v").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", path.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let version = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
        let path_text = path.display().to_string();
        let file = Path::new(name).file_name().unwrap_or_default();
        let name = file.to_string_lossy().into_owned();
        if !output.status.success() || version.is_empty() {
            return Err(format!("{path_text} is no server: it does not know -v"));
        }
        let build = build(&path);
        let record = ProgramRecord { name, path: path_text, version, build };
        Ok(Self { path, record })
    }

    /// Tests the configuration of each row of the study with this program.
    pub(super) fn check(&self, study: &Study, machine: &dyn PartMachine) -> Result<(), String> {
        let rows = study.rows.iter().filter(|row| !row.direct && self.record.can_have(row));
        for row in rows {
            // nginx binds the addresses even to test a configuration, so they must exist on this
            // host.
            let any = BackendAddress::of_http(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));
            let order = ServerOrder {
                program: self.record.path.clone(),
                text: study.text(row, &vec![any; study.backend.count]),
                listen: Ipv4Addr::LOCALHOST,
                tls: false,
                processors: 0,
                place: PartPlace::Anywhere,
                counted: Vec::new(),
            };
            machine.test(&order).map_err(|said| {
                format!("{} refuses row \"{}\":\n{said}", self.record.name, row.name)
            })?;
        }
        Ok(())
    }

    /// Tests the configuration in a folder; an error is what the program said.
    pub(super) fn test(program: &Path, folder: &ServerFolder) -> Result<(), String> {
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.configuration());
        let output = command.arg("-t").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
        }
    }
}

/// The file of a program in PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| fs::metadata(file).is_ok())
}

/// The program's size and age, which tell builds of the same version apart.
fn build(path: &Path) -> String {
    let file = fs::metadata(path).ok();
    let changed = file.as_ref().and_then(|file| file.modified().ok());
    let changed = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = changed.map_or(0, |time| time.as_secs());
    format!("{} bytes, changed {seconds} s after 1970", file.map_or(0, |file| file.len()))
}
