//! Gives configurations to the server: checks them, writes them, reloads, and takes back what the
//! server refuses.
//!
//! ```text
//! newest plan --check--> refused: nothing is written, the old one stays
//!     good | written --reload--> refused: the old files are written back
//!                                no answer: asked again until there is one
//! ```
//!
//! What became of a plan is reported to the controller: what the plan says of objects is not true
//! before, and the next plan leaves out those that are at fault.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use discover::{Backoff, seed};

use crate::blame;
use crate::folder::{ConfigFolder, Replaced, remove_folder};
use crate::latest::LatestValue;
use crate::metrics::IngressMetrics;
use crate::plan::{PlannedListen, leave_out, unbound};
use crate::server::{ConfigVerdict, ServerControl};
use crate::statuses::StatusChange;
use crate::{PlannedFiles, ResourceKey, ResourceKind, ResourceRef, tell};

/// The first and the longest wait after the server did not answer, or the disk is full.
const BACKOFF_MS: (u64, u64) = (200, 5000);
/// When a refused configuration is tried again: names may resolve then, ports may be free.
const REFUSED_AGAIN: Duration = Duration::from_secs(30);
/// Of so many objects that are refused at once, each is told its own error.
const EXPLAINED_MAX: usize = 8;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The configuration to install.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Install {
    pub(crate) files: PlannedFiles,
    /// The servers that new groups begin with.
    pub(crate) groups: BTreeMap<String, Vec<String>>,
    /// Where the listeners of Gateways listen.
    pub(crate) listens: BTreeSet<(PlannedListen, ResourceKey)>,
    /// What becomes true of objects.
    pub(crate) statuses: Vec<StatusChange>,
}

/// What became of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InstallReport {
    pub(crate) install: Arc<Install>,
    pub(crate) outcome: InstallOutcome,
}

/// Why each object is refused.
pub(crate) type RefusedObjects = BTreeMap<ResourceRef, String>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InstallOutcome {
    /// The server uses it.
    Used,
    /// The server refuses it, because of these objects if there are any, and why.
    Refused(String, RefusedObjects),
    /// The server does not have it yet; that is tried again.
    Failed(String),
}

pub(crate) struct Installer {
    pub(crate) installs: LatestValue<Arc<Install>>,
    /// Who is told what becomes of them.
    pub(crate) reports: Box<dyn Fn(InstallReport) + Send>,
    pub(crate) metrics: Arc<IngressMetrics>,
    /// The name of the folder as the files have it.
    name: String,
    folder: ConfigFolder,
    server: ServerControl,
    wanted: Option<Arc<Install>>,
    /// The files that were refused last.
    refused: Option<PlannedFiles>,
    /// What the files in the folder have replaced, while the server has not read them.
    unread: Option<Replaced>,
    is_reload_due: bool,
    backoff: Backoff,
    due: Instant,
}

impl Installer {
    pub(crate) fn new(
        name: &str,
        server: ServerControl,
        metrics: Arc<IngressMetrics>,
    ) -> Result<Self, String> {
        let (first, most) = BACKOFF_MS;
        Ok(Self {
            installs: LatestValue::default(),
            reports: Box::new(drop),
            metrics,
            name: name.to_owned(),
            folder: ConfigFolder::open(&PathBuf::from(name))?,
            server,
            wanted: None,
            refused: None,
            unread: None,
            // An earlier process may have been killed before it reloaded.
            is_reload_due: true,
            backoff: Backoff::new(first, most, seed()),
            due: Instant::now(),
        })
    }

    pub(crate) fn has_configuration(&self) -> bool {
        self.folder.has_configuration()
    }

    /// The groups of the configuration that is there.
    pub(crate) fn groups(&self) -> impl Iterator<Item = String> {
        self.folder.groups()
    }

    /// Runs until the process ends.
    pub(crate) fn run(mut self) {
        loop {
            let wait = self.due.saturating_duration_since(Instant::now()).min(WAIT_MAX);
            self.step(wait);
        }
    }

    fn step(&mut self, wait: Duration) {
        if let Some(newer) = self.installs.take(wait) {
            // Only a change of files is a reason not to wait.
            let is_same = self.wanted.as_ref().is_some_and(|known| known.files == newer.files);
            if !is_same || !self.is_behind() {
                self.due = Instant::now();
            }
            self.wanted = Some(newer);
        }
        if self.wanted.is_some() && Instant::now() >= self.due {
            self.due = Instant::now() + WAIT_MAX;
            self.install();
        }
        self.metrics.is_behind.store(self.is_behind(), Ordering::Relaxed);
        self.metrics.is_refused.store(self.refused.is_some(), Ordering::Relaxed);
    }

