//! `index`: a path that ends with a slash is answered with a file of that directory.
//!
//! The file is only looked up. An internal redirect leads to it, so that locations apply to it as
//! to any other path. An absolute name is not looked up.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value};
use observe::{Errno, Level, Text};
use wire::Method;

use crate::exchange::{Exchange, Flow, Jump, JumpArgs};
use crate::files::PathError;
use crate::paths;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// The files that answer requests for a directory; the first one that exists is used.
    ///
    /// Syntax: FILE...
    ///
    /// ```nginx
    /// index index.html index.htm;
    /// ```
    index: IndexNames = "index.html",
}

/// Adds the content handler.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let conf = conf.clone();
    location.content(move |x| handle(&conf.index, x));
    Ok(())
}

/// The names. Lines of one block form one list.
#[derive(Clone)]
struct IndexNames(Arc<[Template]>);

impl Value for IndexNames {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut names = Vec::with_capacity(from.args.len());
        for (at, word) in from.args.iter().enumerate() {
            if word.text.starts_with(b"/") && at + 1 < from.args.len() {
                let message = "only the last index in \"index\" directive should be absolute";
                load.warn(from.error_at(word, message));
            }
            if word.text.is_empty() {
                let message = format!("index \"{word}\" in \"index\" directive is invalid");
                return Err(from.error_at(word, message));
            }
            names.push(Template::compile(word, from, load)?);
        }
        Ok(Self(names.into()))
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let more = Self::parse(from, load)?;
        self.0 = self.0.iter().chain(more.0.iter()).cloned().collect();
        Ok(())
    }
}

fn handle(names: &IndexNames, x: &mut Exchange) -> Flow {
    let is_read = matches!(x.request.head.method, Method::Get | Method::Head | Method::Post);
    if !is_read || !x.request.uri.ends_with(b"/") {
        return Flow::Next;
    }
    let mut path = x.scratch();
    let flow = find(names, x, &mut path);
    x.give_scratch(path);
    flow
}

fn find(names: &IndexNames, x: &mut Exchange, path: &mut Vec<u8>) -> Flow {
    let mut directory_tested = false;
    for name in &*names.0 {
        path.clear();
        if let Some(absolute @ [b'/', ..]) = name.as_fixed() {
            return redirect(absolute.to_vec());
        }
        if !x.append_path(path) {
            return Flow::Status(500);
        }
        let name_start = path.len();
        name.render(x, path);
        if path[name_start..].starts_with(b"/") {
            return redirect(path[name_start..].to_vec());
        }
        let Err(failed) = paths::test(x, path) else {
            return redirect([&x.request.uri, &path[name_start..]].concat());
        };
        if let Err(status) = go_on(x, path, name_start, &failed, &mut directory_tested) {
            return Flow::Status(status);
        }
    }
    Flow::Next
}

fn redirect(uri: Vec<u8>) -> Flow {
    Flow::Jump(Jump::Internal { uri, args: JumpArgs::Kept })
}

/// After a name that was not found: `Ok` if the next name may be tried, `Err` with the status
/// otherwise. The directory is only checked after the file, so that successful requests cost
/// nothing more.
fn go_on(
    x: &mut Exchange,
    path: &[u8],
    name_start: usize,
    failed: &PathError,
    directory_tested: &mut bool,
) -> Result<(), u16> {
    let is_missing = failed.error.kind() == std::io::ErrorKind::NotFound;
    if failed.is_refused_link() {
        return Err(403);
    }
    if failed.is_denied() || (failed.is_not_found() && !is_missing) {
        return Err(refuse(x, path, failed));
    }
    if !*directory_tested {
        test_directory(x, path, name_start)?;
        *directory_tested = true;
    }
    if !is_missing {
        paths::log_failed(x, Level::Crit, path, failed);
        return Err(500);
    }
    Ok(())
}

/// Checks the directory of a missing file.
fn test_directory(x: &mut Exchange, path: &[u8], name_start: usize) -> Result<(), u16> {
    let directory = paths::without_slash(&path[..name_start]);
    match paths::test_directory(x, directory) {
        Ok(stat) if stat.is_directory() => Ok(()),
        Ok(_) => {
            x.log(Level::Alert, format_args!("\"{}\" is not a directory", Text(path)));
            Err(500)
        }
        Err(failed) if failed.is_refused_link() => Err(403),
        Err(failed) if failed.error.kind() == std::io::ErrorKind::NotFound => {
            Err(refuse(x, path, &failed))
        }
        // Looking the file up was allowed, so searching the directory is.
        Err(failed) if failed.is_denied() => Ok(()),
        Err(failed) => {
            paths::log_failed(x, Level::Crit, directory, &failed);
            Err(500)
        }
    }
}

/// Logs an error of an index file or its directory, in nginx's words. Returns the status.
fn refuse(x: &Exchange, path: &[u8], failed: &PathError) -> u16 {
    let (path, reason) = (Text(path), Errno(&failed.error));
    if failed.is_denied() {
        x.log(Level::Error, format_args!("\"{path}\" is forbidden{reason}"));
        return 403;
    }
    if x.location().core.log_not_found {
        x.log(Level::Error, format_args!("\"{path}\" is not found{reason}"));
    }
    404
}

#[cfg(test)]
mod tests;
