//! `xtask package`: the packages that a release consists of, from one table of files.
//!
//! ```text
//! packaging/files -> Contents -> FileTree, one per package -> deb, ...
//! ```
//!
//! The same program and commit give the same bytes: files are sorted, belong to root, and are as
//! old as the commit. The formats but RPM's are written here; compressors and digests are programs
//! from outside.

mod contents;
mod deb;
mod filter;
mod image;
mod program;
mod rpm;
mod stamp;
pub(crate) mod static_program;
mod tar;
#[cfg(test)]
mod tests;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::{completions, man, project, sbom};
use contents::{Contents, Inputs, PackageFormat};
use program::SplitProgram;
use stamp::{PackageLabels, ReleaseStamp};

pub(crate) const HELP: &str = "packages of a release, from the table packaging/files

Usage: cargo xtask package [--profile FILE | --binary FILE] [--only FORMAT]... [--out FOLDER]
                           [--maintainer TEXT] [--revision NUMBER]

  --profile FILE     the counts that the program is optimised with: target/pgo/weir.profdata of
                     `cargo xtask release --static`
  --binary FILE      package this program instead of building one
  --only FORMAT      deb, rpm or image; may repeat
  --out FOLDER       where the packages are put (target/package)
  --maintainer TEXT  whom the packages name: \"NAME <ADDRESS>\"
  --revision NUMBER  of the packaging, for the same version of Weir (1)

Builds a static program with musl, separates its debug information, and makes of both the packages
weir, weir-as-nginx and weir-dbgsym or weir-debuginfo for Debian and RPM, two images for containers,
an SBOM and SHA256SUMS. Times are those of the commit, or SOURCE_DATE_EPOCH.
";

const OUT: &str = "target/package";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let profile = args.option("--profile")?.map(PathBuf::from);
    let binary = args.option("--binary")?.map(PathBuf::from);
    let formats = formats(&args.each("--only")?)?;
    let out = args.option("--out")?.map_or_else(|| project::root().join(OUT), PathBuf::from);
    let maintainer = args.option("--maintainer")?;
    let revision = args.option("--revision")?.map_or(Ok(1), |text| {
        text.parse().map_err(|err| format!("--revision \"{text}\": {err}"))
    })?;
    args.end()?;
    let binary = match binary {
        Some(_) if profile.is_some() => {
            return Err("--profile is for a program that is built".into());
        }
        Some(binary) => binary,
        None => static_program::build(profile.as_deref())?,
    };
    fs::create_dir_all(&out).map_err(|err| format!("{}: {err}", out.display()))?;
    let made = make(&binary, &formats, &out, PackageLabels { maintainer, revision })?;
    write_sums(&out, &made)?;
    made.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

fn formats(names: &[String]) -> Result<Vec<PackageFormat>, String> {
    if names.is_empty() {
        return Ok(PackageFormat::ALL.to_vec());
    }
    let find = |name: &String| {
        let mut all = PackageFormat::ALL.into_iter();
        all.find(|format| format.name() == name).ok_or_else(|| format!("--only \"{name}\""))
    };
    names.iter().map(find).collect()
}

/// Makes the packages of a program; the result is their files.
fn make(
    binary: &Path,
    formats: &[PackageFormat],
    out: &Path,
    labels: PackageLabels,
) -> Result<Vec<PathBuf>, String> {
    let program = SplitProgram::split(binary, out)?;
    let stamp = ReleaseStamp::new(program.machine()?, labels)?;
    let contents = Contents::read()?;
    let written = ManualFolder::new(&program.stripped, out)?;
    contents.check_written(&written.0)?;
    let inputs = Inputs { program: &program, stamp: &stamp, written: &written.0 };
    let components = out.join("weir.cdx.json");
    sbom::run(&[components.display().to_string()])?;
    let mut made = vec![program.stripped.clone(), program.debug.clone(), components];
    for format in formats {
        let tree = |name: &str| contents.tree(name, *format, &inputs);
        match format {
            PackageFormat::Deb => {
                for name in deb::PACKAGES {
                    made.push(deb::write(name, &tree(name)?, &inputs, out)?);
                }
            }
            PackageFormat::Rpm => {
                for name in rpm::PACKAGES {
                    made.push(rpm::write(name, &tree(name)?, &inputs, out)?);
                }
            }
            PackageFormat::Image => {
                for image in &image::IMAGES {
                    made.push(image::write(image, tree(image.name)?, &inputs, out)?);
                }
            }
        }
    }
    Ok(made)
}

/// The man pages and completions, which the program is asked for; it goes away with this.
struct ManualFolder(PathBuf);

impl ManualFolder {
    fn new(program: &Path, out: &Path) -> Result<Self, String> {
        let folder = Self(out.join("written"));
        let text = |path: &Path| path.display().to_string();
        let words = [text(&folder.0), "--program".to_owned(), text(program)];
        man::run(&words)?;
        completions::run(&words)?;
        Ok(folder)
    }
}

impl Drop for ManualFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
