//! From a configuration file to settings and a site.
//!
//! Everything is read before anything is opened, so a configuration that fails leaves no trace. The
//! worker process reads the same files again from the master's recording: it gets the same result.

use std::path::PathBuf;
use std::sync::Arc;

use conf::lacking::{Block, Lack};
use conf::{
    Directive, Disk, EVENTS, Error, Files, Load, MAIN, Parsed, Result, Sources, Tree, Zones,
};
use observe::{ErrorLog, Level, LogFiles, MainLog};

use crate::Told;
use crate::command_line::CommandLine;
use crate::embedded;
use crate::lenient;
use crate::name::name;
use crate::settings::{BLOCKS, Layers, ModulesUsed, Scope, Settings};

/// Where a configuration comes from, and what its relative names are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub conf: Box<[u8]>,
    /// Logs, roots and temporary files are relative to this.
    pub prefix: Box<[u8]>,
    /// Includes and what else belongs to the configuration are relative to this.
    pub conf_prefix: Box<[u8]>,
    /// `-g`
    pub directives: Option<Box<[u8]>>,
    /// The error log where no `error_log` names a file; `None`: standard error.
    pub error_log: Option<Box<[u8]>>,
    /// `--lenient`, or the environment says so; the configuration may say it, too.
    pub lenient: bool,
    /// Whether the master has the rights of root.
    pub privileged: bool,
    /// Whether it is the one that is built in.
    pub embedded: bool,
}

impl Origin {
    /// What the command line means.
    pub fn of(command: &CommandLine) -> Self {
        if embedded::is_meant(command) {
            return Self { lenient: lenient::is_asked(command), ..Self::embedded() };
        }
        Self {
            conf: command.conf().into(),
            prefix: command.prefix().into(),
            conf_prefix: command.conf_prefix().into(),
            directives: command.directives.clone(),
            error_log: command.error_log().map(Into::into),
            lenient: lenient::is_asked(command),
            privileged: net::is_privileged(),
            embedded: false,
        }
    }

    /// The configuration that is built in.
    pub fn embedded() -> Self {
        let prefix = embedded::prefix();
        Self {
            conf: embedded::NAME.as_bytes().into(),
            prefix: prefix.clone(),
            conf_prefix: prefix,
            privileged: net::is_privileged(),
            embedded: true,
            ..Self::default()
        }
    }

    /// The files to read it from.
    pub fn files(&self) -> Box<dyn Files> {
        if self.embedded { Box::new(embedded::files()) } else { Box::new(Disk) }
    }
}

/// A configuration that was read.
pub struct Loaded {
    pub settings: Settings,
    pub site: Arc<http::Site>,
    /// The main level's log.
    pub main_log: Arc<ErrorLog>,
    /// Every log file that it names, not yet open.
    pub log_files: LogFiles,
    /// The directories that it writes to.
    pub folders: Vec<PathBuf>,
    /// The state that the next configuration may take over.
    pub zones: Zones,
    pub sources: Sources,
}

/// Reads a configuration that takes over from none, and says what is wrong with it.
pub fn load(origin: &Origin, files: &mut dyn Files) -> Result<Loaded, Told> {
    load_after(&Zones::default(), origin, files)
}

/// Reads a configuration that takes over the zones of another, and says what is wrong with it.
pub fn load_after(before: &Zones, origin: &Origin, files: &mut dyn Files) -> Result<Loaded, Told> {
    load_and(before, origin, files, true)
}

/// Reads a configuration whose warnings the master has said already.
pub fn load_quietly(
    before: &Zones,
    origin: &Origin,
    files: &mut dyn Files,
) -> Result<Loaded, Told> {
    load_and(before, origin, files, false)
}

fn load_and(
    before: &Zones,
    origin: &Origin,
    files: &mut dyn Files,
    warn: bool,
) -> Result<Loaded, Told> {
    let (mut load, tree, error) = begin(origin, files);
    load.zones = Zones::after(before);
    let loaded = read(&tree.root, error, origin, &mut load);
    let warnings = std::mem::take(&mut load.warnings);
    let sources = load.sources;
    warnings.iter().filter(|_| warn).for_each(|warning| say(warning, &sources));
    match loaded {
        Ok(loaded) => Ok(Loaded { sources, ..loaded }),
        Err(error) => {
            say(&error, &sources);
            Err(Told)
        }
    }
}

/// Parses a configuration; what ended that early comes third.
fn begin<'a>(origin: &Origin, files: &'a mut dyn Files) -> (Load<'a>, Tree, Option<Error>) {
    let directives = origin.directives.as_deref();
    let parsed = conf::parse(&origin.conf, &origin.conf_prefix, directives, files);
    let Parsed { sources, tree, error } = parsed;
    let path = conf::bytes_path;
    let mut load = Load::new(files, path(&origin.prefix), path(&origin.conf_prefix));
    load.lenient = origin.lenient || lenient::is_said(&tree.root);
    load.as_nginx = name().word == "nginx";
    load.privileged = origin.privileged;
    load.sources = sources;
    (load, tree, error)
}

