//! Files with lists of servers: plain lines, JSON, and Prometheus' `file_sd`.
//!
//! A folder is looked at often and its files less so: whoever replaces a file by renaming another
//! changes the folder, and the file there is another one. So a changed folder is listed, and only
//! files that were not known are looked at; once a second all are. A file that is written in place
//! may be read half-written, so it is read only when it has not changed for a moment.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{Report, Source};
use crate::server_entry::ServerEntry;
use crate::wanted::{GROUPS_MAX, GroupKey, GroupedServers, WantedGroups};

/// How often folders are looked at.
const FOLDERS_EACH: Duration = Duration::from_millis(50);
/// Every how many looks at the folders all files are looked at.
const FILES_EACH: u32 = 20;
/// How long a file that is written in place must stay as it is.
const SETTLED: Duration = Duration::from_millis(200);
/// The resolution of a folder's time: within it, another change may leave the same time.
const FOLDER_TIME_RESOLUTION: Duration = Duration::from_millis(20);
/// The largest file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most files.
const FILES_MAX: usize = 100_000;

pub struct FilesSource {
    paths: Vec<PathBuf>,
    files: BTreeMap<OsString, ListFile>,
    folders: Vec<SystemTime>,
    /// Whether a folder may change once more within the resolution of its time.
    is_fresh: bool,
    /// Whether a file was written in place and may not be complete.
    is_unsettled: bool,
    looks: u32,
}

/// A file as a folder lists it.
struct ListedFile {
    is_stream: bool,
    /// `None`: the entry of the folder does not tell it, as for a symbolic link.
    inode: Option<u64>,
}

/// All files by their paths, which are ordered and compared as bytes.
type ListedFiles = BTreeMap<OsString, ListedFile>;

/// A file as it was read.
struct ListFile {
    mark: FileMark,
    lists: WantedGroups,
}

/// What changes with a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FileMark {
    modified: (i64, i64),
    length: u64,
    inode: u64,
}

impl FileMark {
    fn of(data: &Metadata) -> Self {
        let modified = (data.mtime(), data.mtime_nsec());
        Self { modified, length: data.len(), inode: data.ino() }
    }
}

impl Source for FilesSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        self.folders.clear();
        report(self.read_all(SystemTime::now())?)?;
        loop {
            std::thread::sleep(FOLDERS_EACH);
            if let Some(wanted) = self.look(SystemTime::now())? {
                report(wanted)?;
            }
        }
    }
}

