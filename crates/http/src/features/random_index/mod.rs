//! `random_index`: a path that ends with a slash is answered with a random file of that directory.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use conf::Result;
use observe::Level;
use wire::Method;

use crate::exchange::{Exchange, Flow, Jump, JumpArgs};
use crate::files::PathError;
use crate::paths;
use crate::site::LocationBuilder;

conf::directives! {
    in LOCATION;

    /// Whether a request for a directory is answered with a random file in it.
    random_index: bool = "off",
}

/// Adds the content handler if `random_index` is on.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.random_index {
        location.content(handle);
    }
    Ok(())
}

fn handle(x: &mut Exchange) -> Flow {
    let is_read = matches!(x.request.head.method, Method::Get | Method::Head | Method::Post);
    if !is_read || !x.request.uri.ends_with(b"/") {
        return Flow::Next;
    }
    let mut path = x.scratch();
    let names = match x.append_path(&mut path) {
        true => names(x, paths::without_slash(&path)),
        false => Err(500),
    };
    x.give_scratch(path);
    match names {
        Ok(names) if names.is_empty() => Flow::Next,
        Ok(names) => {
            let uri = [&x.request.uri[..], &names[any_below(names.len())]].concat();
            Flow::Jump(Jump::Internal { uri, args: JumpArgs::Kept })
        }
        Err(status) => Flow::Status(status),
    }
}

/// The names of the files in a directory; links are followed.
fn names(x: &Exchange, directory: &[u8]) -> Result<Vec<Vec<u8>>, u16> {
    let mut names = Vec::new();
    paths::list(x, directory, |entry| {
        let kind = entry.file_type();
        let is_file = match kind {
            Ok(kind) if !kind.is_symlink() => kind.is_file(),
            _ => match fs::metadata(entry.path()) {
                Ok(target) => target.is_file(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    let path = entry.path();
                    let failed = PathError { call: "stat()", error };
                    paths::log_failed(x, Level::Crit, path.as_os_str().as_bytes(), &failed);
                    return Err(500);
                }
            },
        };
        if is_file {
            names.push(entry.file_name().as_bytes().to_vec());
        }
        Ok(())
    })?;
    Ok(names)
}

/// A uniformly random number below `count`.
fn any_below(count: usize) -> usize {
    // The keys of a new hasher are random enough.
    let random = RandomState::new().build_hasher().finish();
    ((u128::from(random) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