/// All that can be said of a configuration which is not to be served.
pub struct Examined {
    /// What is wrong. Where it is only that this version does not have something, the error says
    /// so ([`Error::lacks`]).
    pub errors: Vec<Error>,
    pub warnings: Vec<Error>,
    /// What this version does not have, and what it does instead.
    pub lacks: Vec<Lack>,
    pub sources: Sources,
}

/// Reads a configuration to its end, whatever is wrong with it.
pub fn examine(origin: &Origin, files: &mut dyn Files) -> Examined {
    let (mut load, tree, error) = begin(origin, files);
    (load.lenient, load.checking) = (true, true);
    if let Err(error) = read(&tree.root, error, origin, &mut load) {
        load.errors.push(error);
    }
    let Load { errors, warnings, lacks, sources, .. } = load;
    Examined { errors, warnings, lacks, sources }
}

/// nginx's line for the log; on the terminal also the place.
fn say(error: &Error, sources: &Sources) {
    let level = match error.level {
        conf::Level::Emerg => Level::Emerg,
        conf::Level::Crit => Level::Crit,
        conf::Level::Warn => Level::Warn,
        conf::Level::Notice => Level::Notice,
    };
    let diagnostic = conf::Diagnostic { error, sources };
    observe::log(level, format_args!("{}", diagnostic.headline()));
    if observe::copies_to_stderr() && level <= Level::Warn {
        observe::tell(format_args!("{}", diagnostic.excerpt()));
    }
}

/// Reads the main level. `broken` is what ended the parsing: whatever stood before it is looked
/// at first, since nginx reads and checks in one go.
fn read(
    root: &[Directive],
    broken: Option<Error>,
    origin: &Origin,
    load: &mut Load<'_>,
) -> Result<Loaded> {
    let mut main = Main::default();
    let block = Block { context: "main", lines: root };
    for line in root {
        let read = main.line(line, block, load);
        load.tolerate(read)?;
    }
    if let Some(error) = broken {
        return Err(error);
    }
    if !main.has_events {
        return Err(Error::bare("no \"events\" section in configuration"));
    }
    if let Some(at) = load.errors.iter().position(|error| error.lacks.is_none()) {
        // What is wrong further on may follow from it.
        return Err(load.errors.remove(at));
    }
    compile(main.layers, main.http, origin, load)
}

/// The main level, as far as it has been read.
#[derive(Default)]
struct Main {
    layers: Layers,
    has_events: bool,
    has_http: bool,
    http: Option<http::Plan>,
}

impl Main {
    fn line(&mut self, line: &Directive, block: Block<'_>, load: &mut Load<'_>) -> Result<()> {
        match BLOCKS.iter().find(|block| block.name.as_bytes() == &*line.name.text) {
            Some(info) => {
                info.admit(line, MAIN)?;
                load.registry.of::<ModulesUsed>().0 = true;
                let is_http = info.name == "http";
                let seen = if is_http { &mut self.has_http } else { &mut self.has_events };
                if std::mem::replace(seen, true) {
                    return Err(line.refuse("is duplicate"));
                }
                match is_http {
                    true => self.http = Some(http::read(line, load)?),
                    false => read_events(line, &mut self.layers, load)?,
                }
            }
            None if self.layers.set(MAIN, line, load)? => {}
            None => drop(load.without_feature(line, block)?),
        }
        Ok(())
    }
}

/// Reads `events {}`.
fn read_events(block: &Directive, layers: &mut Layers, load: &mut Load<'_>) -> Result<()> {
    let around = Block { context: "events", lines: block.block.as_deref().unwrap_or_default() };
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
    http: Option<http::Plan>,
    origin: &Origin,
    load: &mut Load<'_>,
) -> Result<Loaded> {
    let scope = Scope::outermost(load).child(layers, false);
    let mut settings = Settings::default();
    scope.install(&mut settings)?;
    let main_log = Arc::new(main_log(&settings, origin, load));
    load.registry.of::<MainLog>().0 = main_log.clone();
    let site = match http {
        Some(plan) => plan.compile(load)?,
        None => http::Site::default(),
    };
    settings.check(site.listens().len(), load)?;
    load.zones.settle();
    let zones = std::mem::take(&mut load.zones);
    let log_files = load.registry.of::<LogFiles>().clone();
    let folders = std::mem::take(&mut load.registry.of::<http::TempPaths>().0);
    let (site, sources) = (Arc::new(site), Sources::default());
    Ok(Loaded { settings, site, main_log, log_files, folders, zones, sources })
}

/// The logs that are named, and the default file where none of them is a file.
fn main_log(settings: &Settings, origin: &Origin, load: &mut Load<'_>) -> ErrorLog {
    let mut log = settings.error_log.clone().unwrap_or_default();
    if !log.has_file() {
        log.extend(&match &origin.error_log {
            Some(path) => {
                let file = load.registry.of::<LogFiles>().at(conf::bytes_path(path));
                ErrorLog::to_file(file, Level::Error)
            }
            None => ErrorLog::to_stderr(Level::Error),
        });
    }
    if load.registry.of::<LogFiles>().has_stderr() {
        log.note_stderr_elsewhere();
    }
    log
}
