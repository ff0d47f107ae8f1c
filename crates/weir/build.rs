//! Which compiler makes this, for `-V`, and when, if the build is one that says so.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=WEIR_RUSTC={}", version.as_deref().unwrap_or("rustc").trim());
    // By the convention of reproducible builds; a time of the clock would make each build another.
    let built_s = std::env::var("SOURCE_DATE_EPOCH").unwrap_or_default();
    println!("cargo::rustc-env=WEIR_BUILT_S={built_s}");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed=build.rs");
}
