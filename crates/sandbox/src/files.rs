//! The files of a sandbox: those that the server writes move into its folder; those that it reads
//! stay.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::places::{SandboxPlaces, TEMPORARY_FOLDERS, within};
use crate::tree::{EditableDirective, EditableTree, LinePlace};

/// The directives, other than logs, whose first word is a file or folder that the server writes.
const WRITTEN: [&str; 6] = [
    "fastcgi_cache_path",
    "google_perftools_profiles",
    "lock_file",
    "proxy_cache_path",
    "scgi_cache_path",
    "uwsgi_cache_path",
];

/// Lines of the main file that a copy must not contain; without `working_directory` it writes no
/// core files elsewhere.
const DROPPED: [&str; 4] = ["control_socket", "daemon", "pid", "working_directory"];

/// The directives with which requests change files of the site.
const STORES: [&str; 5] =
    ["dav_methods", "fastcgi_store", "proxy_store", "scgi_store", "uwsgi_store"];

/// Ends of the names of directives whose first word is relative to the configuration's folder;
/// `ssl_certificate` also covers `proxy_ssl_certificate`.
const OF_THE_CONFIGURATION: [&str; 15] = [
    "auth_basic_user_file",
    "geoip_city",
    "geoip_country",
    "geoip_org",
    "js_path",
    "perl_modules",
    "perl_require",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_crl",
    "ssl_dhparam",
    "ssl_password_file",
    "ssl_stapling_file",
    "ssl_trusted_certificate",
];

/// The same, but without prefixes such as `proxy_`.
const OF_THE_CONFIGURATION_ALONE: [&str; 5] = [
    "ssl_ech_file",
    "ssl_session_ticket_key",
    "js_fetch_trusted_certificate",
    "xml_entities",
    "xslt_stylesheet",
];

/// Beginnings of words that name a certificate or key, but not a file.
const NO_FILES: [&[u8]; 4] = [b"$", b"data:", b"engine:", b"store:"];

/// A file that the server reads in addition to the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    pub path: PathBuf,
    /// The directive that names the file.
    pub directive: String,
    /// The line of the directive.
    pub place: LinePlace,
}

/// The certificates, keys, password files and the like that a configuration names without
/// variables.
pub fn named_files(tree: &EditableTree) -> Vec<NamedFile> {
    let lines = tree.lines().into_iter().map(|line| line.directive);
    let named = lines.filter(|line| is_of_the_configuration(line.name())).filter_map(|line| {
        let mut word = line.words.get(1)?.clone();
        absolute(Some(&mut word), tree.folder());
        let path = (word.starts_with(b"/") && !word.contains(&b'$'))
            .then(|| PathBuf::from(OsString::from_vec(word)))?;
        Some(NamedFile { path, directive: line.name().to_owned(), place: line.place.clone() })
    });
    named.collect()
}

/// Moves files, and remembers their new paths, so that a file named twice remains one file.
pub(super) struct SandboxFiles<'a> {
    places: SandboxPlaces<'a>,
    conf_folder: &'a Path,
    moved: BTreeMap<Vec<u8>, Vec<u8>>,
    notes: Vec<String>,
}

impl<'a> SandboxFiles<'a> {
    pub(super) fn new(places: SandboxPlaces<'a>, conf_folder: &'a Path) -> Self {
        Self { places, conf_folder, moved: BTreeMap::new(), notes: Vec::new() }
    }

    /// Changes all lines that name files.
    pub(super) fn move_all(&mut self, tree: &mut EditableTree) {
        tree.root.retain(|line| !DROPPED.contains(&line.name()));
        tree.change(&mut |_, line| self.change(line));
    }

    /// Adds the lines without which the server would use files of the real server.
    pub(super) fn add_missing(&mut self, tree: &mut EditableTree) {
        let place = tree.beginning();
        let main = [("daemon", "off".to_owned()), ("pid", self.own("pid"))];
        let mut lines: Vec<_> = main.iter().map(|(name, word)| (*name, word.as_str())).collect();
        let error_log = self.own("error.log");
        if !tree.root.iter().any(|line| line.is("error_log")) {
            lines.push(("error_log", &error_log));
        }
        let lines =
            lines.iter().map(|(name, word)| EditableDirective::new(place.clone(), &[name, word]));
        tree.root.splice(0..0, lines.collect::<Vec<_>>());
        for http in tree.root.iter_mut().filter(|line| line.is("http")) {
            self.add_to_http(http);
        }
    }

