//! `xtask package`: the packages that a release consists of, from one table of files.
//!
//! ```text
//! packaging/files -> Contents -> FileTree, one per package -> deb, ...
//! ```
//!
//! The same program and commit give the same bytes: files are sorted, belong to root, and are as
//! old as the commit. The formats are written here; only compressors and digests are programs from
//! outside.

mod contents;
mod deb;
mod filter;
mod program;
mod stamp;
mod tar;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::project;
use contents::{Contents, Inputs, PackageFormat};
use program::SplitProgram;
use stamp::ReleaseStamp;

pub(crate) const HELP: &str = "packages of a release, from the table packaging/files

Usage: cargo xtask package --binary FILE [--out FOLDER] [--maintainer TEXT]

  --binary FILE      the program to package
  --out FOLDER       where the packages are put (target/package)
  --maintainer TEXT  whom the packages name: \"NAME <ADDRESS>\"

Makes the Debian packages weir, weir-as-nginx and weir-dbgsym (the debug information), and
SHA256SUMS. Times are those of the commit, or SOURCE_DATE_EPOCH.
";

const OUT: &str = "target/package";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let binary = args.option("--binary")?.ok_or("--binary FILE is missing")?;
    let out = args.option("--out")?.map_or_else(|| project::root().join(OUT), PathBuf::from);
    let maintainer = args.option("--maintainer")?;
    args.end()?;
    fs::create_dir_all(&out).map_err(|err| format!("{}: {err}", out.display()))?;
    let made = make(Path::new(&binary), &out, maintainer)?;
    write_sums(&out, &made)?;
    made.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

/// Makes all packages of a program; the result is their files.
fn make(binary: &Path, out: &Path, maintainer: Option<String>) -> Result<Vec<PathBuf>, String> {
    let program = SplitProgram::split(binary, out)?;
    let stamp = ReleaseStamp::new(program.machine()?, maintainer)?;
    let contents = Contents::read()?;
    let inputs = Inputs { program: &program, stamp: &stamp };
    let mut made = vec![program.stripped.clone(), program.debug.clone()];
    for name in deb::PACKAGES {
        let tree = contents.tree(name, PackageFormat::Deb, &inputs)?;
        made.push(deb::write(name, &tree, &inputs, out)?);
    }
    Ok(made)
}

/// What `sha256sum --check` verifies.
fn write_sums(out: &Path, made: &[PathBuf]) -> Result<(), String> {
    let mut text = String::new();
    for file in made {
        let bytes = fs::read(file).map_err(|err| format!("{}: {err}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{}  {name}\n", filter::digest("sha256sum", &bytes)?);
    }
    let path = out.join("SHA256SUMS");
    fs::write(&path, text).map_err(|err| format!("{}: {err}", path.display()))
}
