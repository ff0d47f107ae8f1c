use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use ::testing::Folder;
use net::clock;

use super::*;

/// A directory and the caches of one worker.
struct Scene {
    folder: Folder,
    caches: Caches,
    rules: Option<CacheRules>,
    links: Links,
    now_ms: u64,
    unix_ms: u64,
}

/// A time after which a file no longer counts as recently changed.
const LATER_MS: u64 = 10_000;

impl Scene {
    fn new(rules: Option<CacheRules>) -> Self {
        let (folder, caches) = (Folder::new(), Caches::default());
        let unix_ms = clock::unix_ms() + LATER_MS;
        Self { folder, caches, rules, links: Links::Follow, now_ms: 0, unix_ms }
    }

    fn write(&self, name: &str, content: &str) {
        self.folder.write(name, content);
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.unix_ms += ms;
    }

    fn look(&self, name: &str, want: Want) -> Result<FoundFile, PathError> {
        let path = self.folder.join(name);
        let look = FileLookup {
            path: path.as_os_str().as_bytes(),
            want,
            links: self.links,
            trusted: 0,
            rules: self.rules,
            content_size_max: CONTENT_SIZE_MAX,
            now_ms: self.now_ms,
            unix_ms: self.unix_ms,
        };
        look.find(|| &self.caches)
    }

    fn open(&self, name: &str) -> FoundFile {
        self.look(name, Want::Content).unwrap()
    }

    fn failure(&self, name: &str) -> ErrorKind {
        self.look(name, Want::Content).map(|_| ()).unwrap_err().error.kind()
    }

    /// The content as it would be sent, after it was kept in memory.
    fn kept(&self, name: &str) -> String {
        self.open(name);
        match self.open(name).source {
            FileSource::Memory(content) => String::from_utf8_lossy(&content).into_owned(),
            _ => panic!("{name} is not kept"),
        }
    }
}

fn rules() -> CacheRules {
    CacheRules {
        number: 0,
        max: 100,
        inactive_ms: 60_000,
        valid_ms: 30_000,
        min_uses: 1,
        errors: false,
    }
}

fn memory(found: &FoundFile) -> Option<&Rc<[u8]>> {
    match &found.source {
        FileSource::Memory(content) => Some(content),
        _ => None,
    }
}

fn file(found: &FoundFile) -> Option<&Rc<File>> {
    match &found.source {
        FileSource::File(file) => Some(file),
        _ => None,
    }
}

#[test]
fn content_is_kept_from_the_second_use_on() {
    let scene = Scene::new(None);
    scene.write("a", "content");
    assert!(file(&scene.open("a")).is_some());
    let second = scene.open("a");
    assert_eq!(memory(&second).map(|content| &**content), Some(&b"content"[..]));
    let third = scene.open("a");
    assert!(Rc::ptr_eq(memory(&second).unwrap(), memory(&third).unwrap()));
}

#[test]
fn a_recently_changed_file_is_not_kept() {
    let mut scene = Scene::new(None);
    scene.write("a", "content");
    scene.unix_ms -= LATER_MS;
    for _ in 0..3 {
        assert!(file(&scene.open("a")).is_some());
    }
    scene.pass(LATER_MS);
    assert!(memory(&scene.open("a")).is_some());
}

#[test]
fn large_files_are_not_kept_in_memory() {
    for rules in [None, Some(rules())] {
        let scene = Scene::new(rules);
        scene.write("a", "");
        let size = CONTENT_SIZE_MAX + 1;
        File::options().write(true).open(scene.folder.join("a")).unwrap().set_len(size).unwrap();
        let (first, second) = (scene.open("a"), scene.open("a"));
        let same = Rc::ptr_eq(file(&first).unwrap(), file(&second).unwrap());
        assert_eq!(same, rules.is_some());
    }
}

