//! What has come of a reply and is not given to the client yet, in order: in memory up to a limit,
//! then in a temporary file up to another.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use net::buffers::{self, LentPart};

use crate::exchange::{Bytes, Chunk, FileSlice};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// Less room than this at the end of a piece is not read into.
const ROOM_MIN: usize = 4096;

/// Pieces of a body.
#[derive(Default)]
pub(super) struct Spool {
    pieces: VecDeque<SpoolPiece>,
    /// Memory that they take.
    memory: usize,
    /// Memory of the piece that was given last: it is on its way.
    given: usize,
    file: Option<TempFile>,
}

enum SpoolPiece {
    /// A part of a buffer.
    Memory(Vec<u8>, usize),
    File(FileSlice),
}

/// Why a file could not be made or written.
pub(super) struct SpoolError(pub(super) &'static str, pub(super) PathBuf, pub(super) io::Error);

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
        self.pieces.push_back(SpoolPiece::Memory(buffer, start));
    }

    /// Takes the last piece back if there is room behind it. Where it starts.
    pub(super) fn reopen(&mut self) -> Option<(Vec<u8>, usize)> {
        match self.pieces.pop_back()? {
            SpoolPiece::Memory(buffer, start) if buffer.capacity() - buffer.len() >= ROOM_MIN => {
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
    ) -> Result<Option<PathBuf>, SpoolError> {
        let mut made = None;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = temp_path.create(TempFileEnd::Nameless);
                let file = file.map_err(|(path, error)| SpoolError("open()", path, error))?;
                made = Some(file.path().to_owned());
                none.insert(file)
            }
        };
        let written = file.append(bytes);
        written.map_err(|error| SpoolError("pwrite()", file.path().to_owned(), error))?;
        let slice = file.slice();
        let start = slice.end - bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(SpoolPiece::File(last)) => last.end = slice.end,
            _ => self.pieces.push_back(SpoolPiece::File(FileSlice { start, ..slice })),
        }
        Ok(made)
    }

    /// The next piece.
    pub(super) fn pop(&mut self) -> Option<Chunk> {
        self.given = 0;
        Some(match self.pieces.pop_front()? {
            SpoolPiece::File(slice) => Chunk::File(slice),
            SpoolPiece::Memory(buffer, start) => {
                self.memory -= buffer.capacity();
                self.given = buffer.capacity();
                let end = buffer.len();
                Chunk::Bytes(Bytes::Lent(LentPart::new(buffer, start..end)))
            }
        })
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            if let SpoolPiece::Memory(buffer, _) = piece {
                buffers::give_back(buffer);
            }
        }
    }
}
