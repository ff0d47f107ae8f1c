//! Debian's packages: an archive in the format of ar(5) with two tar archives, control and data
//! (deb(5)).
//!
//! `packaging/deb/` has the control files and the maintainer scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::{Inputs, repository_file};
use super::filter;
use super::tar;
use super::tree::{Content, FileTree, TreeFile};
use crate::{packages, project};

pub(super) const PACKAGES: [&str; 3] = ["weir", "weir-as-nginx", DEBUG];
const DEBUG: &str = "weir-dbgsym";

const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// Writes one package with the files of `tree` into `out`.
pub(super) fn write(
    name: &str,
    tree: &FileTree,
    inputs: &Inputs<'_>,
    out: &Path,
) -> Result<PathBuf, String> {
    let (stamp, time) = (inputs.stamp, inputs.stamp.time);
    let control = tar::archive(&control(name, tree, inputs)?, "./", time)?;
    let data = tar::archive(tree, "./", time)?;
    // objcopy has compressed the debug information: another attempt takes time and gains nothing.
    let data = match name {
        DEBUG => ("data.tar.gz", filter::gzip(&data)?),
        _ => ("data.tar.xz", filter::xz(&data)?),
    };
    let control = ("control.tar.xz", filter::xz(&control)?);
    let members = [("debian-binary", b"2.0\n".to_vec()), control, data];
    let file = format!("{name}_{}_{}.deb", stamp.with_revision(), stamp.machine.debian());
    let path = out.join(file);
    fs::write(&path, ar(&members, time)).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(path)
}

/// The archive ar(5): each member has a head of 60 bytes and begins at an even place.
fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let (owner, mode, size) = (0, 0o100644, data.len());
        let head = format!("{name:<16}{time:<12}{owner:<6}{owner:<6}{mode:<8o}{size:<10}`\n");
        archive.extend_from_slice(head.as_bytes());
        archive.extend_from_slice(data);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// What dpkg keeps about the package: what it is, its digests, conffiles and scripts.
fn control(name: &str, tree: &FileTree, inputs: &Inputs<'_>) -> Result<FileTree, String> {
    let mut control = FileTree::default();
    let mut add = |path: &str, mode: u32, bytes: Vec<u8>| {
        control.add(path, TreeFile { mode, owner: 0, content: Content::File(bytes) });
    };
    add("control", 0o644, description(name, tree, inputs)?.into_bytes());
    add("md5sums", 0o644, digests(tree)?.into_bytes());
    let conffiles = conffiles(tree);
    if !conffiles.is_empty() {
        add("conffiles", 0o644, conffiles.into_bytes());
    }
    for script in SCRIPTS {
        let path = format!("packaging/deb/{name}.{script}");
        if project::root().join(&path).exists() {
            add(script, 0o755, repository_file(&path)?);
        }
    }
    Ok(control)
}

/// The control file, with what is only known now.
fn description(name: &str, tree: &FileTree, inputs: &Inputs<'_>) -> Result<String, String> {
    let template = repository_file(&format!("packaging/deb/{name}.control"))?;
    let kilobytes: usize = tree.regular().map(|(_, bytes)| bytes.len().div_ceil(1024)).sum();
    let stamp = inputs.stamp;
    Ok(String::from_utf8_lossy(&template)
        .replace("{version}", &stamp.with_revision())
        .replace("{architecture}", stamp.machine.debian())
        .replace("{maintainer}", &stamp.maintainer)
        .replace("{size}", &kilobytes.to_string())
        .replace("{libraries}", &libraries(inputs)?))
}

/// The packages of the shared libraries that the program needs, each with a comma before it.
fn libraries(inputs: &Inputs<'_>) -> Result<String, String> {
    if !inputs.program.is_dynamic()? {
        return Ok(String::new());
    }
    packages::need(&[("dpkg-shlibdeps", "dpkg-dev")])?;
    let program = inputs.program.stripped.canonicalize().map_err(|err| err.to_string())?;
    let folder = std::env::temp_dir().join(format!("weir-libraries-{}", std::process::id()));
    let make = || {
        fs::create_dir_all(folder.join("debian"))?;
        fs::write(
            folder.join("debian/control"),
            "Source: weir\n\nPackage: weir\nArchitecture: any\n",
        )
    };
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(&folder).args(["-O", "-e"]).arg(program);
    let made = make().map_err(|err| format!("{}: {err}", folder.display()));
    let written = made.and_then(|()| project::output(&mut command));
    let _ = fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&written?).into_owned();
    let list = text.trim().strip_prefix("shlibs:Depends=").unwrap_or_default();
    Ok(format!(", {list}"))
}

fn digests(tree: &FileTree) -> Result<String, String> {
    let line = |(path, bytes)| Ok(format!("{}  {path}\n", filter::digest("md5sum", bytes)?));
    tree.regular().map(line).collect()
}

fn conffiles(tree: &FileTree) -> String {
    let kept = tree.regular().filter(|(path, _)| path.starts_with("etc/"));
    kept.map(|(path, _)| format!("/{path}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_odd_size_is_padded() {
        let archive = ar(&[("a", b"x".to_vec()), ("b", b"yz".to_vec())], 7);
        let text = String::from_utf8(archive).unwrap();
        let head = "a               7           0     0     100644  1         `\nx\n";
        assert!(text.starts_with(&format!("!<arch>\n{head}b ")), "{text}");
        assert!(text.ends_with("`\nyz"), "{text}");
    }

    #[test]
    fn files_below_etc_are_conffiles() {
        let mut tree = FileTree::default();
        for path in ["/etc/weir/nginx.conf", "/usr/etc"] {
            tree.add(path, TreeFile { mode: 0o644, owner: 0, content: Content::File(vec![]) });
        }
        assert_eq!(conffiles(&tree), "/etc/weir/nginx.conf\n");
    }
}
