//! Reads a configuration file into settings and sites.
//!
//! Everything is read before anything is opened, so a configuration that fails leaves no trace. The
//! worker process reads the same files again from the master's recording: it gets the same result.

use std::path::PathBuf;
use std::sync::Arc;

use conf::lacking::{EnclosingBlock, Lack};
use conf::{
    Directive, EVENTS, Error, ErrorLevel, Files, Load, MAIN, ParsedConfig, Result, SharedCause,
    Sources, Span, Tree,
};
use lab::doctor::{self, NamedCertificates};
use observe::{ErrorLog, Level, LogFiles, MainLog};
use zones::Zones;

use crate::config_origin::ConfigOrigin;
use crate::hints;
use crate::lenient;
use crate::messages::Reported;
use crate::name::name;
use crate::settings::{BLOCKS, Layers, ModulesUsed, ProgramSettings, Scope};
use crate::subsystems::{Plans, Sites};

pub struct LoadedConfig {
    pub settings: ProgramSettings,
    pub sites: Sites,
    pub main_log: Arc<ErrorLog>,
    /// The log files that it names, not open yet.
    pub log_files: LogFiles,
    /// The directories that it writes to.
    pub folders: Vec<WrittenFolder>,
    /// The state that the next configuration may take over.
    pub zones: Zones,
    pub sources: Sources,
    pub warnings: usize,
}

/// A directory that workers write to.
pub struct WrittenFolder {
    pub path: PathBuf,
    /// The first line that names it; `None` for a default.
    pub named: Option<Span>,
    /// What happens without it.
    pub without: &'static str,
}

/// Reads a first configuration, and reports its errors.
pub fn load(origin: &ConfigOrigin, files: &mut dyn Files) -> Result<LoadedConfig, Reported> {
    load_after(&Zones::default(), origin, files)
}

/// Reads a configuration that inherits the zones of another, and reports its errors.
pub fn load_after(
    before: &Zones,
    origin: &ConfigOrigin,
    files: &mut dyn Files,
) -> Result<LoadedConfig, Reported> {
    load_and(before, origin, files, true)
}

/// Reads a configuration without printing its warnings, because another process reports them: the
/// master for worker processes, a test or a start for a signal.
pub fn load_quietly(
    before: &Zones,
    origin: &ConfigOrigin,
    files: &mut dyn Files,
) -> Result<LoadedConfig, Reported> {
    load_and(before, origin, files, false)
}

fn load_and(
    before: &Zones,
    origin: &ConfigOrigin,
    files: &mut dyn Files,
    warn: bool,
) -> Result<LoadedConfig, Reported> {
    let (mut load, tree, error) = begin(origin, files);
    *Zones::of(&mut load) = Zones::after(before);
    let loaded = read(&tree.root, error, origin, &mut load);
    let warnings = std::mem::take(&mut load.warnings);
    let sources = load.sources;
    let causes = SharedCause::group(warnings.iter().filter(|_| warn));
    causes.iter().for_each(|cause| say_cause(cause, &sources));
    match loaded {
        Ok(loaded) => {
            let is_warning = |cause: &&SharedCause<'_>| cause.first.level == ErrorLevel::Warn;
            let warnings = causes.iter().filter(is_warning).map(|cause| cause.count).sum();
            Ok(LoadedConfig { sources, warnings, ..loaded })
        }
        Err(mut error) => {
            if sources.iter().all(|source| source.path.is_none()) {
                error.help = error.help.or_else(|| hints::conf(origin));
            }
            say(&error, &sources);
            Err(Reported)
        }
    }
}

