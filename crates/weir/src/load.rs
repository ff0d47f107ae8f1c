//! From a configuration file to settings and a site.
//!
//! Everything is read before anything is opened, so a configuration that fails leaves no trace.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use conf::{Directive, Disk, EVENTS, Error, Load, MAIN, Parsed, Result, Sources};

use crate::command_line::CommandLine;
use crate::log::{Level, Log};
use crate::name::name;
use crate::settings::{BLOCKS, Layers, Scope, Settings};
use crate::{Told, pid_file};

/// A configuration that was read.
pub struct Loaded {
    pub settings: Settings,
    pub site: Arc<http::Site>,
    sources: Sources,
}

/// Reads the configuration that the command line means, and says what is wrong with it.
pub fn load(command: &CommandLine, log: &mut Log) -> Result<Loaded, Told> {
    let (conf, conf_prefix) = (command.conf(), command.conf_prefix());
    let mut files = Disk;
    let parsed = conf::parse(&conf, &conf_prefix, command.directives.as_deref(), &mut files);
    let prefix = command.prefix();
    let mut load = Load::new(&mut files, path(&prefix), path(&conf_prefix));
    load.lenient = command.lenient;
    let Parsed { sources, tree, error } = parsed;
    let read = read(&tree.root, error, &mut load);
    let said = std::mem::take(&mut load.warnings);
    said.iter().for_each(|warning| say(warning, &sources, log));
    match read {
        Ok((settings, site)) => {
            if command.test && !command.quiet {
                let file = String::from_utf8_lossy(&conf);
                eprintln!("{}: the configuration file {file} syntax is ok", name().word);
            }
            Ok(Loaded { settings, site: Arc::new(site), sources })
        }
        Err(error) => {
            say(&error, &sources, log);
            Err(Told)
        }
    }
}

fn path(bytes: &[u8]) -> &Path {
    conf::bytes_path(bytes)
}

fn say(error: &Error, sources: &Sources, log: &mut Log) {
    let level = Level::of(error.level.to_string().as_bytes()).unwrap_or(Level::Emerg);
    let diagnostic = conf::Diagnostic { error, sources };
    log.write(level, &diagnostic.headline());
    if log.also_stderr && level <= Level::Warn {
        eprint!("{}", diagnostic.excerpt());
    }
}

/// Reads the main level. `broken` is what ended the parsing: whatever stood before it is looked
/// at first, since nginx reads and checks in one go.
fn read(
    root: &[Directive],
    broken: Option<Error>,
    load: &mut Load<'_>,
) -> Result<(Settings, http::Site)> {
    let mut layers = Layers::default();
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut http = None;
    for line in root {
        if let Some(block) = BLOCKS.iter().find(|block| block.name.as_bytes() == &*line.name.text) {
            block.admit(line, MAIN)?;
            if blocks.contains(&block.name.as_bytes()) {
                return Err(line.refuse("is duplicate"));
            }
            blocks.push(block.name.as_bytes());
            match block.name {
                "http" => http = Some(http::read(line, load)?),
                _ => events(line, &mut layers, load)?,
            }
        } else if !layers.set(MAIN, line, load)? {
            load.without_feature(line, "main")?;
        }
    }
    if let Some(error) = broken {
        return Err(error);
    }
    let scope = Scope::outermost(load).child(layers, false);
    let mut settings = Settings::default();
    scope.install(&mut settings)?;
    let site = match http {
        Some(plan) => plan.compile(load)?,
        None => http::Site::default(),
    };
    if !blocks.contains(&&b"events"[..]) {
        return Err(Error::bare("no \"events\" section in configuration"));
    }
    Ok((settings, site))
}

fn events(block: &Directive, layers: &mut Layers, load: &mut Load<'_>) -> Result<()> {
    for line in block.block.iter().flatten() {
        if !layers.set(EVENTS, line, load)? {
            load.without_feature(line, "events")?;
        }
    }
    Ok(())
}

/// What `-t` tries beyond reading: the files that a start would open.
pub fn try_out(loaded: Loaded, log: &mut Log) -> Result<Loaded, Told> {
    pid_file::try_out(&loaded.settings.pid, log)?;
    Ok(loaded)
}

/// Ends `-t` and `-T`.
pub fn test(command: &CommandLine, loaded: Result<Loaded, Told>) -> Result<(), Told> {
    let file = command.conf();
    let file = String::from_utf8_lossy(&file);
    let Ok(loaded) = loaded else {
        eprintln!("{}: configuration file {file} test failed", name().word);
        return Err(Told);
    };
    if !command.quiet {
        eprintln!("{}: configuration file {file} test is successful", name().word);
    }
    if command.dump {
        // A reader that has seen enough closes the pipe.
        let _ = std::io::stdout().write_all(&conf::dump(&loaded.sources));
    }
    Ok(())
}