    fn is_behind(&self) -> bool {
        self.is_reload_due || self.refused.is_some()
    }

    fn report(&self, install: &Arc<Install>, outcome: InstallOutcome) {
        (self.reports)(InstallReport { install: install.clone(), outcome });
    }

    fn install(&mut self) {
        let Some(wanted) = self.wanted.clone() else { return };
        if self.folder.has(&wanted.files) {
            self.refused = None;
        } else if let Err(why) = self.write(&wanted, false) {
            return self.failed(&wanted, why);
        }
        if self.is_reload_due && self.refused.is_none() {
            self.reload(&wanted);
        }
        if !self.is_behind() {
            self.report(&wanted, InstallOutcome::Used);
        }
    }

    /// Writes the files if they are good.
    fn write(&mut self, wanted: &Arc<Install>, is_anew: bool) -> Result<(), String> {
        match self.check(&wanted.files)? {
            ConfigVerdict::Good => {}
            ConfigVerdict::Unknown(why) => {
                tell(&format!("the configuration was not checked: {why}"))
            }
            ConfigVerdict::Refused(why) => {
                let objects = self.blame(wanted, &why);
                self.refuse(wanted, &why, objects);
                return Ok(());
            }
        }
        self.refused = None;
        self.folder.write_states(&wanted.files, &wanted.groups, is_anew)?;
        let replaced = self.folder.write(&wanted.files)?;
        // What the server has read last is what is to be written back.
        match &mut self.unread {
            Some(unread) => unread.extend(replaced),
            None => self.unread = Some(replaced),
        }
        self.is_reload_due = true;
        Ok(())
    }

    /// The objects without which the files are good, as far as that can be found out.
    fn blame(&self, wanted: &Install, why: &str) -> RefusedObjects {
        let named = self.named(wanted, why);
        if !named.is_empty() {
            return named;
        }
        let files = &wanted.files;
        let is_good = |files: &PlannedFiles| matches!(self.check(files), Ok(ConfigVerdict::Good));
        let found = blame::search(files, |name| self.folder.file(name), is_good);
        let alone = |object: &ResourceRef| {
            let mut files = files.clone();
            leave_out(&mut files, |other| other != object && found.contains(other));
            match self.check(&files) {
                Ok(ConfigVerdict::Refused(why)) => why,
                _ => why.to_owned(),
            }
        };
        let error = |object| match found.len() {
            ..=EXPLAINED_MAX => alone(object),
            _ => why.to_owned(),
        };
        found.iter().map(|object| (object.clone(), self.readable(&error(object)))).collect()
    }

    /// The objects whose files an error names, and the Gateways that cannot have an address.
    fn named(&self, wanted: &Install, why: &str) -> RefusedObjects {
        let unbound = unbound(why);
        let gateways = wanted.listens.iter().filter(|(listen, _)| unbound.contains(listen));
        let gateways = gateways.map(|(_, key)| (ResourceKind::Gateway, key.clone()));
        let named = blame::named(why, &self.name).into_iter().chain(gateways);
        named.map(|object| (object, self.readable(why))).collect()
    }

    /// An error without what is the same in all of them.
    fn readable(&self, why: &str) -> String {
        let folders = [format!("{}/.check/", self.name), format!("{}/", self.name)];
        let parts = folders.iter().map(String::as_str).chain(["weir: ", "[emerg] "]);
        parts.fold(why.to_owned(), |why, part| why.replace(part, ""))
    }

