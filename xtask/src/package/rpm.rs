//! RPM packages, by rpmbuild, each with a spec of its own.
//!
//! `packaging/rpm/NAME.spec` has what a package says of itself, and its scripts; how the files are
//! installed, and their list, is appended.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::{Inputs, repository_file};
use super::tree::{Content, FileTree};
use crate::{packages, project};

pub(super) const PACKAGES: [&str; 3] = ["weir", "weir-as-nginx", "weir-debuginfo"];

/// Part of every spec.
const INSTALL: &str = "%install\nmkdir -p %{buildroot}\ncp -a %{weir_files}/. %{buildroot}\n";

/// Settings of rpmbuild under which two runs give the same bytes, and nothing is changed.
const SETTINGS: [&str; 10] = [
    "_buildhost localhost",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "source_date_epoch_from_changelog 0",
    "_build_id_links none",
    "_binary_payload w9.gzdio",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    "_build_pkgcheck %{nil}",
    "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
];

/// Writes a package with the files of `tree` into `out`.
pub(super) fn write(
    name: &str,
    tree: &FileTree,
    inputs: &Inputs<'_>,
    out: &Path,
) -> Result<PathBuf, String> {
    packages::need(&[("rpmbuild", "rpm")])?;
    let work = WorkFolder::new(name)?;
    work.fill(tree)?;
    let spec = work.0.join("package.spec");
    let fail = |err: std::io::Error| format!("{}: {err}", spec.display());
    fs::write(&spec, text(name, tree, inputs)?).map_err(fail)?;
    let machine = inputs.stamp.machine.rpm();
    let mut command = Command::new("rpmbuild");
    command.args(["-bb", "--quiet", "--target", machine]);
    let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
    let folders = [
        format!("_topdir {}", work.0.display()),
        format!("_rpmdir {}", work.0.display()),
        format!("weir_files {}", work.files().display()),
    ];
    for setting in settings.chain(folders) {
        command.args(["--define", &setting]);
    }
    command.env("SOURCE_DATE_EPOCH", inputs.stamp.time.to_string());
    project::output(command.arg(&spec))?;
    let file = format!("{name}-{}.{machine}.rpm", inputs.stamp.with_revision());
    let path = out.join(&file);
    fs::copy(work.0.join(&file), &path).map_err(|err| format!("{file}: {err}"))?;
    Ok(path)
}

/// The spec: the package's own, what is only known now, and the files.
fn text(name: &str, tree: &FileTree, inputs: &Inputs<'_>) -> Result<String, String> {
    let spec = repository_file(&format!("packaging/rpm/{name}.spec"))?;
    let stamp = inputs.stamp;
    let text = String::from_utf8_lossy(&spec)
        .replace("{version}", &stamp.version)
        .replace("{release}", &stamp.revision.to_string())
        .replace("{maintainer}", &stamp.maintainer)
        .replace("{date}", &stamp.date("+%a %b %d %Y")?);
    Ok(format!("{text}\n{INSTALL}\n%files\n{}", list(tree)))
}

/// The files, each with its mode; those in /etc are kept when they were changed.
fn list(tree: &FileTree) -> String {
    let mut text = String::new();
    for (path, file) in tree.iter().filter(|(path, _)| !is_shared(tree, path)) {
        let mode = file.mode;
        text += &match file.content {
            Content::Link(_) => format!("/{path}\n"),
            Content::Folder => format!("%dir %attr({mode:o},root,root) /{path}\n"),
            Content::File(_) if path.starts_with("etc/") => {
                format!("%config(noreplace) %attr({mode:o},root,root) /{path}\n")
            }
            Content::File(_) => format!("%attr({mode:o},root,root) /{path}\n"),
        };
    }
    text
}

/// Whether it is a folder that a system has without this package: all but those named weir.
fn is_shared(tree: &FileTree, path: &str) -> bool {
    let is_folder = tree.find(path).is_some_and(|file| file.content == Content::Folder);
    is_folder && !path.contains("weir")
}

/// Where rpmbuild finds the files; it goes away with this.
struct WorkFolder(PathBuf);

impl WorkFolder {
    fn new(name: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-rpm-{name}-{}", std::process::id()));
        let work = Self(folder);
        let files = work.files();
        fs::create_dir_all(&files).map_err(|err| format!("{}: {err}", files.display()))?;
        Ok(work)
    }

    fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    fn fill(&self, tree: &FileTree) -> Result<(), String> {
        for (path, file) in tree.iter() {
            let path = self.files().join(path);
            let written = match &file.content {
                Content::Folder => fs::create_dir_all(&path),
                Content::File(bytes) => fs::write(&path, bytes),
                Content::Link(target) => symlink(target, &path),
            };
            written.map_err(|err| format!("{}: {err}", path.display()))?;
        }
        Ok(())
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tree::TreeFile;

    #[test]
    fn the_list_has_modes_and_own_folders_and_keeps_configurations() {
        let mut tree = FileTree::default();
        let mut add = |path: &str, mode: u32, content: Content| {
            tree.add(path, TreeFile { mode, owner: 0, content });
        };
        add("/etc/weir/nginx.conf", 0o644, Content::File(Vec::new()));
        add("/usr/bin/weir", 0o755, Content::File(Vec::new()));
        add("/usr/sbin/nginx", 0o777, Content::Link("../bin/weir".into()));
        let expected = "%dir %attr(755,root,root) /etc/weir\n\
                        %config(noreplace) %attr(644,root,root) /etc/weir/nginx.conf\n\
                        %attr(755,root,root) /usr/bin/weir\n\
                        /usr/sbin/nginx\n";
        assert_eq!(list(&tree), expected);
    }
}
