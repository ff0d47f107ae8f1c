//! The program in two files: stripped, and its debug information, to which the first one refers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{packages, project};

/// The processor that a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetMachine {
    X86_64,
    Aarch64,
}

impl TargetMachine {
    /// Debian's and Go's word for it.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub(super) fn rpm(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The machine in the head of an ELF file.
    fn of_elf(head: &[u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        match head.get(18..20)? {
            [62, 0] => Some(Self::X86_64),
            [183, 0] => Some(Self::Aarch64),
            _ => None,
        }
    }
}

pub(super) struct SplitProgram {
    pub(super) stripped: PathBuf,
    /// Debuggers look for it by its name: beside the program, or below /usr/lib/debug.
    pub(super) debug: PathBuf,
    /// The programs of `weir discover` and `weir ingress`, stripped as well.
    pub(super) discover: PathBuf,
    pub(super) ingress: PathBuf,
}

impl SplitProgram {
    /// Splits `binary` into two files in `out`.
    pub(super) fn split(binary: &Path, out: &Path) -> Result<Self, String> {
        packages::need(&[("objcopy", "binutils"), ("xz", "xz-utils")])?;
        let (stripped, debug) = (out.join("weir"), out.join("weir.debug"));
        let objcopy = |args: &[&str], from: &Path, to: &Path| {
            let mut command = Command::new("objcopy");
            // The link names the file without its folder.
            command.current_dir(out).args(args).arg(from).arg(to);
            project::output(&mut command).map(drop)
        };
        let absolute =
            |path: &Path| path.canonicalize().map_err(|err| format!("{}: {err}", path.display()));
        let (binary, folder) = (absolute(binary)?, absolute(out)?);
        if binary.parent() == Some(&folder) {
            return Err(format!("{}: --out would replace the program", binary.display()));
        }
        let compressed = ["--only-keep-debug", "--compress-debug-sections"];
        objcopy(&compressed, &binary, Path::new("weir.debug"))?;
        for name in ["weir-discover", "weir-ingress"] {
            let beside = binary.with_file_name(name);
            if !beside.is_file() {
                return Err(format!("{}: it belongs beside the program", beside.display()));
            }
            objcopy(&["--strip-all"], &beside, Path::new(name))?;
        }
        let link = "--add-gnu-debuglink=weir.debug";
        objcopy(&["--strip-all", link], &binary, Path::new("weir"))?;
        let (discover, ingress) = (out.join("weir-discover"), out.join("weir-ingress"));
        Ok(Self { stripped, debug, discover, ingress })
    }

    pub(super) fn machine(&self) -> Result<TargetMachine, String> {
        let name = self.stripped.display();
        let head = fs::read(&self.stripped).map_err(|err| format!("{name}: {err}"))?;
        TargetMachine::of_elf(&head)
            .ok_or_else(|| format!("{name}: not a program for a known machine"))
    }

    /// Whether it needs shared libraries.
    pub(super) fn is_dynamic(&self) -> Result<bool, String> {
        let mut readelf = Command::new("readelf");
        let listed = project::output(readelf.arg("--dynamic").arg(&self.stripped))?;
        Ok(String::from_utf8_lossy(&listed).contains("(NEEDED)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_read_from_the_head() {
        let mut head = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xb7\0";
        assert_eq!(TargetMachine::of_elf(&head), Some(TargetMachine::Aarch64));
        head[18] = 62;
        assert_eq!(TargetMachine::of_elf(&head), Some(TargetMachine::X86_64));
        head[18] = 3;
        assert_eq!(TargetMachine::of_elf(&head), None);
        assert_eq!(TargetMachine::of_elf(b"#!/bin/sh"), None);
    }
}
