//! The folder that the server reads: the plan's files, and beside them what the server keeps there
//! itself, such as sockets and the servers of each group.
//!
//! Every file is replaced by a rename, those that nothing refers to first, nginx.conf last; files
//! that nothing refers to any more are removed when the server uses the new configuration. A list
//! of the files, `.files`, tells the next process which ones are its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::PlannedFiles;

/// The names of own files, one on each line.
const LIST: &str = ".files";
const MAIN: &str = "nginx.conf";
/// Keys of certificates are among the files.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

pub(crate) struct ConfigFolder {
    root: PathBuf,
    /// The files that are there.
    files: PlannedFiles,
}

/// What a change has replaced.
pub(crate) struct Replaced {
    /// `None`: there was no such file.
    before: BTreeMap<String, Option<Vec<u8>>>,
}

impl Replaced {
    /// Adds what a later change has replaced.
    pub(crate) fn extend(&mut self, later: Self) {
        for (name, content) in later.before {
            self.before.entry(name).or_insert(content);
        }
    }
}

impl ConfigFolder {
    /// Reads what an earlier process has left.
    pub(crate) fn open(root: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", root.display());
        create_folder(root).map_err(failed)?;
        let list = match fs::read_to_string(root.join(LIST)) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let mut files = PlannedFiles::new();
        for name in list.lines().filter(|name| is_inside(name)) {
            if let Ok(content) = fs::read(root.join(name)) {
                files.insert(name.to_owned(), content);
            }
        }
        Ok(Self { root: root.to_owned(), files })
    }

    /// Whether it has a configuration.
    pub(crate) fn has_configuration(&self) -> bool {
        self.files.contains_key(MAIN)
    }

    /// The content of a file.
    pub(crate) fn file(&self, name: &str) -> Option<&Vec<u8>> {
        self.files.get(name)
    }

    /// The groups of the configuration, as the API names them.
    pub(crate) fn groups(&self) -> impl Iterator<Item = String> {
        self.files.keys().filter_map(|file| {
            let (subsystem, group) = file.strip_prefix("groups/")?.split_once('/')?;
            let group = group.strip_suffix(".conf")?;
            Some(if subsystem == "http" { group.to_owned() } else { format!("stream/{group}") })
        })
    }

    /// Whether all these files are there.
    pub(crate) fn has(&self, files: &PlannedFiles) -> bool {
        files.iter().all(|(name, content)| self.files.get(name) == Some(content))
    }

    /// Writes files that differ. After an error everything is as it was.
    pub(crate) fn write(&mut self, files: &PlannedFiles) -> Result<Replaced, String> {
        let mut replaced = Replaced { before: BTreeMap::new() };
        let written = self.try_write(files, &mut replaced);
        match written {
            Ok(()) => Ok(replaced),
            Err(why) => {
                let undone = self.undo(replaced);
                Err(undone.err().map_or(why.clone(), |other| format!("{why}; undoing it: {other}")))
            }
        }
    }

    fn try_write(&mut self, files: &PlannedFiles, replaced: &mut Replaced) -> Result<(), String> {
        if let Some(wrong) = files.keys().find(|name| !is_inside(name)) {
            return Err(format!("\"{wrong}\" is not a name within the folder"));
        }
        let names: BTreeSet<_> = self.files.keys().chain(files.keys()).cloned().collect();
        self.write_list(&names)?;
        let others = files.iter().filter(|(name, _)| *name != MAIN);
        let (new, old): (Vec<_>, Vec<_>) =
            others.partition(|(name, _)| !self.files.contains_key(*name));
        for (name, content) in new.into_iter().chain(old).chain(files.get_key_value(MAIN)) {
            if self.files.get(name) != Some(content) {
                self.replace(name, content)?;
                let before = self.files.insert(name.clone(), content.clone());
                replaced.before.insert(name.clone(), before);
            }
        }
        Ok(())
    }

    /// Makes everything as it was before a change.
    pub(crate) fn undo(&mut self, replaced: Replaced) -> Result<(), String> {
        // In the opposite order: nginx.conf refers to the others.
        for (name, before) in replaced.before.into_iter().rev() {
            match before {
                Some(content) => {
                    self.replace(&name, &content)?;
                    self.files.insert(name, content);
                }
                None => self.remove(&name)?,
            }
        }
        let names = self.files.keys().cloned().collect();
        self.write_list(&names)
    }

