//! What a package says of itself: version, machine, time, maintainer.

use std::process::Command;

use super::program::TargetMachine;
use crate::project;

/// Of the packaging, for the same version of Weir.
const REVISION: u32 = 1;

/// Named by packages of which nobody said who maintains them.
const MAINTAINER: &str = "Weir developers <weir@packages.invalid>";

pub(super) struct ReleaseStamp {
    /// As Cargo.toml has it.
    pub(super) version: String,
    pub(super) machine: TargetMachine,
    /// In seconds since 1970: when the commit was made, or SOURCE_DATE_EPOCH.
    pub(super) time: u64,
    pub(super) maintainer: String,
}

impl ReleaseStamp {
    pub(super) fn new(machine: TargetMachine, maintainer: Option<String>) -> Result<Self, String> {
        let maintainer = maintainer.unwrap_or_else(|| MAINTAINER.to_owned());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { version, machine, time: project::build_time()?, maintainer })
    }

    /// The version of the package.
    pub(super) fn with_revision(&self) -> String {
        format!("{}-{}", self.version, self.revision())
    }

    pub(super) fn revision(&self) -> String {
        REVISION.to_string()
    }

    /// The time in a form of date(1).
    pub(super) fn date(&self, form: &str) -> Result<String, String> {
        let mut date = Command::new("date");
        date.env("LC_ALL", "C").args(["--utc", "--date", &format!("@{}", self.time), form]);
        Ok(String::from_utf8_lossy(&project::output(&mut date)?).trim().to_owned())
    }

    /// Debian's changelog, which refers to Weir's own.
    pub(super) fn changelog(&self) -> Result<String, String> {
        Ok(format!(
            "weir ({}) unstable; urgency=medium\n\n  * What is new: changelog.gz.\n\n -- {}  {}\n",
            self.with_revision(),
            self.maintainer,
            self.date("--rfc-email")?
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_changelog_has_its_form() {
        let stamp = ReleaseStamp {
            version: "1.2.3".into(),
            machine: TargetMachine::X86_64,
            time: 1_000_000_000,
            maintainer: "A <a@b>".into(),
        };
        let text = stamp.changelog().unwrap();
        assert!(text.starts_with("weir (1.2.3-1) unstable; urgency=medium\n\n  * "), "{text}");
        assert!(text.ends_with("\n\n -- A <a@b>  Sun, 09 Sep 2001 01:46:40 +0000\n"), "{text}");
    }
}
