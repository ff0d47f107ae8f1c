//! Compresses bodies that are completely in memory, with libdeflate.
//!
//! A worker has one compressor for each level in use, and one output buffer, because only one body
//! is compressed at a time.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor};
use net::buffers::{self, BUFFER_SIZE, LentPart};

use crate::exchange::Bytes;

/// The longest body to compress as a whole.
pub(super) const WHOLE_MAX: usize = 256 * 1024;

/// The highest level of libdeflate in use.
const LEVEL_MAX: usize = 9;

#[derive(Default)]
struct Tools {
    compressors: [Option<Compressor>; LEVEL_MAX + 1],
    room: Vec<u8>,
}

thread_local! {
    static TOOLS: RefCell<Tools> = RefCell::default();
}

/// Compresses with this level of libdeflate. `None` if that fails.
pub(super) fn compress(input: &[u8], level: u8) -> Option<Bytes> {
    TOOLS.with_borrow_mut(|tools| {
        let Tools { compressors, room } = tools;
        let compressor = match compressors.get_mut(usize::from(level))? {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(CompressionLvl::new(level.into()).ok()?)),
        };
        let bound = compressor.gzip_compress_bound(input.len());
        if room.len() < bound {
            room.resize(bound, 0);
        }
        let length = compressor.gzip_compress(input, room).ok()?;
        Some(copied(&room[..length]))
    })
}

fn copied(bytes: &[u8]) -> Bytes {
    if bytes.len() > BUFFER_SIZE {
        return Bytes::Owned(bytes.to_vec());
    }
    let mut buffer = buffers::lend();
    buffer.extend_from_slice(bytes);
    Bytes::Lent(LentPart::new(buffer, 0..bytes.len()))
}
