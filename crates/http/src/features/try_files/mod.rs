//! `try_files`: the first of several paths that is a file becomes the path of the request.
//!
//! The last argument is not looked up: it is a status, a named location, or the path of an internal
//! redirect. As in nginx, the directive is not inherited.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Template, Value, units};
use observe::Level;

use crate::answer;
use crate::exchange::{Exchange, Flow, Jump, JumpArgs};
use crate::paths;
use crate::site::LocationBuilder;
use crate::site::policy::StandsFor;

conf::directives! {
    in SERVER | LOCATION;

    /// Checks these files in order and answers with the first one that exists; a name that ends
    /// with `/` is a directory. If none exists, the last argument is used: a path, a `@name`, or
    /// `=CODE`.
    ///
    /// Syntax: FILE... URI
    /// Syntax: FILE... =CODE
    ///
    /// ```nginx
    /// location / {
    ///     try_files $uri $uri/ /index.html;
    /// }
    /// ```
    try_files: Option<Tries>,
}

/// Adds the handler if the directive is set.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if let Some(tries) = conf.try_files.clone() {
        location.precontent(move |x| handle(&tries, x));
    }
    Ok(())
}

/// The paths in order, and the last argument.
#[derive(Clone)]
struct Tries {
    files: Arc<[Try]>,
    last: Last,
}

struct Try {
    name: Template,
    /// Whether it ends with a slash, and means a directory.
    is_directory: bool,
}

#[derive(Clone)]
enum Last {
    Status(u16),
    /// A path, or the name of a location.
    Path(Template),
}

const STATUS_MAX: u64 = 999;

impl Value for Tries {
    const ARGS: RangeInclusive<usize> = 2..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (last, files) = from.args.split_last().expect("two or more are promised");
        let mut tries = Vec::with_capacity(files.len());
        for word in files {
            let (name, is_directory) = match &*word.text {
                [name @ .., b'/'] => (name, true),
                name => (name, false),
            };
            let name = Template::from_bytes(name, word, from, load)?;
            tries.push(Try { name, is_directory });
        }
        let last = match last.text.strip_prefix(b"=") {
            Some(code) => match units::number(code).filter(|code| *code <= STATUS_MAX) {
                Some(code) => Last::Status(code as u16),
                None => return Err(from.error_at(last, format!("invalid code \"{last}\""))),
            },
            None => Last::Path(Template::compile(last, from, load)?),
        };
        Ok(Self { files: tries.into(), last })
    }
}

fn handle(tries: &Tries, x: &mut Exchange) -> Flow {
    let generation = x.generation.clone();
    if !generation.location(x.location).core.root().may_be_used(x) {
        return Flow::Status(500);
    }
    let mut path = x.scratch();
    let found = tries.files.iter().find_map(|file| {
        let name_start = write_path(&file.name, x, &mut path);
        leads_to(x, &path, file.is_directory).then_some((name_start, file.is_directory))
    });
    let flow = match (found, &tries.last) {
        (Some((name_start, is_directory)), _) => {
            take(x, &path[name_start..], is_directory);
            Flow::Next
        }
        (None, Last::Status(status)) => Flow::Status(*status),
        (None, Last::Path(last)) => {
            let name_start = write_path(last, x, &mut path);
            redirect(x, &path[name_start..])
        }
    };
    x.give_scratch(path);
    flow
}

/// Writes the path of a candidate. Returns where its name begins. With `alias`, a computed name
/// does not contain the part that the directory replaces.
fn write_path(name: &Template, x: &mut Exchange, path: &mut Vec<u8>) -> usize {
    let generation = x.generation.clone();
    let root = generation.location(x.location).core.root();
    path.clear();
    root.append_directory(x, path);
    let name_start = path.len();
    name.render(x, path);
    if let StandsFor::Name(location) = &root.stands_for
        && name.as_fixed().is_none()
        && let Some(replaced) = x.request.uri.get(..location.len())
        && path[name_start..].starts_with(replaced)
    {
        path.drain(name_start..name_start + replaced.len());
    }
    name_start
}

fn leads_to(x: &mut Exchange, path: &[u8], directory: bool) -> bool {
    match paths::test(x, path) {
        Ok(stat) => stat.is_directory() == directory,
        Err(failed) => {
            if !failed.is_not_found() {
                paths::log_failed(x, Level::Crit, path, &failed);
            }
            false
        }
    }
}

/// Sets the path of the request.
fn take(x: &mut Exchange, name: &[u8], is_directory: bool) {
    let generation = x.generation.clone();
    let kept = match &generation.location(x.location).core.root().stands_for {
        StandsFor::Nothing => 0,
        StandsFor::Name(location) => location.len(),
        StandsFor::Path if is_directory => return,
        StandsFor::Path => {
            x.add_uri_to_alias = true;
            0
        }
    };
    x.request.uri.truncate(kept);
    x.request.uri.extend_from_slice(name);
}

fn redirect(x: &mut Exchange, last: &[u8]) -> Flow {
    if last.starts_with(b"@") {
        return answer::to_named(x, last);
    }
    let (uri, args) = match memchr::memchr(b'?', last) {
        Some(mark) => (&last[..mark], &last[mark + 1..]),
        None => (last, &b""[..]),
    };
    Flow::Jump(Jump::Internal { uri: uri.to_vec(), args: JumpArgs::New(args.to_vec()) })
}

#[cfg(test)]
mod tests;