/// Parses a configuration. The third value is the error that ended parsing early.
fn begin<'a>(origin: &ConfigOrigin, files: &'a mut dyn Files) -> (Load<'a>, Tree, Option<Error>) {
    let directives = origin.directives.as_deref();
    let parsed = conf::parse(&origin.conf, &origin.conf_prefix, directives, files);
    let ParsedConfig { sources, tree, error } = parsed;
    let path = conf::bytes_path;
    let mut load = Load::new(files, path(&origin.prefix), path(&origin.conf_prefix));
    load.lenient = origin.lenient || lenient::is_configured(&tree.root);
    load.as_nginx = name().is_nginx();
    load.privileged = origin.privileged;
    *load.registry.of() = origin.defaults.for_http();
    load.sources = sources;
    (load, tree, error)
}

/// The result of checking a configuration that will not be served.
pub struct Examined {
    /// The errors. [`Error::lacks`] marks those that are only about something unsupported.
    pub errors: Vec<Error>,
    pub warnings: Vec<Error>,
    /// Unsupported features, and what Weir does instead.
    pub lacks: Vec<Lack>,
    pub sources: Sources,
}

/// Reads a configuration to its end, whatever is wrong with it.
pub fn examine(origin: &ConfigOrigin, files: &mut dyn Files) -> Examined {
    let (mut load, tree, error) = begin(origin, files);
    (load.lenient, load.checking) = (true, true);
    if let Err(error) = read(&tree.root, error, origin, &mut load) {
        load.errors.push(error);
    }
    warn_of_certificates(&tree.root, &mut load);
    warn_of_caches(&tree.root, &mut load);
    let Load { errors, warnings, lacks, sources, .. } = load;
    Examined { errors, warnings, lacks, sources }
}

/// Warns of certificates that clients refuse, or soon will.
fn warn_of_certificates(root: &[Directive], load: &mut Load<'_>) {
    let texts = NamedCertificates::read(root, &load.conf_prefix, load.files);
    for problem in doctor::certificate_problems(root, &texts, observe::Stamps::now().second()) {
        for line in problem.lines {
            load.warn(line.error_at(line.arg(0), problem.what.clone()));
        }
    }
}

/// Warns of caches that may give clients what was meant for others.
fn warn_of_caches(root: &[Directive], load: &mut Load<'_>) {
    for problem in doctor::cache_problems(root) {
        for line in problem.lines {
            load.warn(
                line.error(format!("{}: {}", problem.what, problem.why)).help(problem.fix.clone()),
            );
        }
    }
}

/// Reports an error: nginx's line in the log, and on the terminal also an excerpt.
pub fn say(error: &Error, sources: &Sources) {
    say_cause(&SharedCause { first: error, count: 1 }, sources);
}

fn say_cause(cause: &SharedCause<'_>, sources: &Sources) {
    let level = match cause.first.level {
        conf::ErrorLevel::Emerg => Level::Emerg,
        conf::ErrorLevel::Crit => Level::Crit,
        conf::ErrorLevel::Warn => Level::Warn,
        conf::ErrorLevel::Notice => Level::Notice,
    };
    if !observe::copies_to_stderr() {
        // A reload, which has a log and no terminal.
        return observe::log(level, format_args!("{}", cause.log_line(sources)));
    }
    observe::log(level, format_args!("{}", cause.headline(sources)));
    if level <= Level::Warn {
        observe::tell(format_args!("{}", cause.diagnostic(sources).excerpt()));
    }
}

/// Reads the main level. `broken` is the error that ended parsing. As in nginx, which parses and
/// checks in one pass, errors before it are reported first.
fn read(
    root: &[Directive],
    broken: Option<Error>,
    origin: &ConfigOrigin,
    load: &mut Load<'_>,
) -> Result<LoadedConfig> {
    let mut main = Main::default();
    let block = EnclosingBlock { context: "main", lines: root };
    for line in root {
        let read = main.line(line, block, load);
        load.tolerate(read)?;
    }
    if let Some(error) = broken {
        return Err(error);
    }
    if !main.blocks.contains(&"events") {
        return Err(Error::bare("no \"events\" section in configuration"));
    }
    if let Some(at) = load.errors.iter().position(|error| error.lacks.is_none()) {
        // Later errors may be consequences of it.
        return Err(load.errors.remove(at));
    }
    compile(main.layers, main.plans, origin, load)
}

