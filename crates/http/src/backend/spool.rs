//! What has come of a reply and is not given to the client yet, in order: in memory up to a limit,
//! then in a temporary file up to another.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use net::buffers::{self, Lent};

use crate::exchange::{Bytes, Chunk, FileSlice};
use crate::files::{Fate, TempFile, TempPath};

/// Less room than this at the end of a piece is not read into.
const ROOM_MIN: usize = 4096;

/// Pieces of a body.
#[derive(Default)]
pub(super) struct Spool {
    pieces: VecDeque<Piece>,
    /// Memory that they take.
    memory: usize,
    /// Memory of the piece that was given last: it is on its way.
    given: usize,
    file: Option<TempFile>,
}

enum Piece {
    /// A part of a buffer.
    Memory(Vec<u8>, usize),
    File(FileSlice),
}

/// Why a file could not be made or written.
pub(super) struct FileError(pub(super) &'static str, pub(super) PathBuf, pub(super) io::Error);

impl Spool {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How much memory is in use.
    pub(super) fn memory(&self) -> usize {
        self.memory + self.given
    }

    /// How much has gone to the file.
    pub(super) fn in_file(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.slice().len())
    }

    /// Adds what a buffer has from `start` on.
    pub(super) fn push(&mut self, buffer: Vec<u8>, start: usize) {
        if buffer.len() == start {
            return buffers::give_back(buffer);
        }
        self.memory += buffer.capacity();
        self.pieces.push_back(Piece::Memory(buffer, start));
    }

    /// Takes the last piece back if there is room behind it. Where it starts.
    pub(super) fn reopen(&mut self) -> Option<(Vec<u8>, usize)> {
        match self.pieces.pop_back()? {
            Piece::Memory(buffer, start) if buffer.capacity() - buffer.len() >= ROOM_MIN => {
                self.memory -= buffer.capacity();
                Some((buffer, start))
            }
            other => {
                self.pieces.push_back(other);
                None
            }
        }
    }

    /// Adds bytes by way of the file. The path of the file, if it was made for them.
    pub(super) fn push_to_file(
        &mut self,
        bytes: &[u8],
        temp_path: &TempPath,
    ) -> Result<Option<PathBuf>, FileError> {
        let mut made = None;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = temp_path.create(Fate::Nameless);
                let file = file.map_err(|(path, error)| FileError("open()", path, error))?;
                made = Some(file.path().to_owned());
                none.insert(file)
            }
        };
        let written = file.append(bytes);
        written.map_err(|error| FileError("pwrite()", file.path().to_owned(), error))?;
        let slice = file.slice();
        let start = slice.end - bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(Piece::File(last)) => last.end = slice.end,
            _ => self.pieces.push_back(Piece::File(FileSlice { start, ..slice })),
        }
        Ok(made)
    }

    /// The next piece.
    pub(super) fn pop(&mut self) -> Option<Chunk> {
        self.given = 0;
        Some(match self.pieces.pop_front()? {
            Piece::File(slice) => Chunk::File(slice),
            Piece::Memory(buffer, start) => {
                self.memory -= buffer.capacity();
                self.given = buffer.capacity();
                let end = buffer.len();
                Chunk::Bytes(Bytes::Lent(Lent::new(buffer, start..end)))
            }
        })
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            if let Piece::Memory(buffer, _) = piece {
                buffers::give_back(buffer);
            }
        }
    }
}
