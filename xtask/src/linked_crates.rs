//! The crates from outside that are part of the program `weir`: what it is linked with, not what
//! only builds or tests it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::project;

/// A crate that is linked in.
pub(crate) struct LinkedCrate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) license: String,
    /// Where its source is on this machine.
    pub(crate) folder: PathBuf,
    /// The SHA-256 of its archive in the registry.
    pub(crate) checksum: String,
    /// The crates of the list that it uses, as `NAME VERSION`.
    pub(crate) uses: Vec<String>,
}

/// The systems for which the program is built.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-gnu"];
/// Crates that only build others, but contain the source of what is linked in.
const SOURCES: [&str; 1] = ["luajit-src"];

impl LinkedCrate {
    pub(crate) fn id(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// All of them, sorted by name, and the ones that Weir's own crates use, as `NAME VERSION`.
pub(crate) fn list() -> Result<(Vec<LinkedCrate>, Vec<String>), String> {
    let linked = linked()?;
    let metadata = project::output(&mut project::cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform=x86_64-unknown-linux-musl",
    ]))?;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(|why| why.to_string())?;
    let checksums = checksums()?;
    let uses = uses(&metadata, &linked);
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut crates = Vec::new();
    for package in packages {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let id = format!("{name} {version}");
        let is_from_outside = !package["source"].is_null();
        if !is_from_outside || !linked.contains(&id) && !SOURCES.contains(&&*name) {
            continue;
        }
        let folder = PathBuf::from(text("manifest_path")).parent().map(PathBuf::from);
        let license = text("license").replace('/', " OR ");
        let checksum = checksums.get(&id).cloned().unwrap_or_default();
        let uses = uses.get(&id).cloned().unwrap_or_default();
        let folder = folder.ok_or_else(|| format!("{id} has no folder"))?;
        crates.push(LinkedCrate { name, version, license, folder, checksum, uses });
    }
    let known: BTreeSet<String> = crates.iter().map(LinkedCrate::id).collect();
    match linked.difference(&known).next() {
        Some(unknown) => Err(format!("cargo metadata does not know {unknown}")),
        None => Ok((crates, uses.get(OWN).cloned().unwrap_or_default())),
    }
}

/// `NAME VERSION` of each crate from outside that is linked in for one of the targets.
fn linked() -> Result<BTreeSet<String>, String> {
    let mut linked = BTreeSet::new();
    for target in TARGETS {
        let tree = project::output(&mut project::cargo(&[
            "tree",
            "--package=weir",
            "--locked",
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--no-dedupe",
            "--format={p}",
            "--target",
            target,
        ]))?;
        let tree = String::from_utf8_lossy(&tree).into_owned();
        let outside = tree.lines().filter(|line| !line.contains("(/"));
        linked.extend(outside.filter_map(|line| line.trim().split_once(" v")).map(
            |(name, version)| format!("{name} {}", version.split(' ').next().unwrap_or_default()),
        ));
    }
    Ok(linked)
}

/// The crates that each crate uses. What Weir's own crates use is under `weir`.
fn uses(metadata: &Value, linked: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let id = format!("{} {}", text("name"), text("version"));
        names.insert(text("id"), (id, package["source"].is_null()));
    }
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().into_iter().flatten() {
        let Some((id, is_own)) = names.get(node["id"].as_str().unwrap_or_default()) else {
            continue;
        };
        let by = if *is_own { OWN.to_owned() } else { id.clone() };
        let used = node["dependencies"].as_array().into_iter().flatten();
        let used = used.filter_map(|id| names.get(id.as_str()?)).map(|(id, _)| id);
        uses.entry(by).or_default().extend(used.filter(|id| linked.contains(*id)).cloned());
    }
    for used in uses.values_mut() {
        used.sort_unstable();
        used.dedup();
    }
    uses
}

/// The name under which [`uses`] has Weir's own crates.
const OWN: &str = "weir";

/// The checksums of Cargo.lock.
fn checksums() -> Result<BTreeMap<String, String>, String> {
    let path = project::root().join("Cargo.lock");
    let lock = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").filter_map(|block| {
        let id = format!("{} {}", field(block, "name")?, field(block, "version")?);
        Some((id, field(block, "checksum")?))
    });
    Ok(blocks.collect())
}
