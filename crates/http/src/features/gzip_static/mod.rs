//! `gzip_static`: answers with the file whose name has `.gz` appended, instead of the requested
//! one.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use observe::{Level, Text};
use wire::Method;

use crate::exchange::{Exchange, Flow};
use crate::features::{gzip_clients, static_file};
use crate::files::FoundFile;
use crate::paths;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether the file NAME.gz is sent instead of NAME if it exists: to clients that accept gzip
    /// (`on`), or to all (`always`).
    ///
    /// ```nginx
    /// gzip_static on;
    /// ```
    gzip_static: GzipStatic = "off",
}

conf::words! {
    /// Who is sent compressed files.
    pub enum GzipStatic {
        /// Nobody.
        Off = "off",
        /// Who accepts gzip.
        On = "on",
        /// Everybody.
        Always = "always",
    }
}

/// Adds a content handler that looks for a compressed file before the plain one.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    match conf.gzip_static {
        GzipStatic::Off => {}
        GzipStatic::On => location.content(|x| serve(false, x)),
        GzipStatic::Always => location.content(|x| serve(true, x)),
    }
    Ok(())
}

fn serve(always: bool, x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) || x.request.uri.ends_with(b"/")
    {
        return Flow::Next;
    }
    let allowed = always || gzip_clients::decide(x);
    // The field `Vary` depends on whether there is a compressed file.
    if !allowed && !x.location().core.gzip_vary {
        return Flow::Next;
    }
    let mut path = x.scratch();
    let flow = if x.append_path(&mut path) {
        path.extend_from_slice(b".gz");
        match find(x, &path) {
            Some(found) => {
                x.varies |= !always;
                if allowed { send(x, &path, found) } else { Flow::Next }
            }
            None => Flow::Next,
        }
    } else {
        Flow::Status(500)
    };
    x.give_scratch(path);
    flow
}

/// Finds the file. Errors count as missing, and are logged unless it is missing.
fn find(x: &mut Exchange, path: &[u8]) -> Option<FoundFile> {
    match paths::open(x, path) {
        Ok(found) => Some(found),
        Err(failed) => {
            if !failed.is_not_found() {
                paths::refuse(x, path, &failed);
            }
            None
        }
    }
}

fn send(x: &mut Exchange, path: &[u8], found: FoundFile) -> Flow {
    if found.stat.is_directory() {
        return Flow::Next;
    }
    if !found.stat.is_regular() {
        x.log(Level::Crit, format_args!("\"{}\" is not a regular file", Text(path)));
        return Flow::Status(404);
    }
    let flow = static_file::answer(x, found);
    x.reply.fields.append(b"Content-Encoding", b"gzip");
    flow
}
