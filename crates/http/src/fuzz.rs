//! Properties that hold for any input, as functions that panic otherwise.
//!
//! Shared by the fuzz targets (`fuzz/`) and by the tests that run their seeds; not part of the
//! crate's interface.

use wire::fuzz::{Check, splits};

use crate::exchange::{BodyError, Bytes};
use crate::features::gunzip::stream::Expansion;

/// The checks by the names of their fuzz targets.
pub const CHECKS: [(&str, Check); 1] = [("gunzip", gunzip)];

/// A small size, so that there are many pieces.
const PIECE_MAX: usize = 97;

/// The most bytes of an expansion to check.
const TEXT_MAX: usize = 1 << 20;

/// A gzip body expands to the same bytes in pieces and as a whole, and no piece exceeds its limit.
pub fn gunzip(input: &[u8]) {
    let whole = expanded(input, &[input.len()]);
    for ends in splits(input) {
        let pieces = expanded(input, &ends);
        assert_eq!(pieces.is_ok(), whole.is_ok(), "in pieces {ends:?}");
        if let (Ok(pieces), Ok(whole)) = (pieces, &whole) {
            assert!(pieces == *whole, "in pieces {ends:?}");
        }
    }
}

fn expanded(input: &[u8], ends: &[usize]) -> Result<Vec<u8>, BodyError> {
    let mut expansion = Expansion::new(PIECE_MAX);
    let (mut text, mut start) = (Vec::new(), 0);
    for end in ends {
        expansion.feed(Bytes::Owned(input[start..*end].to_vec()));
        start = *end;
        loop {
            expansion.run()?;
            let is_full = expansion.is_full();
            if let Some(piece) = expansion.take_output() {
                assert!(piece.len() <= PIECE_MAX);
                text.extend_from_slice(piece.as_ref());
            }
            if text.len() > TEXT_MAX {
                return Ok(Vec::new());
            }
            if !is_full && !expansion.has_input() {
                break;
            }
        }
    }
    expansion.end().map(|()| text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Runs the seeds, so that earlier findings stay fixed without a fuzzer.
    #[test]
    fn seeds_pass() {
        for (name, check) in super::CHECKS {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
            let mut count = 0;
            for entry in fs::read_dir(seeds).unwrap() {
                check(&fs::read(entry.unwrap().path()).unwrap());
                count += 1;
            }
            assert!(count > 0, "{name} has no seeds");
        }
    }
}