#[test]
fn a_change_is_noticed_without_open_file_cache() {
    let mut scene = Scene::new(None);
    scene.write("a", "first");
    assert_eq!(scene.kept("a"), "first");
    // The same file with the same size.
    scene.write("a", "other");
    scene.pass(LATER_MS);
    assert_eq!(scene.kept("a"), "other");
    // Another file with the same name.
    scene.write("b", "third");
    fs::rename(scene.folder.join("b"), scene.folder.join("a")).unwrap();
    assert_eq!(scene.kept("a"), "third");
    // A larger file.
    scene.write("a", "longer than before");
    scene.pass(LATER_MS);
    assert_eq!(scene.kept("a"), "longer than before");
    fs::remove_file(scene.folder.join("a")).unwrap();
    assert_eq!(scene.failure("a"), ErrorKind::NotFound);
    assert_eq!(scene.failure("a/b"), ErrorKind::NotFound);
}

#[test]
fn a_link_that_leads_elsewhere_is_noticed() {
    let scene = Scene::new(None);
    scene.write("a", "one");
    scene.write("b", "two");
    symlink("a", scene.folder.join("link")).unwrap();
    assert_eq!(scene.kept("link"), "one");
    fs::remove_file(scene.folder.join("link")).unwrap();
    symlink("b", scene.folder.join("link")).unwrap();
    assert_eq!(scene.kept("link"), "two");
}

#[test]
fn lost_permission_is_noticed() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(None);
    scene.write("a", "content");
    let kept = scene.kept("a");
    fs::set_permissions(scene.folder.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
    match scene.look("a", Want::Content) {
        Err(failed) => assert!(failed.is_denied()),
        // Root can still read the file, but it was opened again.
        Ok(found) => assert!(memory(&found).is_some() && kept == "content"),
    }
}

#[test]
fn a_file_that_is_being_changed_is_not_kept() {
    let scene = Scene::new(None);
    scene.write("a", "content");
    let open = || File::open(scene.folder.join("a")).unwrap();
    assert_eq!(cache::read(&open(), 7).unwrap().as_deref(), Some(&b"content"[..]));
    assert_eq!(cache::read(&open(), 6).unwrap(), None);
    assert_eq!(cache::read(&open(), 8).unwrap(), None);
}

#[test]
fn open_file_cache_entries_are_valid_for_open_file_cache_valid() {
    let mut scene = Scene::new(Some(rules()));
    scene.write("a", "first");
    assert_eq!(scene.kept("a"), "first");
    scene.write("a", "other");
    fs::remove_file(scene.folder.join("a")).unwrap();
    scene.pass(29_999);
    assert_eq!(scene.kept("a"), "first");
    scene.pass(1);
    assert_eq!(scene.failure("a"), ErrorKind::NotFound);
    scene.write("a", "again");
    assert_eq!(scene.kept("a"), "again");
}

#[test]
fn an_unchanged_file_renews_its_entry() {
    let mut scene = Scene::new(Some(rules()));
    scene.write("a", "first");
    assert_eq!(scene.kept("a"), "first");
    scene.pass(30_000);
    let checked = scene.open("a");
    fs::remove_file(scene.folder.join("a")).unwrap();
    scene.pass(29_999);
    assert!(Rc::ptr_eq(memory(&checked).unwrap(), memory(&scene.open("a")).unwrap()));
}

#[test]
fn failures_are_kept_with_open_file_cache_errors() {
    for errors in [false, true] {
        let mut scene = Scene::new(Some(CacheRules { errors, ..rules() }));
        assert_eq!(scene.failure("a"), ErrorKind::NotFound);
        scene.write("a", "content");
        assert_eq!(scene.look("a", Want::Content).is_err(), errors);
        scene.pass(30_000);
        assert_eq!(scene.kept("a"), "content");
    }
}

#[test]
fn a_file_stays_open_from_its_min_uses_on() {
    let mut scene = Scene::new(Some(CacheRules { min_uses: 3, ..rules() }));
    scene.write("a", "content");
    scene.unix_ms -= LATER_MS;
    let found: Vec<FoundFile> = (0..5).map(|_| scene.open("a")).collect();
    let same = |a: usize, b: usize| Rc::ptr_eq(file(&found[a]).unwrap(), file(&found[b]).unwrap());
    assert!(!same(0, 1) && !same(1, 2) && same(2, 3) && same(3, 4));
    scene.pass(LATER_MS);
    assert!(memory(&scene.open("a")).is_some());
}