impl FilesSource {
    /// Files, or folders of them.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let (files, folders) = (BTreeMap::new(), Vec::new());
        Self { paths, files, folders, is_fresh: true, is_unsettled: false, looks: 0 }
    }

    /// All lists, if they may have changed since the last look.
    fn look(&mut self, now: SystemTime) -> Result<Option<WantedGroups>, String> {
        self.looks += 1;
        let folders = self.folder_times();
        let has_changed = folders != self.folders || self.is_fresh;
        let is_for_all = self.looks.is_multiple_of(FILES_EACH) || self.is_unsettled;
        if !has_changed && !is_for_all {
            return Ok(None);
        }
        let is_fresh = |time: &SystemTime| !is_older(*time, now, FOLDER_TIME_RESOLUTION);
        self.is_fresh = folders.iter().any(is_fresh);
        self.folders = folders;
        let has_changed = self.read_changed(now, is_for_all)?;
        has_changed.then(|| self.wanted()).transpose()
    }

    fn read_all(&mut self, now: SystemTime) -> Result<WantedGroups, String> {
        self.read_changed(now, true)?;
        self.wanted()
    }

    /// When folders have changed.
    fn folder_times(&self) -> Vec<SystemTime> {
        let folders = self.paths.iter().flat_map(|path| [path.clone(), path.join("stream")]);
        folders.filter_map(|folder| fs::metadata(folder).ok()?.modified().ok()).collect()
    }

    /// Reads the files that have changed: `of_all`, or only of those that are new in their folder.
    /// Returns whether one has.
    fn read_changed(&mut self, now: SystemTime, of_all: bool) -> Result<bool, String> {
        self.is_unsettled = false;
        let listed = self.listed()?;
        let before = self.files.len();
        self.files.retain(|path, _| listed.contains_key(path));
        let mut has_changed = self.files.len() < before;
        for (name, ListedFile { is_stream, inode }) in listed {
            let known = self.files.get(&name);
            if !of_all && known.is_some_and(|known| inode == Some(known.mark.inode)) {
                continue;
            }
            let path = Path::new(&name);
            let told = |why: String| format!("{}: {why}", path.display());
            let Some(data) = metadata(path).map_err(|error| told(error.to_string()))? else {
                has_changed |= self.files.remove(&name).is_some();
                continue;
            };
            let mark = FileMark::of(&data);
            if known.is_some_and(|known| known.mark == mark) {
                continue;
            }
            let is_rewritten = known.is_some_and(|known| known.mark.inode == mark.inode);
            if is_rewritten && data.modified().is_ok_and(|time| !is_older(time, now, SETTLED)) {
                self.is_unsettled = true;
                continue;
            }
            let lists = read(path, is_stream, &data).map_err(told)?;
            self.files.insert(name, ListFile { mark, lists });
            has_changed = true;
        }
        Ok(has_changed)
    }

    fn listed(&self) -> Result<ListedFiles, String> {
        let mut listed = ListedFiles::new();
        for path in &self.paths {
            let told = |error: io::Error| format!("{}: {error}", path.display());
            if !fs::metadata(path).map_err(told)?.is_dir() {
                listed.insert(path.into(), ListedFile { is_stream: false, inode: None });
                continue;
            }
            list_folder(path, false, &mut listed).map_err(told)?;
            let streams = path.join("stream");
            if streams.is_dir() {
                list_folder(&streams, true, &mut listed).map_err(told)?;
            }
        }
        Ok(listed)
    }

    fn wanted(&self) -> Result<WantedGroups, String> {
        let mut wanted = WantedGroups::new();
        for (path, file) in &self.files {
            for (group, list) in &file.lists {
                if wanted.insert(group.clone(), list.clone()).is_some() {
                    let has_it = |(_, file): &(_, &ListFile)| file.lists.contains_key(group);
                    let first = self.files.iter().find(has_it).map_or(path, |(first, _)| first);
                    let (first, path) = (Path::new(first).display(), Path::new(path).display());
                    return Err(format!("the group {group} is in {first} and in {path}"));
                }
            }
        }
        match wanted.len() {
            0..=GROUPS_MAX => Ok(wanted),
            _ => Err(format!("more than {GROUPS_MAX} groups")),
        }
    }
}

fn is_older(time: SystemTime, now: SystemTime, than: Duration) -> bool {
    // A time in the future says nothing.
    now.duration_since(time).map_or(true, |age| age > than)
}

/// `None`: there is no such file any more.
fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        data => data.map(Some),
    }
}

/// Hidden files, folders, and those that editors leave are none.
fn list_folder(folder: &Path, is_stream: bool, listed: &mut ListedFiles) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_folder = kind.is_dir() || kind.is_symlink() && path.is_dir();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_passing =
            [".tmp", ".new", ".bak", ".swp", "~"].iter().any(|end| name.ends_with(end));
        if !name.starts_with('.') && !is_passing && !is_folder {
            let inode = (!kind.is_symlink()).then(|| entry.ino());
            listed.insert(path.into(), ListedFile { is_stream, inode });
        }
        if listed.len() > FILES_MAX {
            return Err(io::Error::other(format!("more than {FILES_MAX} files")));
        }
    }
    Ok(())
}

fn read(path: &Path, is_stream: bool, data: &Metadata) -> Result<WantedGroups, String> {
    if data.len() > FILE_BYTES_MAX {
        return Err("the file is too large".to_owned());
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or("the name is not UTF-8")?;
    let group = || GroupKey::parse(&format!("{}{stem}", if is_stream { "stream/" } else { "" }));
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {
            let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            of_json(&value, group)
        }
        Some("yml" | "yaml") => Err("YAML is not read; write JSON".to_owned()),
        _ => of_group(group()?, of_lines(&text)?),
    }
}

fn of_group(group: GroupKey, servers: Vec<ServerEntry>) -> Result<WantedGroups, String> {
    GroupedServers::from(BTreeMap::from([(group, servers)])).into_wanted()
}

/// One server on each line: the words of a `server` line, or only its arguments.
fn of_lines(text: &str) -> Result<Vec<ServerEntry>, String> {
    let mut servers = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim().trim_end_matches(';');
        let words: Vec<&str> = line.split_whitespace().collect();
        let words = words.strip_prefix(&["server"]).unwrap_or(&words);
        if !words.is_empty() {
            let entry = ServerEntry::from_words(words);
            servers.push(entry.map_err(|why| format!("line {number}: {why}"))?);
        }
    }
    Ok(servers)
}