    fn add_to_http(&self, http: &mut EditableDirective) {
        let mut lines: Vec<(&str, String)> = Vec::new();
        for name in TEMPORARY_FOLDERS {
            if self.places.temporary_folders.contains(&name) && http.own(name).is_none() {
                lines.push((name, self.own(name)));
            }
        }
        if self.places.logs_by_default && http.own("access_log").is_none() {
            lines.push(("access_log", self.own("access.log")));
        }
        let place = http.place.clone();
        let line =
            |(name, word): (&str, String)| EditableDirective::new(place.clone(), &[name, &word]);
        let block = http.block.get_or_insert_default();
        block.splice(0..0, lines.into_iter().map(line));
    }

    fn own(&self, name: &str) -> String {
        self.places.folder.join(name).to_string_lossy().into_owned()
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    fn change(&mut self, line: &mut EditableDirective) {
        let name = line.name().to_owned();
        let name = name.as_str();
        if ["access_log", "error_log"].contains(&name) {
            self.log(line);
        } else if WRITTEN.contains(&name) || TEMPORARY_FOLDERS.contains(&name) {
            self.first_word(line);
        } else if STORES.contains(&name) && line.argument() != "off" {
            self.notes.push(format!("{}: {name} is off in the copy", line.place));
            line.words.truncate(1);
            line.words.push(b"off".to_vec());
        } else if is_of_the_configuration(name) {
            absolute(line.words.get_mut(1), self.conf_folder);
        } else if name == "js_import" {
            absolute(line.words.last_mut(), self.conf_folder);
        } else if let ("load_module", Some(prefix)) = (name, self.places.prefix) {
            absolute(line.words.get_mut(1), prefix);
        }
    }

    /// Moves a log into the folder, unless it is off or discarded.
    fn log(&mut self, line: &mut EditableDirective) {
        let to = line.words.get(1).map(Vec::as_slice).unwrap_or_default();
        // For `error_log`, nginx treats `off` as a file name.
        let is_off = to == b"off" && line.is("access_log");
        if is_off || to == b"/dev/null" || to.starts_with(b"memory:") {
            return;
        }
        if to.starts_with(b"syslog:") {
            let (place, name) = (&line.place, line.name());
            self.notes.push(format!("{place}: {name} writes to a file in the copy, not to syslog"));
        }
        self.first_word(line);
    }

    fn first_word(&mut self, line: &mut EditableDirective) {
        if let Some(word) = line.words.get_mut(1) {
            *word = self.new_path(word);
        }
    }

    /// The new path of a file, directly in the folder, because the server creates no parent
    /// folders. The same file gets the same path. Variables in the name are kept.
    fn new_path(&mut self, old: &[u8]) -> Vec<u8> {
        if let Some(known) = self.moved.get(old) {
            return known.clone();
        }
        let flat = |byte: &u8| if b"/:,= ".contains(byte) { b'-' } else { *byte };
        let mut name: Vec<u8> = old.iter().map(flat).collect();
        if name.len() > NAME_BYTES_MAX && !name.contains(&b'$') {
            name.drain(..name.len() - NAME_BYTES_MAX);
        }
        let number = self.moved.len();
        let new =
            within(self.places.folder, &[number.to_string().as_bytes(), b"-", &name].concat());
        self.moved.insert(old.to_vec(), new.clone());
        new
    }
}

/// Maximum number of bytes of the old path in a new name; the kernel's limit for a name is 255
/// bytes.
const NAME_BYTES_MAX: usize = 150;

fn is_of_the_configuration(name: &str) -> bool {
    let ends = |end: &&str| {
        name.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    OF_THE_CONFIGURATION.iter().any(ends) || OF_THE_CONFIGURATION_ALONE.contains(&name)
}

/// Makes a file name absolute, relative to `folder`.
fn absolute(word: Option<&mut Vec<u8>>, folder: &Path) {
    let Some(word) = word else { return };
    let names_file = !word.is_empty() && !NO_FILES.iter().any(|start| word.starts_with(start));
    if names_file && word != b"off" && !word.starts_with(b"/") {
        *word = within(folder, word);
    }
}