    fn check(&self, files: &PlannedFiles) -> Result<ConfigVerdict, String> {
        let copy = self.folder.write_copy(&self.name, files)?;
        let verdict = self.server.check(&copy.join("nginx.conf"));
        remove_folder(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        Ok(verdict)
    }

    fn reload(&mut self, wanted: &Arc<Install>) {
        match self.server.reload() {
            ConfigVerdict::Good => {
                IngressMetrics::count(&self.metrics.reloads);
                tell("the server uses the new configuration");
                self.backoff.succeeded();
                (self.is_reload_due, self.unread) = (false, None);
                if let Err(why) = self.folder.remove_others(&wanted.files) {
                    tell(&why);
                }
            }
            ConfigVerdict::Refused(why) => {
                self.is_reload_due = false;
                if let Some(unread) = self.unread.take()
                    && let Err(why) = self.folder.undo(unread)
                {
                    tell(&format!("the old files cannot be written back: {why}"));
                }
                let objects = self.named(wanted, &why);
                self.refuse(wanted, &why, objects);
            }
            ConfigVerdict::Unknown(why) => {
                self.failed(wanted, format!("the server was not reloaded: {why}"));
            }
        }
    }

    fn refuse(&mut self, wanted: &Arc<Install>, why: &str, objects: RefusedObjects) {
        IngressMetrics::count(&self.metrics.reload_failures);
        self.refused = Some(wanted.files.clone());
        self.due = Instant::now() + REFUSED_AGAIN;
        self.report(wanted, InstallOutcome::Refused(self.readable(why), objects));
    }

    fn failed(&mut self, wanted: &Arc<Install>, why: String) {
        IngressMetrics::count(&self.metrics.reload_failures);
        self.due = Instant::now() + Duration::from_millis(self.backoff.failed());
        self.report(wanted, InstallOutcome::Failed(why));
    }

    /// Writes a configuration for a server that is still to be started. Returns whether it is good.
    pub(crate) fn prepare(&mut self, wanted: &Arc<Install>) -> Result<bool, String> {
        let is_anew = !self.server.is_running();
        self.write(wanted, is_anew)?;
        Ok(self.refused.is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Mutex;

    use discover::HttpPlace;
    use testing::{Folder, Peer};

    use super::*;

    /// A server that answers reloads as the test says, and what its configuration was then.
    struct Played {
        folder: Folder,
        answer: Arc<Mutex<(u16, String)>>,
        peer: Peer,
        installer: Installer,
    }

    fn played(program: Option<&str>) -> Played {
        let folder = Folder::new();
        let answer = Arc::new(Mutex::new((200, "{}".to_owned())));
        let answers = answer.clone();
        let peer = Peer::answering(move |_| {
            let (status, body) = answers.lock().unwrap().clone();
            format!("HTTP/1.1 {status} X\nContent-Length: {}\n\n{body}", body.len())
        });
        let installer = installer(&folder, &peer, program);
        Played { folder, answer, peer, installer }
    }

    fn installer(folder: &Folder, peer: &Peer, program: Option<&str>) -> Installer {
        let place = HttpPlace::parse(&format!("http://{}", peer.address), Path::new("")).unwrap();
        let server = ServerControl::new(place, program.map(PathBuf::from));
        Installer::new(&folder.name("w"), server, Arc::default()).unwrap()
    }

    impl Played {
        fn install(&mut self, main: &str) {
            let files = PlannedFiles::from([("nginx.conf".to_owned(), main.as_bytes().to_vec())]);
            self.installer.installs.put(Arc::new(Install { files, ..Install::default() }));
            self.installer.step(Duration::ZERO);
        }

        fn again(&mut self) {
            self.installer.due = Instant::now();
            self.installer.step(Duration::ZERO);
        }

        fn set(&self, status: u16, body: &str) {
            *self.answer.lock().unwrap() = (status, body.to_owned());
        }

        fn main_file(&self) -> String {
            fs::read_to_string(self.folder.join("w/nginx.conf")).unwrap_or_default()
        }

        fn flags(&self) -> (bool, bool) {
            let metrics = &self.installer.metrics;
            let flag = |flag: &std::sync::atomic::AtomicBool| flag.load(Ordering::Relaxed);
            (flag(&metrics.is_refused), flag(&metrics.is_behind))
        }
    }

    #[test]
    fn the_server_is_reloaded_once_per_change_and_after_a_start() {
        let mut played = played(None);
        played.install("one");
        assert!(played.peer.asked().starts_with("POST /reload "));
        assert_eq!((played.main_file(), played.flags()), ("one".to_owned(), (false, false)));
        played.install("one");
        played.peer.expect_unasked();
        played.install("two");
        played.peer.asked();
        played.installer = installer(&played.folder, &played.peer, None);
        played.install("two");
        played.peer.asked();
    }

    #[test]
    fn a_refused_configuration_is_taken_back_and_reported() {
        let mut played = played(None);
        played.install("good");
        played.set(422, r#"{"log":["[emerg] bad"]}"#);
        played.install("bad");
        assert_eq!((played.main_file(), played.flags()), ("good".to_owned(), (true, true)));
        played.set(200, "{}");
        played.install("good");
        assert_eq!((played.main_file(), played.flags()), ("good".to_owned(), (false, false)));
        played.set(422, r#"{"log":["[emerg] bad"]}"#);
        played.install("bad");
        played.set(200, "{}");
        played.again();
        assert_eq!((played.main_file(), played.flags()), ("bad".to_owned(), (false, false)));
    }

    #[test]
    fn what_a_check_refuses_is_not_written() {
        let mut played = played(Some("/bin/false"));
        played.install("bad");
        assert_eq!((played.main_file(), played.flags()), (String::new(), (true, true)));
        played.peer.expect_unasked();
        assert!(!played.folder.join("w/.check").exists());
        assert_eq!(played.installer.prepare(&Arc::default()), Ok(false));
    }

    #[test]
    fn the_objects_at_fault_are_reported() {
        let scripts = Folder::new();
        let script = scripts.write("check", "#!/bin/sh\n! grep -rq bad \"${4%/*}/routes\"\n");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
        let mut played = played(script.to_str());
        let (reports, reported) = std::sync::mpsc::channel();
        played.installer.reports = Box::new(move |report| reports.send(report.outcome).unwrap());
        let route = |name: &str, text: &str| {
            (format!("routes/ingress.a.{name}/path-1.conf"), text.as_bytes().to_vec())
        };
        let mut files = PlannedFiles::from([("nginx.conf".to_owned(), b"x".to_vec())]);
        files.extend([route("one", "good"), route("two", "bad"), route("three", "good")]);
        let install = Arc::new(Install { files: files.clone(), ..Install::default() });
        played.installer.installs.put(install);
        played.installer.step(Duration::ZERO);
        let InstallOutcome::Refused(_, objects) = reported.try_recv().unwrap() else {
            panic!("it was not refused");
        };
        let names: Vec<_> = objects.keys().map(|(_, key)| &*key.name).collect();
        assert_eq!((names, played.main_file()), (vec!["two"], String::new()));
        files.extend([route("two", "good")]);
        let install = Arc::new(Install { files, ..Install::default() });
        for _ in 0..2 {
            played.installer.installs.put(install.clone());
            played.installer.step(Duration::ZERO);
            assert_eq!(reported.try_recv(), Ok(InstallOutcome::Used));
        }
        played.peer.asked();
        played.peer.expect_unasked();
    }

    #[test]
    fn a_server_that_does_not_answer_is_asked_until_it_does() {
        let mut played = played(None);
        played.set(503, "");
        played.install("one");
        played.install("two");
        assert_eq!((played.main_file(), played.flags()), ("two".to_owned(), (false, true)));
        played.set(422, r#"{"log":["[emerg] bad"]}"#);
        played.again();
        assert_eq!(played.main_file(), "", "neither was ever in use");
        played.set(200, "{}");
        played.install("three");
        assert_eq!((played.main_file(), played.flags()), ("three".to_owned(), (false, false)));
    }

    #[test]
    fn a_full_disk_changes_nothing_and_is_tried_again() {
        let mut played = played(None);
        played.install("one");
        played.peer.asked();
        fs::create_dir_all(played.folder.join("w/.nginx.conf.new/full")).unwrap();
        played.install("two");
        played.peer.expect_unasked();
        assert_eq!(played.main_file(), "one");
        fs::remove_dir_all(played.folder.join("w/.nginx.conf.new")).unwrap();
        played.again();
        played.peer.asked();
        assert_eq!(played.main_file(), "two");
    }

    #[test]
    fn a_first_configuration_has_the_servers_of_all_groups() {
        let mut played = played(None);
        let files = ["nginx.conf", "groups/http/a.conf"].map(|name| (name.to_owned(), Vec::new()));
        let groups = BTreeMap::from([("a".to_owned(), vec!["10.0.0.1:80".to_owned()])]);
        let install = Install { files: files.into(), groups, ..Install::default() };
        assert_eq!(played.installer.prepare(&install.into()), Ok(true));
        let servers = fs::read_to_string(played.folder.join("w/groups/http/a.servers"));
        assert_eq!(servers.unwrap(), "server 10.0.0.1:80;\n");
    }
}