fn of_json(
    value: &Value,
    group: impl Fn() -> Result<GroupKey, String>,
) -> Result<WantedGroups, String> {
    let list = |list: &Value| {
        let list = list.as_array().ok_or("a list of servers is expected")?;
        list.iter().map(ServerEntry::from_json).collect::<Result<Vec<_>, _>>()
    };
    match value {
        Value::Object(groups) => {
            let groups = groups.iter().map(|(name, servers)| {
                let servers = list(servers).map_err(|why| format!("{name}: {why}"))?;
                Ok((GroupKey::parse(name)?, servers))
            });
            GroupedServers::from(groups.collect::<Result<BTreeMap<_, _>, String>>()?).into_wanted()
        }
        Value::Array(blocks) if blocks.iter().any(|one| one.get("targets").is_some()) => {
            GroupedServers::from(of_targets(blocks, group)?).into_wanted()
        }
        _ => of_group(group()?, list(value)?),
    }
}

/// Prometheus' form: targets, and labels that hold for all of them. `weir_group` names the group,
/// and `weir_weight` and the like are parameters; others mean nothing here.
fn of_targets(
    blocks: &[Value],
    group: impl Fn() -> Result<GroupKey, String>,
) -> Result<BTreeMap<GroupKey, Vec<ServerEntry>>, String> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for block in blocks {
        let labels = block.get("labels").and_then(Value::as_object);
        let labels = || {
            labels.into_iter().flatten().filter_map(|(name, value)| {
                Some((name.strip_prefix("weir_")?, value.as_str().unwrap_or_default()))
            })
        };
        let named = labels().find(|(name, _)| *name == "group");
        let group = named.map_or_else(&group, |(_, name)| GroupKey::parse(name))?;
        let targets = block.get("targets").and_then(Value::as_array);
        let servers = groups.entry(group).or_default();
        for target in targets.ok_or("\"targets\" must be a list")? {
            let mut entry = ServerEntry::from_json(target)?;
            for (name, value) in labels().filter(|(name, _)| *name != "group") {
                entry.set(name, value)?;
            }
            servers.push(entry);
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    fn source(folder: &Folder) -> FilesSource {
        FilesSource::new(vec![folder.to_path_buf()])
    }

    fn now() -> SystemTime {
        SystemTime::now()
    }

    fn shown(wanted: &WantedGroups) -> String {
        let groups = wanted.iter().map(|(group, list)| format!("{group}={}", list.json));
        groups.collect::<Vec<_>>().join(" ").replace("\"server\":", "").replace('"', "")
    }

    fn all(folder: &Folder) -> Result<String, String> {
        source(folder).read_all(now()).map(|wanted| shown(&wanted))
    }

    /// A file that is replaced at once.
    fn replace(folder: &Folder, name: &str, text: &str) {
        folder.write("next.tmp", text);
        fs::rename(folder.join("next.tmp"), folder.join(name)).unwrap();
    }

    #[test]
    fn all_forms_of_files_are_read() {
        let folder = Folder::new();
        folder.write("app.txt", "# two\n10.0.0.1:80 weight=2\n\nserver 10.0.0.2 backup;\n");
        folder.write("api.json", r#"["10.0.0.3", {"server": "10.0.0.4", "down": true}]"#);
        folder.write("many.json", r#"{"one": ["10.0.0.5"], "stream/db": [], "two": []}"#);
        folder.write(
            "sd.json",
            r#"[{"targets": ["10.0.0.6:80"], "labels": {"weir_weight": "3", "job": "x"}},
                {"targets": ["10.0.0.7:80"], "labels": {"weir_group": "named"}}]"#,
        );
        fs::create_dir(folder.join("stream")).unwrap();
        folder.write("stream/dns", "10.0.0.8:53");
        for ignored in [".hidden", "app.txt~", "app.tmp"] {
            folder.write(ignored, "nonsense nonsense");
        }
        let expected = "api=[{10.0.0.3},{down:true,10.0.0.4}] \
            app=[{10.0.0.1:80,weight:2},{backup:true,10.0.0.2}] named=[{10.0.0.7:80}] \
            one=[{10.0.0.5}] sd=[{10.0.0.6:80,weight:3}] two=[] stream/db=[] \
            stream/dns=[{10.0.0.8:53}]";
        assert_eq!(all(&folder).unwrap(), expected);
    }

    #[test]
    fn one_wrong_file_refuses_everything() {
        for (name, text, expected) in [
            ("b.txt", "10.0.0.1\n10.0.0.2 wieght=1\n", "b.txt: line 2: unknown parameter"),
            ("b.json", "[", "b.json: EOF"),
            ("b.json", "7", "b.json: a list of servers is expected"),
            ("b.json", r#"{"x": [7]}"#, "b.json: x: a server is an object or a text"),
            ("b.json", r#"[{"targets": 7}]"#, "b.json: \"targets\" must be a list"),
            ("b.yml", "", "b.yml: YAML"),
            ("b.json", r#"{"a": []}"#, "the group a is in"),
            ("b.txt", "10.0.0.1\n10.0.0.1 down\n", "b: the server 10.0.0.1 is listed with"),
        ] {
            let folder = Folder::new();
            folder.write("a.txt", "10.0.0.1");
            folder.write(name, text);
            let refused = all(&folder).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        let folder = Folder::new();
        assert!(FilesSource::new(vec![folder.join("none")]).read_all(now()).is_err());
    }

    #[test]
    fn a_file_that_is_replaced_or_removed_is_seen_at_once() {
        let folder = Folder::new();
        replace(&folder, "app.txt", "10.0.0.1");
        replace(&folder, "api.txt", "10.0.0.9");
        let mut source = source(&folder);
        source.read_all(now()).unwrap();
        assert_eq!(source.look(now()).unwrap(), None);
        replace(&folder, "app.txt", "10.0.0.2");
        let wanted = source.look(now()).unwrap().expect("a change");
        assert_eq!(shown(&wanted), "api=[{10.0.0.9}] app=[{10.0.0.2}]");
        fs::remove_file(folder.join("api.txt")).unwrap();
        assert_eq!(shown(&source.look(now()).unwrap().expect("a change")), "app=[{10.0.0.2}]");
    }

    #[test]
    fn a_changed_folder_costs_no_look_at_files_that_are_the_same() {
        let folder = Folder::new();
        replace(&folder, "app.txt", "10.0.0.1");
        replace(&folder, "api.txt", "10.0.0.9");
        std::os::unix::fs::symlink("app.txt", folder.join("link.txt")).unwrap();
        let mut source = source(&folder);
        source.read_all(now()).unwrap();
        // Written in place, which the folder does not show; but links are always read.
        fs::write(folder.join("app.txt"), "10.0.0.2").unwrap();
        replace(&folder, "api.txt", "10.0.0.8");
        let later = now() + 2 * SETTLED;
        assert!(source.read_changed(later, false).unwrap());
        let wanted = shown(&source.wanted().unwrap());
        assert_eq!(wanted, "api=[{10.0.0.8}] app=[{10.0.0.1}] link=[{10.0.0.2}]");
        assert!(source.read_changed(later, true).unwrap());
        assert!(shown(&source.wanted().unwrap()).contains("app=[{10.0.0.2}]"));
    }

    #[test]
    fn a_file_written_in_place_is_read_when_it_has_settled() {
        let folder = Folder::new();
        let file = folder.write("app.txt", "10.0.0.1");
        let mut source = source(&folder);
        source.read_all(now()).unwrap();
        fs::write(&file, "10.0.0.1\n10.0.0.2").unwrap();
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        for _ in 0..FILES_EACH {
            assert_eq!(source.look(written).unwrap(), None, "it was written just now");
        }
        let wanted = source.look(written + 2 * SETTLED).unwrap().expect("a change");
        assert_eq!(shown(&wanted), "app=[{10.0.0.1},{10.0.0.2}]");
    }

    #[test]
    fn an_error_is_told_until_the_file_is_good() {
        let folder = Folder::new();
        replace(&folder, "app.txt", "10.0.0.1");
        let mut source = source(&folder);
        source.read_all(now()).unwrap();
        replace(&folder, "app.txt", "10.0.0.1 x");
        assert!(source.look(now()).is_err());
        assert!(source.read_all(now()).is_err(), "as if it were watched again");
        replace(&folder, "app.txt", "10.0.0.5");
        // The new file may have got the number of the first one, as if that were rewritten.
        let later = now() + 2 * SETTLED;
        assert_eq!(shown(&source.read_all(later).unwrap()), "app=[{10.0.0.5}]");
    }
}
