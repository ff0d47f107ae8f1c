//! What a package says of itself: version, machine, time, maintainer.

use std::process::Command;

use super::program::TargetMachine;
use crate::project;

/// Named by packages of which nobody said who maintains them.
const MAINTAINER: &str = "Weir developers <weir@packages.invalid>";

/// What the one who makes the packages may choose.
pub(super) struct PackageLabels {
    pub(super) maintainer: Option<String>,
    pub(super) revision: u32,
}

pub(super) struct ReleaseStamp {
    /// As Cargo.toml has it.
    pub(super) version: String,
    pub(super) machine: TargetMachine,
    /// In seconds since 1970: when the commit was made, or SOURCE_DATE_EPOCH.
    pub(super) time: u64,
    pub(super) maintainer: String,
    /// Of the packaging, for the same version of Weir.
    pub(super) revision: u32,
}

impl ReleaseStamp {
    pub(super) fn new(machine: TargetMachine, labels: PackageLabels) -> Result<Self, String> {
        let maintainer = labels.maintainer.unwrap_or_else(|| MAINTAINER.to_owned());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (time, revision) = (project::build_time()?, labels.revision);
        Ok(Self { version, machine, time, maintainer, revision })
    }

    /// The version of the package.
    pub(super) fn with_revision(&self) -> String {
        format!("{}-{}", self.version, self.revision)
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
            revision: 1,
        };
        let text = stamp.changelog().unwrap();
        assert!(text.starts_with("weir (1.2.3-1) unstable; urgency=medium\n\n  * "), "{text}");
        assert!(text.ends_with("\n\n -- A <a@b>  Sun, 09 Sep 2001 01:46:40 +0000\n"), "{text}");
    }
}
