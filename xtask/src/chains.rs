//! `xtask chains`: random chains of certificates, verified by Weir and by `openssl verify`.

use crate::args::Args;
use crate::{packages, project};

pub(crate) const HELP: &str = "random chains of certificates: none is accepted that OpenSSL refuses

Usage: cargo xtask chains

Runs a test of crate net, which makes chains with names, name constraints, key usages, purposes,
times and extensions of all kinds, and asks Weir and `openssl verify`. The seed is fixed. Prints how
many chains both accept and refuse, and which are refused by Weir alone. Needs openssl.
";

const TEST: &str = "chains_refused_by_openssl_are_refused";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    Args::new(words).end()?;
    if !is_possible() {
        return Err("openssl is not installed".to_owned());
    }
    let words = ["test", "--package", "net", "--lib", TEST, "--", "--ignored", "--nocapture"];
    project::succeed(&mut project::cargo(&words))
}

/// Whether there is an OpenSSL to compare with.
pub(crate) fn is_possible() -> bool {
    packages::find("openssl").is_some()
}
