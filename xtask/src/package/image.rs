//! Images for containers: a layout of the Open Container Initiative (image-spec) in an archive,
//! which also has the manifest that `docker load` reads.
//!
//! An image has one layer, the files of its tree, and `packaging/NAME/config.json` says how it
//! runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::contents::{BUSYBOX, Inputs, repository_file};
use super::filter;
use super::tar;
use super::tree::{Content, FileTree, TreeFile};
use crate::{packages, project};

/// An image, and what its tag ends in.
pub(super) struct Image {
    pub(super) name: &'static str,
    suffix: &'static str,
}

pub(super) const IMAGES: [Image; 2] =
    [Image { name: "image", suffix: "" }, Image { name: "nginx-image", suffix: "-nginx" }];

/// Writes one image with the files of `tree` into `out`.
pub(super) fn write(
    image: &Image,
    mut tree: FileTree,
    inputs: &Inputs<'_>,
    out: &Path,
) -> Result<PathBuf, String> {
    packages::need(&[("busybox", "busybox-static")])?;
    if inputs.program.is_dynamic()? {
        return Err("an image has no libraries: the program must be static".into());
    }
    add_applets(&mut tree)?;
    let layout = layout(image, &tree, inputs)?;
    let archive = tar::archive(&layout, "", inputs.stamp.time)?;
    let (version, machine) = (&inputs.stamp.version, inputs.stamp.machine.debian());
    let path = out.join(format!("weir{}-{version}-{machine}.oci.tar", image.suffix));
    fs::write(&path, archive).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(path)
}

/// The files of the archive: blobs by their digests, and two indexes of them.
fn layout(image: &Image, tree: &FileTree, inputs: &Inputs<'_>) -> Result<FileTree, String> {
    let stamp = inputs.stamp;
    let layer = tar::archive(tree, "", stamp.time)?;
    let created = stamp.date("+%Y-%m-%dT%H:%M:%SZ")?;
    let config = json!({
        "created": created,
        "architecture": stamp.machine.debian(),
        "os": "linux",
        "config": config(image, &stamp.version)?,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer)?)] },
        "history": [{ "created": created, "created_by": "cargo xtask package" }],
    });
    let mut layout = ImageLayout::default();
    let layer = layout.blob("layer.v1.tar+gzip", filter::gzip(&layer)?)?;
    let config = layout.blob("config.v1+json", config.to_string().into_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor,
        "layers": [layer.descriptor],
    });
    let manifest = layout.blob("manifest.v1+json", manifest.to_string().into_bytes())?;
    let tag = format!("{}{}", stamp.version, image.suffix);
    let mut named = manifest.descriptor;
    named["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/weir:{tag}"),
        "org.opencontainers.image.ref.name": tag,
    });
    layout.file("index.json", &json!({ "schemaVersion": 2, "manifests": [named] }));
    layout.file("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" }));
    layout.file(
        "manifest.json",
        &json!([{
            "Config": config.path,
            "Layers": [layer.path],
            "RepoTags": [format!("weir:{tag}")],
        }]),
    );
    Ok(layout.0)
}

/// How the image runs, with the labels that tools show.
fn config(image: &Image, version: &str) -> Result<Value, String> {
    let path = format!("packaging/{}/config.json", image.name);
    let mut config: Value =
        serde_json::from_slice(&repository_file(&path)?).map_err(|err| format!("{path}: {err}"))?;
    config["Labels"] = json!({
        "org.opencontainers.image.title": "Weir",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    Ok(config)
}

fn sha256(bytes: &[u8]) -> Result<String, String> {
    filter::digest("sha256sum", bytes)
}

#[derive(Default)]
struct ImageLayout(FileTree);

/// A blob of the layout, and how other blobs refer to it.
struct Blob {
    path: String,
    descriptor: Value,
}

impl ImageLayout {
    fn blob(&mut self, kind: &str, bytes: Vec<u8>) -> Result<Blob, String> {
        let digest = sha256(&bytes)?;
        let path = format!("blobs/sha256/{digest}");
        let descriptor = json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        });
        self.add(&path, bytes);
        Ok(Blob { path, descriptor })
    }

    fn file(&mut self, path: &str, value: &Value) {
        self.add(path, value.to_string().into_bytes());
    }

    fn add(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.add(path, TreeFile { mode: 0o644, owner: 0, content: Content::File(bytes) });
    }
}

/// Links for the programs that busybox can be, where the tree has it; own files come first.
fn add_applets(tree: &mut FileTree) -> Result<(), String> {
    if tree.find(BUSYBOX.trim_start_matches('/')).is_none() {
        return Ok(());
    }
    let listed = project::output(Command::new(BUSYBOX).arg("--list-full"))?;
    for path in String::from_utf8_lossy(&listed).lines() {
        if tree.find(path).is_none() {
            let content = Content::Link(BUSYBOX.to_owned());
            tree.add(path, TreeFile { mode: 0o777, owner: 0, content });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_found_by_its_digest() {
        let mut layout = ImageLayout::default();
        let blob = layout.blob("config.v1+json", b"{}".to_vec()).unwrap();
        let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(blob.path, format!("blobs/sha256/{digest}"));
        assert_eq!(blob.descriptor["digest"], format!("sha256:{digest}"));
        assert_eq!(blob.descriptor["size"], 2);
        assert!(layout.0.find(&blob.path).is_some());
    }

    #[test]
    fn every_image_says_how_it_runs() {
        for image in IMAGES {
            let config = config(&image, "1.2.3").unwrap();
            assert_eq!(config["StopSignal"], "SIGQUIT");
            assert_eq!(config["Labels"]["org.opencontainers.image.version"], "1.2.3");
        }
    }
}
