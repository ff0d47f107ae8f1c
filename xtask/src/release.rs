//! A build of Weir that is optimised with a profile of what it does (PGO); docs/cost.md has what
//! that gains.
//!
//! Two builds: one with counters, which serves the rows of `bench` and the requests of `compare`,
//! and one that uses the counts. They have a target folder of their own, since other flags would
//! have everything built anew.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::package::static_program;
use crate::{bench, compare, packages, project};

pub(crate) const HELP: &str = "Weir optimised with a profile of what it does (PGO)

Usage: cargo xtask release [--static] [--turn MS]

  --static   link statically with musl, as in packages: `cargo xtask package --profile` takes
             the counts from target/pgo/weir.profdata
  --turn MS  how long each row of `bench` is served while counting (1000)

Builds Weir with counters, serves the rows of `bench` and the requests of `compare` with it, builds
it again with the counts, has `compare` verify the result, and prints where it is. Needs
llvm-profdata in the version of the compiler: rustup component add llvm-tools.
";

const TURN_MS: u64 = 1000;

/// Where both builds are made.
const TARGET: &str = "target/pgo";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let turn_ms = args.parsed("--turn", TURN_MS)?;
    let is_static = args.flag("--static");
    args.end()?;
    let mut compiler = InstalledCompiler::ask()?;
    if is_static {
        static_program::need_compilers()?;
        compiler.is_static = true;
    }
    let merger = compiler.find_merger()?;
    let counts = CountsFolder::new()?;
    println!("== build with counters");
    let counting = compiler.build(&format!("-Cprofile-generate={}", counts.0.display()))?;
    println!("== count");
    counts.open_to_all(&counting)?;
    bench::exercise(&counting, turn_ms)?;
    // The counters make it slower, so a case may miss its deadline. The verdict comes below.
    if let Err(why) = compare::run(&compared(&counting)) {
        println!("while counting: {why}");
    }
    let profile = counts.merge(&merger)?;
    println!("== build with the counts");
    let built = compiler.build(&format!("-Cprofile-use={}", profile.display()))?;
    println!("== verify");
    compare::run(&compared(&built))?;
    println!("{}", built.display());
    Ok(())
}

fn compared(weir: &Path) -> Vec<String> {
    vec!["--weir".to_owned(), weir.display().to_string()]
}

/// The compiler that builds the project.
struct InstalledCompiler {
    /// What it builds for unless told otherwise.
    host: String,
    llvm_major: String,
    /// Where rustup puts the programs of the component llvm-tools.
    tools: PathBuf,
    /// Whether the program is linked statically with musl.
    is_static: bool,
}

impl InstalledCompiler {
    fn ask() -> Result<Self, String> {
        let mut rustc = Command::new("rustc");
        let version = project::output(rustc.current_dir(project::root()).arg("-vV"))?;
        let version = String::from_utf8_lossy(&version).into_owned();
        let (host, llvm_major) = read_version(&version).ok_or("rustc -vV names no host or LLVM")?;
        let mut rustc = Command::new("rustc");
        rustc.current_dir(project::root()).args(["--print", "target-libdir"]);
        let library = project::output(&mut rustc)?;
        let library = PathBuf::from(String::from_utf8_lossy(&library).trim());
        Ok(Self { host, llvm_major, tools: library.with_file_name("bin"), is_static: false })
    }

    /// llvm-profdata, which reads the counts of its own version only.
    fn find_merger(&self) -> Result<PathBuf, String> {
        let own = self.tools.join("llvm-profdata");
        if own.exists() {
            return Ok(own);
        }
        let name = format!("llvm-profdata-{}", self.llvm_major);
        packages::find(&name).ok_or_else(|| {
            format!(
                "llvm-profdata is missing: rustup component add llvm-tools, or {name} of the \
                 Debian package llvm-{}",
                self.llvm_major
            )
        })
    }

    /// Builds Weir with a flag. Because the target is named, the flag is not for build scripts.
    fn build(&self, flag: &str) -> Result<PathBuf, String> {
        let target = if self.is_static { static_program::target() } else { self.host.clone() };
        let args = ["build", "--release", "--package", "weir", "--target", &target];
        let mut command = project::cargo(&args);
        command.args(["--target-dir", TARGET]);
        if self.is_static {
            static_program::set_up(&mut command, vec![flag.to_owned()])?;
        } else {
            command.env("RUSTFLAGS", flag);
            command.env("SOURCE_DATE_EPOCH", project::build_time()?.to_string());
        }
        project::succeed(&mut command)?;
        Ok(project::root().join(TARGET).join(target).join("release/weir"))
    }
}

/// The host, and the major version of LLVM, in what `rustc -vV` prints.
fn read_version(text: &str) -> Option<(String, String)> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let major = value("LLVM version: ")?.split('.').next()?;
    Some((value("host: ")?.to_owned(), major.to_owned()))
}

/// Where processes add up their counts when they end, in a file; it goes away with this. Workers
/// run as another user, so it is not below the project, where that user may not be able to go.
struct CountsFolder(PathBuf);

impl CountsFolder {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-counts-{}", std::process::id()));
        let fail = |err: std::io::Error| format!("{}: {err}", folder.display());
        fs::create_dir(&folder).map_err(fail)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).map_err(fail)?;
        Ok(Self(folder))
    }

    /// Has the program make the file, and lets every user write to it.
    fn open_to_all(&self, counting: &Path) -> Result<(), String> {
        project::output(Command::new(counting).arg("-v"))?;
        let fail = |err: std::io::Error| format!("{}: {err}", self.0.display());
        for file in fs::read_dir(&self.0).map_err(fail)? {
            let path = file.map_err(fail)?.path();
            fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(fail)?;
        }
        Ok(())
    }

    /// The profile that the compiler reads.
    fn merge(&self, merger: &Path) -> Result<PathBuf, String> {
        let profile = project::root().join(TARGET).join("weir.profdata");
        let mut command = Command::new(merger);
        command.args(["merge", "--output"]).arg(&profile).arg(&self.0);
        project::output(&mut command)?;
        Ok(profile)
    }
}

impl Drop for CountsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_s_version_is_read() {
        let text = "rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n";
        let expected = ("x86_64-unknown-linux-gnu".to_owned(), "22".to_owned());
        assert_eq!(read_version(text), Some(expected));
        assert_eq!(read_version("rustc 1.95.0\n"), None);
    }
}
