//! The part of a reply that the client has not been given yet, in order: in memory up to a limit,
//! then in a temporary file up to another limit.

use std::collections::VecDeque;
use std::path::PathBuf;

use net::buffers::{self, LentPart};

use crate::exchange::{BodyError, Bytes, Chunk, FileSlice};
use crate::files::{TempFile, TempFileEnd, TempPath};

/// The smallest free space at the end of a piece that is read into.
const FREE_MIN: usize = 4096;

#[derive(Default)]
pub(super) struct Spool {
    pieces: VecDeque<SpoolPiece>,
    /// The capacity of the buffers in `pieces`.
    memory: usize,
    /// The memory of the last piece given, which is being sent.
    given: usize,
    file: Option<TempFile>,
}

enum SpoolPiece {
    /// A buffer, and where its unsent part begins.
    Memory(Vec<u8>, usize),
    File(FileSlice),
}

/// A buffer that is read into.
pub(super) struct ReadBuffer {
    pub(super) bytes: Vec<u8>,
    /// The start of the piece. The reply's head precedes the first piece.
    pub(super) start: usize,
    /// Whether the bytes go to the file.
    pub(super) to_file: bool,
}

impl Spool {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory + self.given
    }

    /// Bytes written to the file.
    pub(super) fn in_file(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.slice().len())
    }

    pub(super) fn push(&mut self, buffer: ReadBuffer) {
        let ReadBuffer { bytes, start, .. } = buffer;
        if bytes.len() == start {
            return buffers::give_back(bytes);
        }
        self.memory += bytes.capacity();
        self.pieces.push_back(SpoolPiece::Memory(bytes, start));
    }

    /// Takes the last piece back if there is free space behind it.
    pub(super) fn reopen(&mut self) -> Option<ReadBuffer> {
        match self.pieces.pop_back()? {
            SpoolPiece::Memory(bytes, start) if bytes.capacity() - bytes.len() >= FREE_MIN => {
                self.memory -= bytes.capacity();
                Some(ReadBuffer { bytes, start, to_file: false })
            }
            other => {
                self.pieces.push_back(other);
                None
            }
        }
    }

    /// Adds bytes to the file. Returns the path of the file if it was created for them.
    pub(super) fn push_to_file(
        &mut self,
        bytes: &[u8],
        temp_path: &TempPath,
    ) -> Result<Option<PathBuf>, BodyError> {
        let mut made = None;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = temp_path.create(TempFileEnd::Nameless);
                let file =
                    file.map_err(|(path, error)| BodyError::TempFile("open()", path, error))?;
                made = Some(file.path().to_owned());
                none.insert(file)
            }
        };
        let written = file.append(bytes);
        written.map_err(|error| BodyError::TempFile("pwrite()", file.path().to_owned(), error))?;
        let slice = file.slice();
        let start = slice.end - bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(SpoolPiece::File(last)) => last.end = slice.end,
            _ => self.pieces.push_back(SpoolPiece::File(FileSlice { start, ..slice })),
        }
        Ok(made)
    }

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
