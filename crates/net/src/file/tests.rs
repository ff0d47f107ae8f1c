use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;

/// A directory that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-net-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> Vec<u8> {
        self.0.join(name).as_os_str().as_bytes().to_vec()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A directory with a file, links to the file and to its directory, and a link to itself.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.0.join("real")).unwrap();
    fs::write(folder.0.join("real/file"), "content").unwrap();
    symlink("file", folder.0.join("real/link")).unwrap();
    symlink("real", folder.0.join("directory")).unwrap();
    symlink("loop", folder.0.join("loop")).unwrap();
    folder
}

fn errno(result: Result<File, PathError>) -> Option<i32> {
    result.err().and_then(|failed| failed.error.raw_os_error())
}

#[test]
fn links_are_refused_anywhere_in_a_path() {
    let folder = folder("refuse");
    let open = |name: &str| open_checked(&folder.path(name), 0, Links::Refuse);
    assert!(open("real/file").is_ok());
    assert!(open("real//file").is_ok());
    assert!(open("real/../real/./file").is_ok());
    assert_eq!(errno(open("real/link")), Some(libc::ELOOP));
    assert_eq!(errno(open("directory/file")), Some(libc::ENOTDIR));
    assert_eq!(errno(open("real/file/")), Some(libc::ENOTDIR));
    assert_eq!(errno(open("real/file/more")), Some(libc::ENOTDIR));
    assert_eq!(errno(open("real/none")), Some(libc::ENOENT));
    assert!(stat_open(&open("real/").unwrap()).unwrap().is_directory());
    assert_eq!(open("real/none").unwrap_err().call, "openat()");
}

#[test]
fn the_trusted_part_may_have_links() {
    let folder = folder("trusted");
    let path = folder.path("directory/file");
    let trusted = folder.path("directory").len();
    assert!(open_checked(&path, trusted, Links::Refuse).is_ok());
    let linked = folder.path("directory/link");
    assert_eq!(errno(open_checked(&linked, trusted, Links::Refuse)), Some(libc::ELOOP));
    let missing = folder.path("none/file");
    let failed = open_checked(&missing, trusted - 5, Links::Refuse).unwrap_err();
    assert_eq!(failed.call, "open()");
}

#[test]
fn links_are_followed_if_the_owners_match() {
    let folder = folder("owner");
    let open = |name: &str| open_checked(&folder.path(name), 0, Links::IfNotOwner);
    assert!(open("real/link").is_ok());
    assert!(open("directory/file").is_ok());
    assert_eq!(errno(open("loop")), Some(libc::ELOOP));
    let theirs = Path::new("/etc/passwd");
    let ours = fs::metadata(&folder.0).unwrap();
    if std::os::unix::fs::MetadataExt::uid(&fs::metadata(theirs).unwrap())
        == std::os::unix::fs::MetadataExt::uid(&ours)
    {
        // Run by root: a link given to another user is not followed to our file.
        std::os::unix::fs::lchown(folder.0.join("real/link"), Some(65534), None).unwrap();
        assert_eq!(errno(open("real/link")), Some(libc::ELOOP));
    } else {
        symlink(theirs, folder.0.join("theirs")).unwrap();
        assert_eq!(errno(open("theirs")), Some(libc::ELOOP));
    }
}

#[test]
fn a_pipe_is_opened_without_waiting() {
    let folder = folder("pipe");
    let path = folder.path("pipe");
    rustix::fs::mknodat(
        CWD,
        OsStr::from_bytes(&path),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let stat = stat_open(&open(&path).unwrap()).unwrap();
    assert!(!stat.is_regular() && !stat.is_directory());
}

#[test]
fn replacing_or_changing_a_file_changes_its_stat() {
    let folder = folder("change");
    let path = folder.path("real/file");
    let before = stat(&path).unwrap();
    assert_eq!(stat(&path).unwrap(), before);
    fs::write(folder.0.join("new"), "content").unwrap();
    fs::rename(folder.0.join("new"), folder.0.join("real/file")).unwrap();
    let after = stat(&path).unwrap();
    assert_ne!(after, before);
    assert_eq!(after.size, before.size);
    let mut permissions = fs::metadata(folder.0.join("real/file")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0);
    fs::set_permissions(folder.0.join("real/file"), permissions).unwrap();
    assert_ne!(stat(&path).unwrap(), after);
    assert!(!after.is_settled(after.modified as u64 * 1000 + 1000));
    assert!(after.is_settled(after.modified as u64 * 1000 + 3000));
}

#[test]
fn failures_are_classified() {
    let folder = folder("failure");
    assert!(stat(&folder.path("none")).unwrap_err().is_not_found());
    assert!(stat(&folder.path("real/file/x")).unwrap_err().is_not_found());
    assert!(stat(&folder.path(&"x".repeat(300))).unwrap_err().is_not_found());
    assert!(stat(&folder.path("loop")).unwrap_err().is_refused_link());
    assert!(stat_link(&folder.path("loop")).unwrap().is_link());
}
