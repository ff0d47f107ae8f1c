//! The bytes to write next: text, and inside it at most one piece of a body that is too large to
//! copy.
//!
//! ```text
//! text[..cut]  large  text[cut..]
//! ```
//!
//! One system call writes all of it, except that a range of a file needs a call of its own.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use net::{Stream, buffers};

use crate::exchange::{Bytes, FileSlice};

/// Pieces up to this size are copied into the text, which is cheaper than a slice of their own.
const COPIED_MAX: usize = 2048;

/// Bytes on their way out.
pub(super) struct Batch {
    text: Vec<u8>,
    cut: usize,
    large: Large,
    /// How much of the text has been written.
    written: usize,
}

/// A piece that is not copied.
#[derive(Default)]
enum Large {
    #[default]
    None,
    /// Bytes, and how many of them have been written.
    Bytes(Bytes, usize),
    File(FileSlice),
}

#[derive(Clone, Copy)]
pub(super) struct WriteLimits {
    /// The most bytes to write.
    pub(super) most: usize,
    /// Whether the kernel holds text back until the file that follows it is sent.
    pub(super) nopush: bool,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { text: Vec::new(), cut: 0, large: Large::None, written: 0 }
    }

    /// The text, with room for more.
    pub(super) fn text(&mut self) -> &mut Vec<u8> {
        if self.text.capacity() == 0 {
            self.text = buffers::lend();
        }
        &mut self.text
    }

    /// Whether a piece of this length can be added before anything is written.
    pub(super) fn takes(&self, length: usize) -> bool {
        matches!(self.large, Large::None) && self.text.len() + length.min(COPIED_MAX) < self.limit()
    }

    /// Whether it contains a piece that is not copied.
    pub(super) fn has_large(&self) -> bool {
        !matches!(self.large, Large::None)
    }

    /// The most text to gather.
    fn limit(&self) -> usize {
        buffers::BUFFER_SIZE
    }

    /// Adds a piece. Returns it if it was copied.
    pub(super) fn push(&mut self, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= COPIED_MAX {
            self.text().extend_from_slice(bytes.as_ref());
            return Some(bytes);
        }
        self.put(Large::Bytes(bytes, 0));
        None
    }

    pub(super) fn push_file(&mut self, slice: FileSlice) {
        self.put(Large::File(slice));
    }

    fn put(&mut self, large: Large) {
        debug_assert!(matches!(self.large, Large::None), "one large piece at a time");
        self.cut = self.text.len();
        self.large = large;
    }

    /// Shrinks the memory to what the unwritten bytes need, because nothing can be written now.
    pub(super) fn shrink(&mut self) {
        if self.text.capacity() < buffers::BUFFER_SIZE {
            return;
        }
        let rest = self.text[self.written..].to_vec();
        buffers::give_back(std::mem::replace(&mut self.text, rest));
        self.cut = self.cut.saturating_sub(self.written);
        self.written = 0;
    }

    /// Releases the memory, because nothing more is written.
    pub(super) fn release(&mut self) {
        if self.text.capacity() > 0 {
            buffers::give_back(std::mem::take(&mut self.text));
        }
        self.large = Large::None;
    }

    /// The number of unwritten bytes.
    pub(super) fn len(&self) -> u64 {
        let large = match &self.large {
            Large::None => 0,
            Large::Bytes(bytes, written) => (bytes.len() - written) as u64,
            Large::File(slice) => slice.len(),
        };
        (self.text.len() - self.written) as u64 + large
    }

    /// Empties a batch that is completely written, and returns its bytes.
    pub(super) fn clear(&mut self) -> Option<Bytes> {
        if self.text.capacity() < buffers::BUFFER_SIZE {
            self.text = Vec::new();
        }
        self.text.clear();
        self.cut = 0;
        self.written = 0;
        match std::mem::take(&mut self.large) {
            Large::Bytes(bytes, _) => Some(bytes),
            Large::None | Large::File(_) => None,
        }
    }

    /// Writes part of the batch. Errors come with the name of the system call.
    pub(super) fn poll_write(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        manner: WriteLimits,
    ) -> Poll<Result<usize, (&'static str, io::Error)>> {
        if let Large::File(slice) = &mut self.large
            && !slice.is_empty()
        {
            if self.written < self.cut {
                return self.poll_write_head(stream, cx, manner);
            }
            let count = usize::try_from(slice.len()).unwrap_or(usize::MAX).min(manner.most);
            let file = slice.file.clone();
            let sent = ready!(stream.poll_sendfile(cx, file.as_fd(), &mut slice.start, count));
            return Poll::Ready(match sent {
                Ok(0) => Err(("sendfile()", io::ErrorKind::UnexpectedEof.into())),
                Ok(sent) => Ok(sent),
                Err(error) => Err(("sendfile()", error)),
            });
        }
        self.poll_write_all(stream, cx, manner.most).map_err(|error| ("writev()", error))
    }

    /// Writes the text before a file.
    fn poll_write_head(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        manner: WriteLimits,
    ) -> Poll<Result<usize, (&'static str, io::Error)>> {
        let head = cut_off(&self.text[self.written..self.cut], &mut { manner.most });
        let written = if manner.nopush {
            stream.poll_write_more(cx, head)
        } else {
            stream.poll_write(cx, &[IoSlice::new(head)])
        };
        let written = ready!(written).map_err(|error| ("send()", error))?;
        self.written += written;
        Poll::Ready(Ok(written))
    }

    fn poll_write_all(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        mut most: usize,
    ) -> Poll<io::Result<usize>> {
        if let Large::None = self.large {
            let text = cut_off(&self.text[self.written..], &mut most);
            let count = ready!(stream.poll_write(cx, &[IoSlice::new(text)]))?;
            self.written += count;
            return Poll::Ready(Ok(count));
        }
        let large = match &self.large {
            Large::Bytes(bytes, written) => &bytes.as_ref()[*written..],
            Large::None | Large::File(_) => &[],
        };
        let (before, after) = self.text.split_at(self.cut.max(self.written));
        let before = &before[self.written..];
        let parts = [before, large, after].map(|part| IoSlice::new(cut_off(part, &mut most)));
        let first = parts.iter().position(|part| !part.is_empty()).unwrap_or(0);
        let end = parts.iter().rposition(|part| !part.is_empty()).map_or(1, |last| last + 1);
        let count = ready!(stream.poll_write(cx, &parts[first..end]))?;
        self.advance(count);
        Poll::Ready(Ok(count))
    }

    fn advance(&mut self, count: usize) {
        let before = count.min(self.cut.saturating_sub(self.written));
        self.written += before;
        let mut rest = count - before;
        if let Large::Bytes(bytes, written) = &mut self.large {
            let of_large = rest.min(bytes.len() - *written);
            *written += of_large;
            rest -= of_large;
        }
        self.written += rest;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.release();
    }
}

