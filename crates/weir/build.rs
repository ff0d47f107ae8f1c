//! Which compiler makes this, for `-V`.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=WEIR_RUSTC={}", version.as_deref().unwrap_or("rustc").trim());
    println!("cargo::rerun-if-changed=build.rs");
}