    /// Removes own files that are not among these.
    pub(crate) fn remove_others(&mut self, files: &PlannedFiles) -> Result<(), String> {
        let others: Vec<String> =
            self.files.keys().filter(|name| !files.contains_key(*name)).cloned().collect();
        for name in &others {
            self.remove(name)?;
            if let Some(state) = state_of(name) {
                // The server may have written none.
                let _ = fs::remove_file(self.root.join(state));
            }
        }
        if others.is_empty() { Ok(()) } else { self.write_list(&files.keys().cloned().collect()) }
    }

    /// Writes the servers that new groups begin with. `is_anew`: those of all groups, because no
    /// server runs that knows better.
    pub(crate) fn write_states(
        &self,
        files: &PlannedFiles,
        groups: &BTreeMap<String, Vec<String>>,
        is_anew: bool,
    ) -> Result<(), String> {
        for (group, servers) in groups {
            let (file, state) = group_files(group);
            let is_known = self.files.contains_key(&file);
            if !files.contains_key(&file) || is_known && !is_anew || !is_inside(&state) {
                continue;
            }
            let text: String = servers.iter().map(|server| format!("server {server};\n")).collect();
            self.replace(&state, text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes a copy of files whose names in the text are those of the copy.
    pub(crate) fn write_copy(&self, folder: &str, files: &PlannedFiles) -> Result<PathBuf, String> {
        let copy = self.root.join(".check");
        let told = |error: io::Error| format!("{}: {error}", copy.display());
        remove_folder(&copy).map_err(told)?;
        create_folder(&copy).map_err(told)?;
        let (from, to) = (format!("{folder}/"), format!("{folder}/.check/"));
        for (name, content) in files.iter().filter(|(name, _)| is_inside(name)) {
            let written = match std::str::from_utf8(content) {
                Ok(text) => write_file(&copy.join(name), text.replace(&from, &to).as_bytes()),
                Err(_) => write_file(&copy.join(name), content),
            };
            written.map_err(told)?;
        }
        Ok(copy)
    }

    fn write_list(&self, names: &BTreeSet<String>) -> Result<(), String> {
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        self.replace(LIST, text.as_bytes())
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let path = self.root.join(name);
        let new = path.with_file_name(format!(".{}.new", file_name(&path)));
        let written = write_file(&new, content).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => {
                self.files.remove(name);
                Ok(())
            }
        }
    }
}

/// The files of a group: its block, and the servers that it has.
fn group_files(group: &str) -> (String, String) {
    let group = match group.strip_prefix("stream/") {
        Some(name) => format!("groups/stream/{name}"),
        None => format!("groups/http/{group}"),
    };
    (format!("{group}.conf"), format!("{group}.servers"))
}

fn state_of(file: &str) -> Option<String> {
    let group = file.strip_prefix("groups/").and_then(|rest| rest.strip_suffix(".conf"))?;
    Some(format!("groups/{group}.servers"))
}

fn is_inside(name: &str) -> bool {
    let is_good = |part: Component<'_>| matches!(part, Component::Normal(_));
    !name.is_empty() && !name.contains(['\n', '\0']) && Path::new(name).components().all(is_good)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
    file.write_all(content)
}

fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE)),
    }
}

pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    fn files(all: &[(&str, &str)]) -> PlannedFiles {
        all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    fn read(folder: &Folder, name: &str) -> Option<String> {
        fs::read_to_string(folder.join(name)).ok()
    }

    #[test]
    fn a_change_is_undone_as_a_whole() {
        let folder = Folder::new();
        let mut config = ConfigFolder::open(&folder).unwrap();
        let first = files(&[("nginx.conf", "1"), ("routes/a.conf", "a")]);
        drop(config.write(&first).unwrap());
        let second = files(&[("nginx.conf", "2"), ("routes/b.conf", "b")]);
        let replaced = config.write(&second).unwrap();
        assert!(config.has(&second));
        assert_eq!(read(&folder, "routes/a.conf").unwrap(), "a", "it is in use until the reload");
        config.undo(replaced).unwrap();
        assert!(config.has(&first));
        assert_eq!(read(&folder, "nginx.conf").unwrap(), "1");
        assert_eq!(read(&folder, "routes/b.conf"), None);
    }

    #[test]
    fn the_next_process_knows_the_files_of_the_last_one() {
        let folder = Folder::new();
        let mut config = ConfigFolder::open(&folder).unwrap();
        drop(config.write(&files(&[("nginx.conf", "1"), ("groups/http/a.conf", "a")])).unwrap());
        folder.write("groups/http/a.servers", "");
        folder.write("weir.pid", "7");
        let mut config = ConfigFolder::open(&folder).unwrap();
        assert!(config.has_configuration());
        let only = files(&[("nginx.conf", "1")]);
        config.remove_others(&only).unwrap();
        assert_eq!(read(&folder, "groups/http/a.conf"), None);
        assert_eq!(read(&folder, "groups/http/a.servers"), None);
        assert_eq!(read(&folder, "weir.pid").unwrap(), "7", "it is not its own");
        assert_eq!(read(&folder, LIST).unwrap(), "nginx.conf\n");
    }

    #[test]
    fn names_outside_are_refused_and_nothing_is_written() {
        let folder = Folder::new();
        let mut config = ConfigFolder::open(&folder).unwrap();
        for wrong in ["../a", "/etc/a", "a/../../b", "", "a\nb"] {
            let wrong = files(&[("b.conf", "b"), (wrong, "x")]);
            assert!(config.write(&wrong).is_err());
            assert_eq!(read(&folder, "b.conf"), None);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_ones() {
        let folder = Folder::new();
        let mut config = ConfigFolder::open(&folder).unwrap();
        drop(config.write(&files(&[("a.conf", "1"), ("nginx.conf", "1")])).unwrap());
        fs::create_dir_all(folder.join("z.conf/full")).unwrap();
        let error = config.write(&files(&[("a.conf", "2"), ("z.conf", "z"), ("nginx.conf", "2")]));
        assert!(error.is_err());
        assert_eq!(read(&folder, "a.conf").unwrap(), "1");
        assert_eq!(read(&folder, "nginx.conf").unwrap(), "1");
    }

    #[test]
    fn new_groups_begin_with_their_servers() {
        let folder = Folder::new();
        let mut config = ConfigFolder::open(&folder).unwrap();
        let groups = BTreeMap::from([
            ("a".to_owned(), vec!["10.0.0.1:80 weight=2".to_owned()]),
            ("stream/b".to_owned(), vec![]),
            ("undeclared".to_owned(), vec!["10.0.0.1:80".to_owned()]),
        ]);
        let all = files(&[("groups/http/a.conf", ""), ("groups/stream/b.conf", "")]);
        config.write_states(&all, &groups, false).unwrap();
        let servers = "server 10.0.0.1:80 weight=2;\n";
        assert_eq!(read(&folder, "groups/http/a.servers").unwrap(), servers);
        assert_eq!(read(&folder, "groups/stream/b.servers").unwrap(), "");
        assert_eq!(read(&folder, "groups/http/undeclared.servers"), None);
        drop(config.write(&all).unwrap());
        folder.write("groups/http/a.servers", "of the server");
        config.write_states(&all, &groups, false).unwrap();
        assert_eq!(read(&folder, "groups/http/a.servers").unwrap(), "of the server");
        config.write_states(&all, &groups, true).unwrap();
        assert_eq!(read(&folder, "groups/http/a.servers").unwrap(), servers);
    }

    #[test]
    fn a_copy_refers_to_itself() {
        let folder = Folder::new();
        let config = ConfigFolder::open(&folder).unwrap();
        let all = files(&[("nginx.conf", "include /etc/w/a.conf; # /etc/work")]);
        let copy = config.write_copy("/etc/w", &all).unwrap();
        let text = fs::read_to_string(copy.join("nginx.conf")).unwrap();
        assert_eq!(text, "include /etc/w/.check/a.conf; # /etc/work");
    }
}
