//! A stored reply with another head: a 304 has changed its fields.
//!
//! The head has no room to grow, so that the body is copied into a new file, which takes the place
//! of the old one. A small file is written at once, so that the next request finds it; a large one
//! in the background, while the attempt's fill keeps others from fetching it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use cache::checksum::Checksum;
use cache::file_head::CHECKSUM_AT;
use cache::{CacheKey, FileFacts, Freshness, KeyDigest, PurgeSubject};
use net::file::{self, Stat};
use observe::{Errno, Level};

use super::attempt::{CacheAttempt, now_s};
use super::cached::CachedReply;
use super::fill;
use super::path::CacheStore;
use crate::exchange::{BackgroundTasks, Exchange};
use crate::files::TempFile;

/// The largest body that is copied before the client is answered.
const AT_ONCE_MAX: u64 = 256 * 1024;
/// The bytes that are copied at once.
const PIECE: usize = 64 * 1024;

/// The new file.
struct HeadRewrite {
    store: Arc<CacheStore>,
    digest: KeyDigest,
    key: CacheKey,
    /// Values of fields with tags.
    tags: Vec<u8>,
    /// The newest purge when the request began.
    begun_ns: u64,
    path: PathBuf,
    /// The file whose body is copied.
    stat: Stat,
    body_start: u64,
    /// What precedes the body.
    head: Vec<u8>,
    /// Of the head.
    checksum: Checksum,
}

impl CacheAttempt {
    /// Gives the file of a stored reply the head that was parsed last.
    pub(super) fn rewrite(&mut self, x: &mut Exchange, stale: &CachedReply, freshness: &Freshness) {
        let stored = stale.stored_head();
        let fixed = fill::begun(x, &self.key, freshness, stale.variant, stored.len());
        let Some(mut head) = fixed else { return };
        let contents = head.len();
        self.key.write_line(&mut head);
        head.extend_from_slice(stored);
        let mut checksum = Checksum::default();
        checksum.add(&head[contents..]);
        let rewrite = HeadRewrite {
            store: self.store.clone(),
            digest: self.digest,
            key: self.key.clone(),
            tags: self.store.tags.values_of(&x.backends.head, &x.backends.head_text),
            begun_ns: self.begun_ns,
            path: stale.path.clone(),
            stat: stale.stat(),
            body_start: stale.body_start(),
            head,
            checksum,
        };
        let (log, fill) = (x.aside(), self.fill.take());
        let ended = move |ended: Result<(), (&str, PathBuf, io::Error)>| {
            if let Err((call, path, error)) = ended {
                let (path, errno) = (path.display(), Errno(&error));
                log.write(Level::Crit, format_args!("{call} \"{path}\" failed{errno}"));
            }
            drop(fill);
        };
        if stale.body_bytes() <= AT_ONCE_MAX {
            return ended(rewrite.run());
        }
        let generation: Rc<_> = x.generation.clone();
        // If there are too many tasks, the reply stays expired, and is revalidated again.
        let _ = BackgroundTasks::start(&generation, async move {
            ended(net::offload(move || rewrite.run()).await);
        });
    }
}

impl HeadRewrite {
    fn run(self) -> Result<(), (&'static str, PathBuf, io::Error)> {
        let old = match File::open(&self.path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(("open()", self.path, error)),
        };
        if file::stat_open(&old).ok() != Some(self.stat) {
            // Another reply has taken its place.
            return Ok(());
        }
        let Self { store, digest, key, tags, begun_ns, path, stat, body_start, head, checksum } =
            self;
        let mut new = TempFile::beside(&path).map_err(|(path, error)| ("open()", path, error))?;
        let copied = copy(&old, body_start..stat.size, &mut new, &head, checksum);
        let failed = |error| ("copying", new.path().to_owned(), error);
        let (facts, modified_ns) = copied.map_err(failed)?;
        let subject = PurgeSubject::new(&key, &tags);
        let Some(earliest_ns) = store.zone.admit(&subject, begun_ns, modified_ns) else {
            return Ok(());
        };
        if modified_ns < earliest_ns {
            new.set_modified(earliest_ns).map_err(failed)?;
        }
        new.move_to(&path, fill::MODE).map_err(|(call, error)| (call, path, error))?;
        store.zone.store(&digest, facts, now_s());
        Ok(())
    }
}

fn copy(
    old: &File,
    body: std::ops::Range<u64>,
    new: &mut TempFile,
    head: &[u8],
    mut checksum: Checksum,
) -> io::Result<(FileFacts, u64)> {
    new.append(head)?;
    let mut piece = vec![0; PIECE];
    let mut at = body.start;
    while at < body.end {
        let count = (body.end - at).min(PIECE as u64) as usize;
        old.read_exact_at(&mut piece[..count], at)?;
        checksum.add(&piece[..count]);
        new.append(&piece[..count])?;
        at += count as u64;
    }
    new.write_at(&checksum.value().to_ne_bytes(), CHECKSUM_AT)?;
    new.facts()
}
