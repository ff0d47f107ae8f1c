//! `aio` and `directio`: threads read files, so that a slow disk does not block the worker.
//!
//! Contents that are kept in memory are not read at all. Linux's asynchronous I/O (`aio on`) works
//! with `directio` only; here threads are used instead. Every worker has one pool of threads, even
//! if several are named.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use conf::{Directive, Load, Result, Size, Template, Value, Word, units};
use net::file;
use observe::{Errno, Level, Text};

use crate::exchange::{Body, Exchange, Filtered};
use crate::files::{ReadByThreads, ReadMode};
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether threads read files, so that a slow disk does not hold up a worker. `on` does so only
    /// for files above `directio`.
    ///
    /// Syntax: on | off | threads[=POOL]
    ///
    /// ```nginx
    /// aio threads;
    /// ```
    aio: Aio = "off",
    /// Whether threads write temporary files.
    ///
    /// Differs: checked, but has no effect.
    aio_write: bool = "off",
    /// Files of at least this size are read by threads, bypassing the kernel's cache.
    ///
    /// Syntax: SIZE | off
    ///
    /// ```nginx
    /// directio 8m;
    /// ```
    directio: Directio = "off",
    /// The alignment of reads that bypass the kernel's cache (`directio`).
    ///
    /// Differs: less than 4k counts as 4k.
    directio_alignment: Size = "512",
}

/// The names of `thread_pool` lines. `default` exists without one.
#[derive(Default)]
pub struct ThreadPools(pub HashSet<Box<[u8]>>);

/// Installs reading by threads if `aio` or `directio` demands it.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let _ = conf.aio_write;
    if let Aio::Threads(Some(pool)) = &conf.aio {
        pool.check(location.load)?;
    }
    location.core.files.directio = conf.directio.0;
    let threads = matches!(conf.aio, Aio::Threads(_));
    if threads || conf.directio.0 < OFF {
        let settings = AioSettings {
            threads,
            directio: conf.directio.0,
            alignment: conf.directio_alignment.0.min(ALIGNMENT_MAX).next_power_of_two(),
        };
        location.filter(move |x| filter(settings, x));
    }
    Ok(())
}

#[derive(Clone)]
enum Aio {
    Off,
    On,
    Threads(Option<Pool>),
}

/// The name of a pool.
#[derive(Clone)]
struct Pool {
    name: Template,
    from: Directive,
}

/// A size in bytes. `off` is larger than any file.
#[derive(Clone, Copy)]
struct Directio(u64);

const OFF: u64 = u64::MAX;
/// The largest alignment. A larger one would only cost memory.
const ALIGNMENT_MAX: u64 = 1 << 20;

impl Value for Aio {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        match &*word.text {
            b"off" => Ok(Self::Off),
            b"on" => Ok(Self::On),
            b"threads" => Ok(Self::Threads(None)),
            text => match text.strip_prefix(b"threads=") {
                Some(name) => Pool::named(name, word, from, load).map(|p| Self::Threads(Some(p))),
                None => Err(from.refuse("invalid value").marked(word.span)),
            },
        }
    }
}

impl Value for Directio {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"off" => Ok(Self(OFF)),
            text => match units::offset(text) {
                Some(size) => Ok(Self(size)),
                None => Err(from.refuse("invalid value").marked(from.arg(0).span)),
            },
        }
    }
}

impl Pool {
    fn named(name: &[u8], word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = Template::from_bytes(name, word, from, load)?;
        Ok(Self { name, from: from.clone() })
    }

    /// Rejects an unknown pool, after the whole configuration was read.
    fn check(&self, load: &mut Load<'_>) -> Result<()> {
        let Some(name) = self.name.as_fixed() else { return Ok(()) };
        let known = &load.registry.of::<ThreadPools>().0;
        if name == b"default" || known.contains(name) {
            return Ok(());
        }
        Err(self.from.error(format!("unknown thread pool \"{}\"", Text(name))))
    }
}

#[derive(Clone, Copy)]
struct AioSettings {
    threads: bool,
    directio: u64,
    alignment: u64,
}

fn filter(settings: AioSettings, x: &mut Exchange) -> Filtered {
    let direct = match &x.reply.body {
        _ if x.request.header_only => return Filtered::Pass,
        Body::File(slice) if slice.end >= settings.directio => file::open_direct(&slice.file),
        Body::File(_) | Body::Stream(_) if settings.threads => {
            x.reply.filter_body(ReadByThreads::new(ReadMode::Cached));
            return Filtered::Pass;
        }
        _ => return Filtered::Pass,
    };
    let reading = direct.map(|file| ReadMode::Direct(file, settings.alignment));
    let reading = reading.unwrap_or_else(|error| direct_failed(x, &error));
    x.reply.filter_body(ReadByThreads::new(reading));
    Filtered::Pass
}

/// Logs that the file system does not support direct I/O. Threads read into the cache instead.
fn direct_failed(x: &mut Exchange, error: &io::Error) -> ReadMode {
    let mut path = x.scratch();
    if x.append_path(&mut path) {
        let (path, reason) = (Text(&path), Errno(error));
        x.log(Level::Alert, format_args!("fcntl(O_DIRECT) \"{path}\" failed{reason}"));
    }
    x.give_scratch(path);
    ReadMode::Cached
}

#[cfg(test)]
mod tests;
