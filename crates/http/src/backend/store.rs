//! `store`: replies that are kept as files.
//!
//! A reply goes to a temporary file while it goes to the client. Once all of it is there the file
//! is moved to its place, so that nobody finds half of one; a client that leaves does not change
//! that.

use std::future::poll_fn;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use conf::bytes_path;
use observe::{Errno, Level, Text};

use super::Conf;
use super::values::Store;
use crate::exchange::{
    Body, BodyError, BodyLog, BodyStream, Chunk, DetachedLog, Exchange, FileSlice,
};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// Bytes copied at once from a file that a reply was buffered in.
const COPY_SIZE: u64 = 64 * 1024;

/// Bytes of a file that are copied before the client is sent them.
const COPIED_MAX: u64 = 256 * 1024;

/// A file that is to be.
struct Keeping {
    file: TempFile,
    place: PathBuf,
    mode: u32,
    /// `Last-Modified`, if it is a time.
    modified: Option<i64>,
    log: Rc<DetachedLog>,
}

/// The body, which is stored as well, if that is wanted of this reply.
pub(super) fn store(x: &mut Exchange, conf: &Conf, temp_path: &TempPath, body: Body) -> Body {
    if matches!(conf.store, Store::Off) || x.reply.status != 200 || x.request.header_only {
        return body;
    }
    let action = std::mem::replace(&mut x.action, "reading upstream");
    let keeping = Keeping::begin(x, conf, temp_path);
    x.action = action;
    let Some(keeping) = keeping else { return body };
    match body {
        Body::Stream(source) => Body::Stream(Box::new(Storing::new(source, keeping))),
        Body::Bytes(bytes) => {
            let kept = keeping.after(|file| file.append(bytes.as_ref()));
            kept.into_iter().for_each(Keeping::end);
            Body::Bytes(bytes)
        }
        other => {
            keeping.end();
            other
        }
    }
}

impl Keeping {
    /// What goes wrong is logged, and the reply not stored.
    fn begin(x: &mut Exchange, conf: &Conf, temp_path: &TempPath) -> Option<Self> {
        let mut place = Vec::new();
        match &conf.store {
            Store::Off => return None,
            Store::On => x.append_path(&mut place).then_some(())?,
            Store::At(template) => template.render(x, &mut place),
        }
        if place.is_empty() {
            return None;
        }
        match temp_path.create(TempFileEnd::Deleted) {
            Ok(file) => Some(Self {
                file,
                place: bytes_path(&place).to_owned(),
                mode: conf.store_access.0,
                modified: x.reply.last_modified,
                log: x.aside(),
            }),
            Err((path, error)) => {
                let (path, errno) = (path.display(), Errno(&error));
                x.log(Level::Crit, format_args!("open() \"{path}\" failed{errno}"));
                None
            }
        }
    }

    /// Writes; `None`, with a line in the log, if that failed.
    fn after(mut self, write: impl FnOnce(&mut TempFile) -> io::Result<()>) -> Option<Self> {
        match write(&mut self.file) {
            Ok(()) => Some(self),
            Err(error) => {
                self.complain("pwrite()", &error);
                None
            }
        }
    }

    fn put(self, chunk: &Chunk) -> Option<Self> {
        match chunk {
            Chunk::Bytes(bytes) => self.after(|file| file.append(bytes.as_ref())),
            Chunk::File(slice) => self.after(|file| copy(slice, file)),
            _ => Some(self),
        }
    }

    /// All of the reply is there.
    fn end(self) {
        if let Err((call, error)) = self.file.prepare(self.mode, self.modified) {
            return self.complain(call, &error);
        }
        let Self { file, place, mode, log, .. } = self;
        let from = file.path().to_owned();
        let Err((call, error)) = file.move_to(&place, mode) else { return };
        let (from, place, errno) =
            (from.display(), Text(place.as_os_str().as_bytes()), Errno(&error));
        let what = match call {
            "rename()" => format!("{call} \"{from}\" to"),
            _ => call.to_owned(),
        };
        log.write(Level::Crit, format_args!("{what} \"{place}\" failed{errno}"));
    }

