//! `weir lab doctor`: the parts of this machine and configuration that will hurt under load.
//!
//! Each check is a function in a table ([`checks::CHECKS`]) that reads the [`MachineLimits`] and
//! the [`ExaminedConfig`] and adds its findings. Deliberately absent: measurements, and anything
//! that needs root.

mod caches;
mod certificates;
mod checks;
mod configuration;
mod finding;
mod machine;
mod report;
mod scope;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use caches::{CacheProblem, cache_problems};
pub use certificates::{CertificateProblem, NamedCertificates, certificate_problems};
use configuration::ExaminedConfig;
use finding::{DoctorFinding, FindingList};
use machine::MachineLimits;

/// The text that `--help` prints.
pub const USAGE: &str = "Usage: weir lab doctor [OPTIONS] [FILE]

Lists what in this machine and in the configuration FILE (Weir's or nginx's; default: the one that
weir would serve) will hurt under load, why, and what to do about it. Nothing is started or changed.

Options:
  -c FILE     the same as FILE
  --root DIR  the files are those of a container or another machine, whose root is DIR here; FILE is
              a name there
  --json      print JSON
  -h, --help  print this help

Exit code: 0 if nothing was found; 1 if something was; 2 if the configuration cannot be read.
";

/// The arguments after `doctor`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DoctorArguments {
    /// Whether to print the usage.
    pub help: bool,
    /// Whether to print JSON.
    pub json: bool,
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The root of its names.
    pub root: Option<PathBuf>,
}

/// The result of an examination.
pub struct Diagnosis {
    pub text: String,
    /// Whether nothing was found.
    pub is_healthy: bool,
}

impl DoctorArguments {
    pub fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let file = match word.as_bytes() {
                b"--json" => {
                    arguments.json = true;
                    continue;
                }
                b"--help" | b"-h" => {
                    arguments.help = true;
                    continue;
                }
                b"--root" => {
                    arguments.root = Some(words.next().ok_or("--root requires a DIR")?.into());
                    continue;
                }
                b"-c" => words.next().ok_or("-c requires a FILE")?,
                [b'-', ..] => return Err(format!("unknown option {}", word.to_string_lossy())),
                _ => word,
            };
            if arguments.file.replace(file.into()).is_some() {
                return Err("only one FILE can be named".into());
            }
        }
        if arguments.root.is_some() && arguments.file.is_none() {
            return Err("--root requires a FILE".into());
        }
        Ok(arguments)
    }
}

/// Examines this machine and a configuration. The error is nginx's message about the configuration.
pub fn examine(
    configuration: &Path,
    files: &mut dyn conf::Files,
    json: bool,
) -> Result<Diagnosis, String> {
    examine_with(configuration, files, &MachineLimits::read(Path::new("/")), json)
}

fn examine_with(
    path: &Path,
    files: &mut dyn conf::Files,
    machine: &MachineLimits,
    json: bool,
) -> Result<Diagnosis, String> {
    let configuration = ExaminedConfig::read(path, files)?;
    let findings = find(machine, &configuration);
    let text = match json {
        true => report::json(&findings),
        false => report::text(&findings, machine, OsStr::new(path)),
    };
    Ok(Diagnosis { text, is_healthy: findings.is_empty() })
}

/// The findings of all checks, in their order.
fn find(machine: &MachineLimits, configuration: &ExaminedConfig) -> Vec<DoctorFinding> {
    let mut findings = FindingList::new(configuration);
    for check in checks::CHECKS {
        findings.begin(check.name);
        (check.run)(machine, configuration, &mut findings);
    }
    findings.into_list()
}
