//! The program under the name `wrk`.

use std::path::{Path, PathBuf};

use crate::packages;
use crate::prove::ProofFolder;

/// A link to the program that is called `wrk`; it goes with the value.
pub(super) struct WrkLink(ProofFolder);

impl WrkLink {
    pub(super) fn to(weir: &Path) -> Result<Self, String> {
        let link = Self(ProofFolder::new("generator")?);
        let fail = |err: std::io::Error| format!("{}: {err}", link.wrk().display());
        std::os::unix::fs::symlink(weir, link.wrk()).map_err(fail)?;
        Ok(link)
    }

    pub(super) fn wrk(&self) -> PathBuf {
        self.0.join("wrk")
    }
}

/// Both programs: the real one, if it is installed, and ours.
pub(super) fn both(link: &WrkLink) -> Option<[(&'static str, PathBuf); 2]> {
    Some([("wrk", packages::find("wrk")?), ("weir", link.wrk())])
}