    fn complain(&self, call: &str, error: &io::Error) {
        let (path, errno) = (self.file.path().display(), Errno(error));
        self.log.write(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
    }
}

fn copy(slice: &FileSlice, file: &mut TempFile) -> io::Result<()> {
    let mut buffer = vec![0; slice.len().min(COPY_SIZE) as usize];
    let mut start = slice.start;
    while start < slice.end {
        let count = (slice.end - start).min(buffer.len() as u64) as usize;
        slice.file.read_exact_at(&mut buffer[..count], start)?;
        file.append(&buffer[..count])?;
        start += count as u64;
        net::spend(count);
    }
    Ok(())
}

/// A body that is stored as it passes. It is one piece ahead of the client where it can be, so that
/// the file is there before the client has seen the end.
struct Storing {
    /// `None` only when this is dropped.
    pulling: Option<Pulling>,
    next: Option<Result<Option<Chunk>, BodyError>>,
}

struct Pulling {
    source: Box<dyn BodyStream>,
    keeping: Option<Keeping>,
    /// What follows of the file that is being copied.
    rest: Option<FileSlice>,
    /// Whether the source has ended, one way or the other.
    is_over: bool,
}

impl Storing {
    fn new(source: Box<dyn BodyStream>, keeping: Keeping) -> Self {
        let pulling = Pulling { source, keeping: Some(keeping), rest: None, is_over: false };
        Self { pulling: Some(pulling), next: None }
    }
}

impl Pulling {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        let pulled = match self.rest.take() {
            Some(rest) => Ok(Some(Chunk::File(rest))),
            None => ready!(self.source.poll_chunk(cx, log)),
        };
        let pulled = pulled.map(|chunk| chunk.map(|chunk| self.limit(chunk)));
        self.is_over = !matches!(pulled, Ok(Some(_)));
        self.keeping = match (self.keeping.take(), &pulled) {
            (Some(keeping), Ok(Some(chunk))) => keeping.put(chunk),
            (Some(keeping), Ok(None)) => {
                keeping.end();
                None
            }
            _ => None,
        };
        Poll::Ready(pulled)
    }

    /// A piece that is copied at once: the beginning of a long one.
    fn limit(&mut self, chunk: Chunk) -> Chunk {
        match chunk {
            Chunk::File(slice) if slice.len() > COPIED_MAX => {
                self.rest = Some(slice.part(COPIED_MAX..slice.len()));
                Chunk::File(slice.part(0..COPIED_MAX))
            }
            chunk => chunk,
        }
    }

    /// The rest, which nobody else wants.
    async fn drain(mut self) {
        while let Some(keeping) = &self.keeping {
            let mut log = keeping.log.clone();
            let _ = poll_fn(|cx| {
                ready!(net::poll_share(cx));
                self.poll(cx, &mut log)
            })
            .await;
        }
    }
}

impl BodyStream for Storing {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let Some(pulling) = &mut self.pulling else { return Poll::Ready(Ok(None)) };
        let pulled = match self.next.take() {
            Some(next) => next,
            None => ready!(pulling.poll(cx, log)),
        };
        if matches!(pulled, Ok(Some(_)))
            && let Poll::Ready(next) = pulling.poll(cx, log)
        {
            self.next = Some(next);
        }
        Poll::Ready(pulled)
    }

    fn fill(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        if let Some(pulling) = self.pulling.as_mut().filter(|pulling| !pulling.is_over) {
            pulling.source.fill(cx, log);
        }
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        if let Some(pulling) = self.pulling.take().filter(|pulling| pulling.keeping.is_some()) {
            net::spawn_if_running(pulling.drain());
        }
    }
}