/// The main level, as far as it has been read.
#[derive(Default)]
struct Main {
    layers: Layers,
    /// The names of its blocks.
    blocks: Vec<&'static str>,
    plans: Plans,
}

impl Main {
    fn line(
        &mut self,
        line: &Directive,
        block: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        match BLOCKS.iter().find(|block| block.name.as_bytes() == &*line.name.text) {
            Some(info) => {
                info.admit(line, MAIN)?;
                load.registry.of::<ModulesUsed>().0 = true;
                if self.blocks.contains(&info.name) {
                    return Err(line.refuse("is duplicate"));
                }
                self.blocks.push(info.name);
                match info.name {
                    "events" => read_events(line, &mut self.layers, load)?,
                    _ => self.plans.read(line, load)?,
                }
            }
            None if self.layers.set(MAIN, line, load)? => {}
            None => drop(load.without_feature(line, block)?),
        }
        Ok(())
    }
}

fn read_events(block: &Directive, layers: &mut Layers, load: &mut Load<'_>) -> Result<()> {
    let around =
        EnclosingBlock { context: "events", lines: block.block.as_deref().unwrap_or_default() };
    for line in around.lines {
        let read = match layers.set(EVENTS, line, load) {
            Ok(false) => load.without_feature(line, around).map(drop),
            read => read.map(drop),
        };
        load.tolerate(read)?;
    }
    Ok(())
}

fn compile(
    layers: Layers,
    plans: Plans,
    origin: &ConfigOrigin,
    load: &mut Load<'_>,
) -> Result<LoadedConfig> {
    let scope = Scope::outermost(load).child(layers, false);
    let mut settings =
        ProgramSettings { pid: origin.defaults.pid.clone(), ..ProgramSettings::default() };
    scope.install(&mut settings)?;
    let main_log = Arc::new(main_log(&settings, origin, load));
    load.registry.of::<MainLog>().0 = main_log.clone();
    let sites = plans.compile(load)?;
    settings.check(sites.listens().len(), load)?;
    Zones::of(load).settle();
    let zones = std::mem::take(Zones::of(load));
    let log_files = load.registry.of::<LogFiles>().clone();
    let folders = folders(load);
    let (sources, warnings) = (Sources::default(), 0);
    Ok(LoadedConfig { settings, sites, main_log, log_files, folders, zones, sources, warnings })
}

/// The directories of temporary files, and those of certificates.
fn folders(load: &mut Load<'_>) -> Vec<WrittenFolder> {
    let temporary = std::mem::take(&mut load.registry.of::<http::TempPaths>().0);
    let temporary = temporary.into_iter().map(|folder| WrittenFolder {
        path: folder.path,
        named: folder.named,
        without: "requests and replies that do not fit in memory will fail",
    });
    let states = std::mem::take(&mut load.registry.of::<acme::StateFolders>().0);
    let states = states.into_iter().map(|folder| WrittenFolder {
        path: folder.path,
        named: Some(folder.named),
        without: "no certificate will be obtained",
    });
    temporary.chain(states).collect()
}

/// The named logs, and the default file if none of them is a file.
fn main_log(settings: &ProgramSettings, origin: &ConfigOrigin, load: &mut Load<'_>) -> ErrorLog {
    let mut log = settings.error_log.clone().unwrap_or_default();
    if !log.has_file() {
        log.extend(&match &origin.defaults.error_log {
            Some(path) => {
                let file = load.registry.of::<LogFiles>().at(path);
                ErrorLog::to_file(file, Level::Error)
            }
            None => ErrorLog::to_stderr(Level::Error),
        });
    }
    if load.registry.of::<LogFiles>().has_stderr() {
        log.note_stderr_elsewhere();
    }
    if let Some(tags) = &settings.error_log_tags {
        log.set_tags(tags);
    }
    log
}
