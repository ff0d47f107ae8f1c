//! Files that threads read, so that a slow disk does not block the worker (`aio`, `directio`).
//!
//! Without `directio`, a thread only reads the next window of the file into the kernel's cache,
//! unless it is there already; the window is sent like any part of a file. With `directio`, a
//! thread reads the bytes to send. One window is read at a time, when the last one was written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use net::Offloaded;
use net::file::is_in_memory;

use crate::exchange::{
    BodyError, BodyFilter, Bytes, Chunk, Exchange, FileSlice, PieceQueue, TimedPhase,
};

/// The size of a window that is read into the kernel's cache.
const WINDOW_BYTES: u64 = 512 * 1024;
/// The size of a window that is read with `directio`.
const DIRECT_BYTES: u64 = 64 * 1024;
/// The least alignment of reads with `directio`. No disk requires more.
const ALIGNMENT_MIN: u64 = 4096;
/// The size of a thread's buffer for reading into the kernel's cache.
const SCRATCH_BYTES: usize = 64 * 1024;

pub enum ReadMode {
    /// Into the kernel's cache.
    Cached,
    /// Bypassing it, with a descriptor opened for that, and this alignment in bytes.
    Direct(File, u64),
}

/// A body filter that lets threads read files.
pub struct ReadByThreads {
    reading: Shared,
    /// The rest of the current file.
    rest: Option<FileSlice>,
    work: Option<Work>,
}

enum Shared {
    Cached,
    Direct(Arc<File>, u64),
}

enum Work {
    /// Reading a window into the kernel's cache.
    Fetch(FileSlice, Offloaded<io::Result<()>>),
    /// Reading the bytes to send.
    Read(Offloaded<io::Result<Vec<u8>>>),
}

impl BodyFilter for ReadByThreads {
    fn push(
        &mut self,
        _: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        match piece {
            Some(Chunk::File(slice)) => self.rest = Some(slice),
            other => out.pass(other),
        }
        Ok(())
    }

