use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ::testing::Folder;

use super::*;

/// A file, links to it and to its directory, and a link to a file that is not ours.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("real/file", "content");
    symlink("file", folder.join("real/link")).unwrap();
    symlink("real", folder.join("directory")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    folder
}

fn errno(result: Result<File, PathError>) -> Option<i32> {
    result.err().and_then(|failed| failed.error.raw_os_error())
}

#[test]
fn links_are_refused_anywhere_in_a_path() {
    let folder = folder();
    let open = |name: &str| open_checked(folder.name(name).as_bytes(), 0, Links::Refuse);
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
    let folder = folder();
    let path = folder.name("directory/file");
    let trusted = folder.name("directory").len();
    assert!(open_checked(path.as_bytes(), trusted, Links::Refuse).is_ok());
    let linked = folder.name("directory/link");
    assert_eq!(errno(open_checked(linked.as_bytes(), trusted, Links::Refuse)), Some(libc::ELOOP));
    let missing = folder.name("none/file");
    let failed = open_checked(missing.as_bytes(), trusted - 5, Links::Refuse).unwrap_err();
    assert_eq!(failed.call, "open()");
}

#[test]
fn links_are_followed_if_the_owners_match() {
    let folder = folder();
    let open = |name: &str| open_checked(folder.name(name).as_bytes(), 0, Links::IfNotOwner);
    assert!(open("real/link").is_ok());
    assert!(open("directory/file").is_ok());
    assert_eq!(errno(open("loop")), Some(libc::ELOOP));
    let theirs = Path::new("/etc/passwd");
    let ours = fs::metadata(&folder).unwrap();
    if std::os::unix::fs::MetadataExt::uid(&fs::metadata(theirs).unwrap())
        == std::os::unix::fs::MetadataExt::uid(&ours)
    {
        // Run by root: a link given to another user is not followed to our file.
        std::os::unix::fs::lchown(folder.join("real/link"), Some(65534), None).unwrap();
        assert_eq!(errno(open("real/link")), Some(libc::ELOOP));
    } else {
        symlink(theirs, folder.join("theirs")).unwrap();
        assert_eq!(errno(open("theirs")), Some(libc::ELOOP));
    }
}

#[test]
fn a_pipe_is_opened_without_waiting() {
    let folder = folder();
    let path = folder.name("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let stat = stat_open(&open(path.as_bytes()).unwrap()).unwrap();
    assert!(!stat.is_regular() && !stat.is_directory());
}

#[test]
fn replacing_or_changing_a_file_changes_its_stat() {
    let folder = folder();
    let path = folder.name("real/file");
    let before = stat(path.as_bytes()).unwrap();
    assert_eq!(stat(path.as_bytes()).unwrap(), before);
    fs::write(folder.join("new"), "content").unwrap();
    fs::rename(folder.join("new"), folder.join("real/file")).unwrap();
    let after = stat(path.as_bytes()).unwrap();
    assert_ne!(after, before);
    assert_eq!(after.size, before.size);
    let mut permissions = fs::metadata(folder.join("real/file")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0);
    fs::set_permissions(folder.join("real/file"), permissions).unwrap();
    assert_ne!(stat(path.as_bytes()).unwrap(), after);
    assert!(!after.is_settled(after.modified as u64 * 1000 + 1000));
    assert!(after.is_settled(after.modified as u64 * 1000 + 3000));
}

#[test]
fn failures_are_classified() {
    let folder = folder();
    assert!(stat(folder.name("none").as_bytes()).unwrap_err().is_not_found());
    assert!(stat(folder.name("real/file/x").as_bytes()).unwrap_err().is_not_found());
    assert!(stat(folder.name(&"x".repeat(300)).as_bytes()).unwrap_err().is_not_found());
    assert!(stat(folder.name("loop").as_bytes()).unwrap_err().is_refused_link());
    assert!(stat_link(folder.name("loop").as_bytes()).unwrap().is_link());
}