/// The beginning of `part`, up to the limit, which it reduces by that length.
fn cut_off<'p>(part: &'p [u8], most: &mut usize) -> &'p [u8] {
    let part = &part[..part.len().min(*most)];
    *most -= part.len();
    part
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_shrunk_batch_writes_the_same_bytes() {
        for most in 1..20 {
            let (near, mut far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            let mut stream = Stream::new(near.into());
            let large: Vec<u8> = (0..=255).cycle().take(COPIED_MAX + 1).collect();
            let mut batch = Batch::new();
            batch.text().extend_from_slice(b"before");
            batch.push(Bytes::Owned(large.clone()));
            batch.text().extend_from_slice(b"after");
            let manner = WriteLimits { most: most * 150, nopush: false };
            let mut cx = Context::from_waker(Waker::noop());
            while batch.len() > 0 {
                let before = batch.len();
                batch.shrink();
                assert_eq!(batch.len(), before);
                assert!(batch.text.capacity() < buffers::BUFFER_SIZE);
                assert!(batch.poll_write(&mut stream, &mut cx, manner).is_ready());
            }
            batch.clear();
            assert!(batch.text().capacity() >= buffers::BUFFER_SIZE);
            drop((batch, stream));
            let mut got = Vec::new();
            far.read_to_end(&mut got).unwrap();
            assert_eq!(got, [&b"before"[..], &large, b"after"].concat());
        }
    }
}