    fn poll_rest(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
        out: &mut PieceQueue,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            if let Some(work) = &mut self.work {
                x.waits_for(TimedPhase::Files);
                let chunk = ready!(work.poll(cx));
                self.work = None;
                return Poll::Ready(chunk.map(|chunk| out.put(chunk)));
            }
            let Some(slice) = self.rest.take().filter(|slice| !slice.is_empty()) else {
                return Poll::Ready(Ok(()));
            };
            if let Some(chunk) = self.begin(slice)? {
                out.put(chunk);
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn reads_bytes(&self) -> bool {
        false
    }
}

impl ReadByThreads {
    pub(crate) fn new(reading: ReadMode) -> Self {
        let reading = match reading {
            ReadMode::Cached => Shared::Cached,
            ReadMode::Direct(file, alignment) => {
                Shared::Direct(Arc::new(file), alignment.max(ALIGNMENT_MIN))
            }
        };
        Self { reading, rest: None, work: None }
    }

    /// Takes the next window off the slice. Returns it if it is cached; otherwise a thread begins
    /// to read it.
    fn begin(&mut self, slice: FileSlice) -> Result<Option<Chunk>, BodyError> {
        let bytes = match &self.reading {
            Shared::Cached => WINDOW_BYTES,
            Shared::Direct(..) => DIRECT_BYTES,
        };
        let end = slice.end.min((slice.start / bytes + 1) * bytes);
        let window = FileSlice { end, ..slice.clone() };
        self.rest = Some(FileSlice { start: end, ..slice });
        self.work = Some(match &self.reading {
            Shared::Cached if is_ready(&window) => return Ok(Some(Chunk::File(window))),
            Shared::Cached => {
                let file = window.file.try_clone().map_err(BodyError::Io)?;
                let (start, end) = (window.start, window.end);
                Work::Fetch(window, net::offload(move || fetch(&file, start, end)))
            }
            Shared::Direct(file, alignment) => {
                let (file, alignment) = (file.clone(), *alignment);
                let (start, end) = (window.start, window.end);
                Work::Read(net::offload(move || read_aligned(&file, start, end, alignment)))
            }
        });
        Ok(None)
    }
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Chunk, BodyError>> {
        Poll::Ready(match self {
            Self::Fetch(window, done) => match ready!(Pin::new(done).poll(cx)) {
                Ok(()) => Ok(Chunk::File(window.clone())),
                Err(error) => Err(BodyError::Io(error)),
            },
            Self::Read(done) => match ready!(Pin::new(done).poll(cx)) {
                Ok(bytes) => Ok(Chunk::Bytes(Bytes::Owned(bytes))),
                Err(error) => Err(BodyError::Io(error)),
            },
        })
    }
}

/// Whether both ends of a window are in the kernel's cache; the kernel reads ahead between them.
fn is_ready(window: &FileSlice) -> bool {
    is_in_memory(&window.file, window.start) && is_in_memory(&window.file, window.end - 1)
}

/// Reads a range into the kernel's cache.
fn fetch(file: &File, mut start: u64, end: u64) -> io::Result<()> {
    let mut scratch = vec![0; SCRATCH_BYTES];
    while start < end {
        let room = (end - start).min(SCRATCH_BYTES as u64) as usize;
        match file.read_at(&mut scratch[..room], start) {
            // Sending the window reports that the file is too short.
            Ok(0) => break,
            Ok(read) => start += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads an unaligned range by reading the blocks around it.
fn read_aligned(file: &File, start: u64, end: u64, alignment: u64) -> io::Result<Vec<u8>> {
    let first = start / alignment * alignment;
    let length = ((end - first).div_ceil(alignment) * alignment) as usize;
    let mut memory = vec![0; length + alignment as usize];
    let offset = memory.as_ptr().align_offset(alignment as usize);
    let blocks = &mut memory[offset..offset + length];
    let (from, to) = ((start - first) as usize, (end - first) as usize);
    let mut filled = 0;
    while filled < to {
        match file.read_at(&mut blocks[filled..], first + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(blocks[from..to].to_vec())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;
    use crate::exchange::Body;
    use crate::testing::TestedFilter;

    /// A deleted file with known bytes.
    fn file(bytes: usize) -> (Rc<File>, Vec<u8>) {
        let content: Vec<u8> = (0..bytes).map(|at| (at * 7 / 3) as u8).collect();
        let file = File::open(::testing::Folder::new().write("file", &content)).unwrap();
        (Rc::new(file), content)
    }

    /// The bytes of a range, and how many of its pieces were in memory.
    fn read(slice: FileSlice, reading: ReadMode) -> (Result<Vec<u8>, BodyError>, usize) {
        let mut body = TestedFilter::new(Body::File(slice), ReadByThreads::new(reading));
        let drained = async {
            let (mut all, mut pieces) = (Vec::new(), 0);
            loop {
                match poll_fn(|cx| body.poll_with(cx)).await {
                    Ok(Some(Chunk::Bytes(bytes))) => {
                        all.extend_from_slice(bytes.as_ref());
                        pieces += 1;
                    }
                    Ok(Some(Chunk::File(slice))) => {
                        let start = all.len();
                        all.resize(start + slice.len() as usize, 0);
                        slice.file.read_exact_at(&mut all[start..], slice.start).unwrap();
                    }
                    Ok(Some(_)) => unreachable!("neither bytes nor a file"),
                    Ok(None) => return (Ok(all), pieces),
                    Err(error) => return (Err(error), pieces),
                }
            }
        };
        net::run(drained).unwrap()
    }

    #[test]
    fn every_range_is_read_completely() {
        const SIZE: usize = 1_300_000;
        let (file, content) = file(SIZE);
        let ends = [(0, SIZE), (0, 1), (5, 5), (SIZE - 1, SIZE), (65_535, 65_537), (1, 700_001)];
        for (start, end) in ends {
            let slice = || FileSlice { file: file.clone(), start: start as u64, end: end as u64 };
            let (cached, pieces) = read(slice(), ReadMode::Cached);
            assert!(cached.unwrap() == content[start..end] && pieces == 0, "{start} to {end}");
            let direct = ReadMode::Direct(file.try_clone().unwrap(), 512);
            let (direct, _) = read(slice(), direct);
            assert!(direct.unwrap() == content[start..end], "{start} to {end}");
        }
    }

    #[test]
    fn direct_reads_bypass_the_cache_if_supported() {
        let (file, content) = file(200_001);
        let Ok(direct) = net::file::open_direct(&file) else { return };
        let slice = FileSlice { file: file.clone(), start: 100, end: 200_001 };
        let (bytes, pieces) = read(slice, ReadMode::Direct(direct, 512));
        assert!(bytes.unwrap() == content[100..] && pieces == 4);
    }

    #[test]
    fn a_request_whose_file_is_read_by_a_thread_waits_for_that() {
        let (file, _) = file(200_001);
        let direct = ReadMode::Direct(file.try_clone().unwrap(), 512);
        let slice = FileSlice { file: file.clone(), start: 0, end: 200_001 };
        let mut body = TestedFilter::new(Body::File(slice), ReadByThreads::new(direct));
        net::run(async {
            body.x.time_waits();
            poll_fn(|cx| Poll::Ready(body.poll_with(cx).is_pending())).await;
            assert_eq!(body.x.next_wait(), TimedPhase::Files);
        })
        .unwrap();
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let (file, content) = file(100_000);
        let slice = || FileSlice { file: file.clone(), start: 0, end: 200_000 };
        let direct = ReadMode::Direct(file.try_clone().unwrap(), 4096);
        let (broken, pieces) = read(slice(), direct);
        assert!(matches!(broken, Err(BodyError::Io(_))));
        assert_eq!(pieces, content.len() / DIRECT_BYTES as usize);
    }
}
