//! Archives in POSIX's ustar format (pax(1)), with nothing in them that differs between two runs.

use super::tree::{Content, FileTree, TreeFile};

const BLOCK: usize = 512;

/// An archive of a tree in which everything is as old as `time`. `prefix` begins each name.
pub(super) fn archive(tree: &FileTree, prefix: &str, time: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    if !prefix.is_empty() {
        let root = TreeFile { mode: 0o755, owner: 0, content: Content::Folder };
        append(&mut bytes, prefix, &root, time)?;
    }
    for (path, file) in tree.iter() {
        let slash = if file.content == Content::Folder { "/" } else { "" };
        append(&mut bytes, &format!("{prefix}{path}{slash}"), file, time)?;
    }
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    Ok(bytes)
}

fn append(archive: &mut Vec<u8>, name: &str, file: &TreeFile, time: u64) -> Result<(), String> {
    let data = match &file.content {
        Content::File(bytes) => bytes.as_slice(),
        Content::Folder | Content::Link(_) => &[],
    };
    archive.extend_from_slice(&head(name, file, data.len(), time)?);
    archive.extend_from_slice(data);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

/// The block before the data: fixed fields, numbers in octal.
fn head(name: &str, file: &TreeFile, size: usize, time: u64) -> Result<[u8; BLOCK], String> {
    let (kind, target) = match &file.content {
        Content::File(_) => (b'0', ""),
        Content::Link(target) => (b'2', target.as_str()),
        Content::Folder => (b'5', ""),
    };
    let mut block = [0; BLOCK];
    let mut put = |at: usize, size: usize, text: &str| {
        let fits = text.len() <= size;
        fits.then(|| block[at..at + text.len()].copy_from_slice(text.as_bytes()))
            .ok_or_else(|| format!("\"{text}\" is too long for an archive"))
    };
    put(0, 100, name)?;
    put(100, 8, &format!("{:07o}", file.mode))?;
    put(108, 8, &format!("{:07o}", file.owner))?;
    put(116, 8, &format!("{:07o}", file.owner))?;
    put(124, 12, &format!("{size:011o}"))?;
    put(136, 12, &format!("{time:011o}"))?;
    put(148, 8, "        ")?; // The checksum counts as spaces.
    put(157, 100, target)?;
    put(257, 8, "ustar\x0000")?;
    block[156] = kind;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::filter::filter;

    fn file(mode: u32, owner: u32, content: Content) -> TreeFile {
        TreeFile { mode, owner, content }
    }

    #[test]
    fn tar_reads_what_is_written() {
        let mut tree = FileTree::default();
        tree.add("/var/lib/weir", file(0o750, 101, Content::Folder));
        tree.add("/usr/bin/weir", file(0o755, 0, Content::File(vec![b'x'; 513])));
        tree.add("/usr/sbin/nginx", file(0o777, 0, Content::Link("../bin/weir".into())));
        let bytes = archive(&tree, "./", 1_000_000_000).unwrap();
        let args = ["--list", "--verbose", "--utc", "--numeric-owner", "--file", "-"];
        let listed = String::from_utf8(filter("tar", &args, &bytes).unwrap()).unwrap();
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[0], "drwxr-xr-x 0/0 0 2001-09-09 01:46 ./");
        assert_eq!(lines[3], "-rwxr-xr-x 0/0 513 2001-09-09 01:46 ./usr/bin/weir");
        let link = "lrwxrwxrwx 0/0 0 2001-09-09 01:46 ./usr/sbin/nginx -> ../bin/weir";
        assert_eq!(lines[5], link);
        assert_eq!(lines[8], "drwxr-x--- 101/101 0 2001-09-09 01:46 ./var/lib/weir/");
    }

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        let mut tree = FileTree::default();
        tree.add(&"x".repeat(101), file(0o644, 0, Content::File(Vec::new())));
        assert!(archive(&tree, "", 0).unwrap_err().contains("too long"));
    }
}
