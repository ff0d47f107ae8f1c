//! `load_module`: Weir loads no modules. The modules that it supports are built in.
//!
//! A module that Weir does not have is no error by itself: Debian enables the modules of a package
//! whether or not they are used. Their directives are reported where they are used.

use std::path::Path;

use conf::lacking::{self, Class, LinePart};
use conf::{Directive, Error, ErrorLevel, Load, Result, known};

/// Whether a block has been read whose meaning modules could still change.
#[derive(Default)]
pub struct ModulesUsed(pub bool);

/// The modules that lines have named.
#[derive(Default)]
struct ModulesNamed(Vec<String>);

pub fn load_module(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    if load.registry.of::<ModulesUsed>().0 {
        return Err(from.refuse("is specified too late"));
    }
    let word = from.arg(0);
    let path = load.path(&word.text);
    let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_known = is_known(&module);
    if !is_known && !crate::version::has_module(&module) {
        let part =
            LinePart { what: format!("load_module {word}").into(), module: "", class: CLASS };
        return load.without_part(from, part, unknown(from, &path));
    }
    let named = &mut load.registry.of::<ModulesNamed>().0;
    if named.contains(&module) {
        return Err(from.error(format!("module \"{module}\" is already loaded")));
    }
    named.push(module);
    if is_known {
        let notice = left_out(from);
        // `weir check` lists every module; other commands print one notice for all.
        let notice = if load.checking { notice } else { notice.cause("load_module") };
        load.warnings.push(notice);
    }
    Ok(())
}

/// The class of an unknown module, whose directives cannot be classified.
const CLASS: Class = Class::Behavior;

/// Whether it is a module that Weir does not have but whose directives it knows.
fn is_known(module: &str) -> bool {
    let is_nginxs = || known::all().iter().any(|known| known.module == module);
    lacking::is_module_file(module) || !crate::version::has_module(module) && is_nginxs()
}

fn left_out(from: &Directive) -> Error {
    let word = from.arg(0);
    let message = format!("module \"{word}\" is not part of this version of weir, ignored");
    from.error_at(word, message).level(ErrorLevel::Notice)
}

/// A file that does not exist is refused in nginx's words.
fn unknown(from: &Directive, path: &Path) -> Error {
    let (word, shown) = (from.arg(0), path.display());
    let message = match path.exists() {
        true => format!("module \"{word}\" is not supported by this version of weir"),
        false => {
            let why = "cannot open shared object file: No such file or directory";
            format!("dlopen() \"{shown}\" failed ({shown}: {why})")
        }
    };
    from.error_at(word, message)
}
