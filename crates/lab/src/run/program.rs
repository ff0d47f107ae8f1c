//! The server programs: found, asked for their version, and had test configurations.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::RunArguments;
use super::folder::ServerFolder;
use crate::record::ProgramRecord;
use crate::study::Study;

/// A server program.
pub(super) struct ServerProgram {
    pub(super) path: PathBuf,
    pub(super) record: ProgramRecord,
}

/// Where nginx is if PATH does not say.
const NGINX: &str = "/usr/sbin/nginx";

impl ServerProgram {
    pub(super) fn all(arguments: &RunArguments, weir: &Path) -> Result<Vec<Self>, String> {
        arguments.servers.iter().map(|name| Self::find(name, weir)).collect()
    }

    fn find(name: &str, weir: &Path) -> Result<Self, String> {
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
        let record = ProgramRecord { name, path: path_text, version };
        Ok(Self { path, record })
    }

    /// Has it test the configuration of each row of the study.
    pub(super) fn check(&self, study: &Study) -> Result<(), String> {
        for row in study.rows.iter().filter(|row| !row.direct) {
            let folder = ServerFolder::new()?;
            folder.write(study, row, &vec![1; study.backend.count])?;
            let mut command = self.command(&folder);
            let output = command.arg("-t").stdin(Stdio::null()).output();
            let output = output.map_err(|error| format!("{}: {error}", self.path.display()))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let (name, row) = (&self.record.name, &row.name);
                return Err(format!("{name} refuses row \"{row}\":\n{}", said.trim_end()));
            }
        }
        Ok(())
    }

    fn command(&self, folder: &ServerFolder) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.configuration());
        command
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| fs::metadata(file).is_ok())
}