#[test]
fn inactive_entries_are_dropped() {
    let mut scene = Scene::new(Some(CacheRules { valid_ms: u64::MAX, ..rules() }));
    for name in ["a", "b", "c"] {
        scene.write(name, name);
        assert_eq!(scene.kept(name), name);
        fs::remove_file(scene.folder.join(name)).unwrap();
    }
    scene.pass(60_000);
    assert_eq!(scene.kept("a"), "a");
    scene.pass(1);
    assert_eq!(scene.kept("a"), "a");
    assert_eq!(scene.failure("b"), ErrorKind::NotFound);
    assert_eq!(scene.failure("c"), ErrorKind::NotFound);
}

#[test]
fn max_limits_the_entries() {
    let scene = Scene::new(Some(CacheRules { max: 2, valid_ms: u64::MAX, ..rules() }));
    for name in ["a", "b", "c"] {
        scene.write(name, name);
        assert_eq!(scene.kept(name), name);
        fs::remove_file(scene.folder.join(name)).unwrap();
    }
    assert_eq!(scene.kept("c"), "c");
    assert_eq!(scene.kept("b"), "b");
    assert_eq!(scene.failure("a"), ErrorKind::NotFound);
}

#[test]
fn contents_are_limited_in_bytes() {
    let scene = Scene::new(None);
    let held = CONTENTS_BYTES_MAX / CONTENT_SIZE_MAX as usize;
    for number in 0..=held {
        let name = number.to_string();
        let file = File::create(scene.folder.join(&name)).unwrap();
        file.set_len(CONTENT_SIZE_MAX).unwrap();
        assert_eq!(scene.kept(&name).len(), CONTENT_SIZE_MAX as usize);
    }
    assert!(memory(&scene.open("0")).is_none());
    assert!(memory(&scene.open("2")).is_some());
}

#[test]
fn paths_with_disable_symlinks_are_checked_each_time() {
    let mut scene = Scene::new(None);
    scene.links = Links::Refuse;
    scene.write("a", "content");
    scene.write("b", "content");
    assert_eq!(scene.kept("a"), "content");
    let first = scene.open("a");
    assert!(Rc::ptr_eq(memory(&first).unwrap(), memory(&scene.open("a")).unwrap()));
    fs::remove_file(scene.folder.join("a")).unwrap();
    symlink("b", scene.folder.join("a")).unwrap();
    assert!(scene.look("a", Want::Content).is_err_and(|failed| failed.is_refused_link()));
    assert!(scene.look("a", Want::Stat).is_err_and(|failed| failed.is_refused_link()));
}

#[test]
fn entries_of_other_rules_are_not_used() {
    let mut scene = Scene::new(Some(CacheRules { errors: true, ..rules() }));
    scene.write("a", "content");
    symlink("a", scene.folder.join("link")).unwrap();
    for _ in 0..2 {
        scene.links = Links::Follow;
        assert_eq!(scene.kept("link"), "content");
        scene.links = Links::Refuse;
        let failed = scene.look("link", Want::Content).map(|_| ()).unwrap_err();
        assert!(failed.is_refused_link());
        assert_eq!(failed.call, "openat()");
    }
}

#[test]
fn directories_are_found() {
    for rules in [None, Some(rules())] {
        let mut scene = Scene::new(rules);
        fs::create_dir(scene.folder.join("d")).unwrap();
        for want in [Want::Content, Want::Stat, Want::Directory, Want::Content] {
            let found = scene.look("d", want).unwrap();
            assert!(found.stat.is_directory() && matches!(found.source, FileSource::Closed));
        }
        fs::remove_dir(scene.folder.join("d")).unwrap();
        scene.write("d", "content");
        assert_eq!(scene.look("d", Want::Stat).unwrap().stat.is_directory(), rules.is_some());
        scene.pass(30_000);
        assert_eq!(scene.kept("d"), "content");
        assert!(scene.look("d", Want::Directory).unwrap().stat.is_regular());
    }
}

#[test]
fn caches_of_one_configuration_are_separate() {
    let mut scene = Scene::new(Some(rules()));
    scene.write("a", "content");
    assert_eq!(scene.kept("a"), "content");
    fs::remove_file(scene.folder.join("a")).unwrap();
    scene.rules = Some(CacheRules { number: 1, ..rules() });
    assert_eq!(scene.failure("a"), ErrorKind::NotFound);
    scene.rules = Some(rules());
    assert_eq!(scene.kept("a"), "content");
}
