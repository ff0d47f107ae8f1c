//! Files that are replaced whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file. After a crash at any moment it has either the old text or the new.
pub(super) fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    // A link stays, and the file that it names is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = beside(&target);
    let written = write_new(&new, &target, text);
    if written.is_err() {
        // If this fails as well, the next write replaces it.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(new: &Path, target: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(new)?;
    file.write_all(text)?;
    if let Ok(before) = fs::metadata(target) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    fs::rename(new, target)?;
    sync_folder(target)
}

/// The name of the file while it is written.
fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Makes the names in the folder of a file last.
pub(super) fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays() {
        let folder = Folder::new();
        let (file, link) = (folder.join("a.conf"), folder.join("link"));
        write_whole(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_as_it_was() {
        let folder = Folder::new();
        let target = folder.join("target");
        fs::create_dir(&target).unwrap();
        assert!(write_whole(&target, b"x").is_err());
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 1);
    }
}
