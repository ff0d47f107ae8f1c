//! Looks up files by the rules of the exchange's location.

use std::io::Read as _;
use std::rc::Rc;

use net::clock;
use observe::{Errno, Level, Text};

use crate::exchange::Exchange;
use crate::files::{
    CONTENT_SIZE_MAX, COPIED_SIZE_MAX, FileLookup, FileSource, FoundFile, Links, PathError, Stat,
    Want,
};

/// Linux's numbers of errors that are detected here.
const EISDIR: i32 = 21;
const EFBIG: i32 = 27;

/// Finds a file to be sent: either its content in memory or the open file.
pub fn open(x: &mut Exchange, path: &[u8]) -> Result<FoundFile, PathError> {
    look(x, path, Want::Content)
}

/// Reads a file that belongs to the configuration, regardless of the location's rules for files
/// that it serves. A file larger than `size_max` is an error.
pub fn read(x: &Exchange, path: &[u8], size_max: u64) -> Result<Rc<[u8]>, PathError> {
    let look = FileLookup {
        path,
        want: Want::Content,
        links: Links::Follow,
        trusted: 0,
        rules: None,
        content_size_max: CONTENT_SIZE_MAX.min(size_max),
        now_ms: clock::now_ms(),
        unix_ms: clock::unix_ms(),
    };
    let found = look.find(|| x.generation.worker.of())?;
    const CALL: &str = "pread()";
    if found.stat.size > size_max {
        return Err(PathError::again(CALL, EFBIG));
    }
    match found.source {
        FileSource::Memory(content) => Ok(content),
        FileSource::File(file) => {
            let mut content = Vec::with_capacity(found.stat.size as usize);
            let read = (&*file).take(size_max).read_to_end(&mut content);
            read.map_err(|error| PathError { call: CALL, error })?;
            Ok(content.into())
        }
        FileSource::Closed => Err(PathError::again(CALL, EISDIR)),
    }
}

/// The status of the file at a path. Like nginx, opens the file if the result is to be cached.
pub fn test(x: &mut Exchange, path: &[u8]) -> Result<Stat, PathError> {
    look(x, path, Want::Stat).map(|found| found.stat)
}

/// The same for a directory, which need not be readable.
pub fn test_directory(x: &mut Exchange, path: &[u8]) -> Result<Stat, PathError> {
    look(x, path, Want::Directory).map(|found| found.stat)
}

fn look(x: &mut Exchange, path: &[u8], want: Want) -> Result<FoundFile, PathError> {
    let generation = x.generation.clone();
    let access = &generation.location(x.location).core.files;
    let (links, trusted) = match &access.links_from {
        None => (access.links, 0),
        Some(from) => trust(path, &x.render(from), access.links),
    };
    let look = FileLookup {
        path,
        want,
        links,
        trusted,
        rules: access.cache,
        content_size_max: content_size_max(x).min(access.directio.saturating_sub(1)),
        now_ms: clock::now_ms(),
        unix_ms: clock::unix_ms(),
    };
    look.find(|| generation.worker.of())
}

/// The largest content that is cheaper to send from memory than by sendfile().
pub(crate) fn content_size_max(x: &Exchange) -> u64 {
    let is_plain = x.client.tls.get().is_none();
    match x.location().core.output.sendfile && is_plain {
        true => COPIED_SIZE_MAX,
        false => CONTENT_SIZE_MAX,
    }
}

/// How many bytes at the beginning of the path are not checked for links: the length of `from`, if
/// it ends where a component of the path ends. A path that equals `from` is not checked at all.
fn trust(path: &[u8], from: &[u8], links: Links) -> (Links, usize) {
    match path.strip_prefix(from) {
        Some(_) if from.is_empty() => (links, 0),
        Some([]) => (Links::Follow, 0),
        Some([b'/', ..]) => (links, from.len()),
        Some(_) if from.ends_with(b"/") => (links, from.len() - 1),
        _ => (links, 0),
    }
}

/// Logs a file that could not be used, in nginx's words. Returns the status.
pub fn refuse(x: &Exchange, path: &[u8], failed: &PathError) -> u16 {
    let (status, level) = verdict(failed);
    if status != 404 || x.location().core.log_not_found {
        log_failed(x, level, path, failed);
    }
    status
}

pub(super) fn verdict(failed: &PathError) -> (u16, Level) {
    match failed {
        _ if failed.is_not_found() => (404, Level::Error),
        _ if failed.is_denied() || failed.is_refused_link() => (403, Level::Error),
        _ => (500, Level::Crit),
    }
}

/// `open() "/path" failed (2: No such file or directory)`
pub fn log_failed(x: &Exchange, level: Level, path: &[u8], failed: &PathError) {
    let PathError { call, error } = failed;
    x.log(level, format_args!("{call} \"{}\" failed{}", Text(path), Errno(error)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_trusted_up_to_a_component_of_the_path() {
        let refuse =
            |path: &str, from: &str| trust(path.as_bytes(), from.as_bytes(), Links::Refuse);
        assert_eq!(refuse("/a/b", ""), (Links::Refuse, 0));
        assert_eq!(refuse("/a/b", "/a"), (Links::Refuse, 2));
        assert_eq!(refuse("/a/b", "/a/"), (Links::Refuse, 2));
        assert_eq!(refuse("/ab/c", "/a"), (Links::Refuse, 0));
        assert_eq!(refuse("/a/b", "/x"), (Links::Refuse, 0));
        assert_eq!(refuse("/a/b", "/a/b"), (Links::Follow, 0));
        assert_eq!(refuse("/a/b", "/a/b/c"), (Links::Refuse, 0));
        assert_eq!(refuse("/a/b", "/"), (Links::Refuse, 0));
    }
}
