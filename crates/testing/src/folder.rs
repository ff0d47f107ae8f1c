//! Temporary folders.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is deleted when this is dropped. Every user may write to it, since a worker
/// process may be another user. Its path has no symbolic links.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder.
    #[expect(clippy::new_without_default, reason = "it creates a folder")]
    pub fn new() -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let parent = std::env::temp_dir().canonicalize().unwrap();
        let path = parent.join(format!("weir-test-{}-{number}", std::process::id()));
        // An earlier process with the same number may have been killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }

    /// The path of a file in it, as text.
    pub fn name(&self, file: &str) -> String {
        format!("{}/{file}", self.display())
    }

    /// Writes a file, and creates the folders on the way to it. Returns its path.
    pub fn write(&self, file: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The text of a file; empty if there is none.
    pub fn read(&self, file: &str) -> String {
        let bytes = fs::read(self.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<std::ffi::OsStr> for Folder {
    fn as_ref(&self) -> &std::ffi::OsStr {
        self.0.as_os_str()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_is_new_and_goes_with_its_files() {
    let (folder, other) = (Folder::new(), Folder::new());
    let file = folder.write("a/b", "text");
    assert_eq!((folder.read("a/b"), other.read("a/b")), ("text".into(), String::new()));
    assert_eq!(folder.name("a/b"), file.to_str().unwrap());
    drop(folder);
    assert!(!file.exists() && other.exists());
}
