//! `xtask sbom`: what the program is made of, as a bill of materials of CycloneDX 1.5.
//!
//! It has no time and no random number, so that a commit has one bill.

use std::fs;

use serde_json::{Value, json};

use crate::args::Args;
use crate::linked_crates::{self, LinkedCrate};

pub(crate) const HELP: &str = "write a bill of materials of weir (CycloneDX, JSON)

Usage: cargo xtask sbom FILE
";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let words = Args::new(words).words()?;
    let [file] = &words[..] else { return Err("a file is required".into()) };
    let (crates, own) = linked_crates::list()?;
    let text = serde_json::to_string_pretty(&bill(&crates, &own)).map_err(|why| why.to_string())?;
    fs::write(file, text + "\n").map_err(|error| format!("{file}: {error}"))
}

fn bill(crates: &[LinkedCrate], own: &[String]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let weir = format!("pkg:cargo/weir@{version}");
    let uses =
        crates.iter().map(|one| json!({"ref": url(&one.id()), "dependsOn": urls(&one.uses)}));
    let dependencies: Vec<Value> =
        std::iter::once(json!({"ref": weir, "dependsOn": urls(own)})).chain(uses).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": weir,
            "name": "weir",
            "version": version,
            "purl": weir,
            "licenses": [{"expression": "Apache-2.0"}],
        }},
        "components": crates.iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn component(one: &LinkedCrate) -> Value {
    let url = url(&one.id());
    json!({
        "type": "library",
        "bom-ref": url,
        "name": one.name,
        "version": one.version,
        "purl": url,
        "licenses": [{"expression": one.license}],
        "hashes": [{"alg": "SHA-256", "content": one.checksum}],
    })
}

/// The package URL of `NAME VERSION`.
fn url(id: &str) -> String {
    format!("pkg:cargo/{}", id.replace(' ', "@").replace('+', "%2B"))
}

fn urls(ids: &[String]) -> Vec<String> {
    ids.iter().map(|id| url(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_names_each_crate_and_what_uses_it() {
        let one = |name: &str, uses: &[&str]| LinkedCrate {
            name: name.into(),
            version: "1.0+x".into(),
            license: "MIT".into(),
            folder: "/".into(),
            checksum: "00".into(),
            uses: uses.iter().map(|&id| id.into()).collect(),
        };
        let bill = bill(&[one("a", &["b 1.0+x"]), one("b", &[])], &["a 1.0+x".into()]);
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/a@1.0%2Bx");
        assert_eq!(bill["dependencies"][0]["dependsOn"], json!(["pkg:cargo/a@1.0%2Bx"]));
        assert_eq!(bill["dependencies"][1]["dependsOn"], json!(["pkg:cargo/b@1.0%2Bx"]));
    }
}
