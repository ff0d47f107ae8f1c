//! Two runs give the same bytes, whatever folders they use.

use std::fs;
use std::path::{Path, PathBuf};

use super::contents::{Contents, Inputs, PackageFormat};
use super::program::{SplitProgram, TargetMachine};
use super::stamp::ReleaseStamp;
use super::tree::{Content, FileTree, TreeFile};
use super::{deb, image, rpm};
use crate::packages;

/// The head of a program without anything else.
fn empty_program() -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    head[16..21].copy_from_slice(&[2, 0, 62, 0, 1]);
    head[52] = 64;
    head
}

/// Folders for one run.
struct RunFolder(PathBuf);

impl RunFolder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("weir-package-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("out")).unwrap();
        fs::write(folder.join("program"), empty_program()).unwrap();
        Self(folder)
    }

    /// Writes packages into the folder; the result is their bytes.
    fn packages(&self, time: u64) -> Vec<Vec<u8>> {
        let program = self.0.join("program");
        let program = SplitProgram {
            stripped: program.clone(),
            discover: program.clone(),
            ingress: program.clone(),
            debug: program,
        };
        let stamp = ReleaseStamp {
            version: "1.2.3".into(),
            machine: TargetMachine::X86_64,
            time,
            maintainer: "A <a@b>".into(),
            revision: 1,
        };
        let inputs = Inputs { program: &program, stamp: &stamp, written: &self.0 };
        let out = self.0.join("out");
        let mut made = Vec::new();
        for name in ["weir-as-nginx", "weir-dbgsym"] {
            let tree = Contents::read().unwrap().tree(name, PackageFormat::Deb, &inputs).unwrap();
            made.push(deb::write(name, &tree, &inputs, &out).unwrap());
        }
        made.push(image::write(&image::IMAGES[0], small_tree(), &inputs, &out).unwrap());
        if packages::find("rpmbuild").is_some() {
            made.push(rpm::write("weir-debuginfo", &small_tree(), &inputs, &out).unwrap());
        }
        made.iter().map(|path: &PathBuf| fs::read(path).unwrap()).collect()
    }
}

fn small_tree() -> FileTree {
    let mut tree = FileTree::default();
    let content = Content::File(b"events { }\n".to_vec());
    tree.add("/etc/weir/nginx.conf", TreeFile { mode: 0o644, owner: 0, content });
    tree
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let (first, second) = (RunFolder::new("first"), RunFolder::new("second"));
    let expected = first.packages(1_000_000_000);
    fs::write(second.0.join("program"), empty_program()).unwrap();
    assert_eq!(second.packages(1_000_000_000), expected);
    let later = second.packages(1_000_000_001);
    assert!(later.iter().zip(&expected).all(|(later, earlier)| later != earlier));
}

#[test]
fn a_page_that_no_package_has_is_refused() {
    let folder = RunFolder::new("written");
    let written = folder.0.join("out");
    let check = |name: &str| {
        fs::write(written.join(name), "").unwrap();
        Contents::read().unwrap().check_written(Path::new(&written))
    };
    assert_eq!(check("weir.8"), Ok(()));
    assert!(check("weir-new.1").unwrap_err().contains("written/weir-new.1"));
}
