//! What nginx's levels are here: the cheapest level whose output is at most 2 % larger than that of
//! zlib, which nginx uses, on HTML, JavaScript and JSON of 1 KB to 1 MB (docs/cost.md).

/// zlib-rs's levels for 1 to 9. Its own first has no Huffman trees and is a quarter larger.
const STREAM: [u8; 9] = [2, 2, 3, 4, 5, 7, 7, 8, 9];

/// libdeflate's levels for 1 to 9.
const WHOLE: [u8; 9] = [1, 1, 1, 3, 5, 6, 7, 8, 9];

/// libdeflate's last levels compress a body however short it is, the others only store these.
const TINY_MAX: usize = 64;

/// In bodies up to this, libdeflate's first level finds what the others find, for half as much.
const SMALL_MAX: usize = 4096;
/// The levels up to which that holds.
const SMALL_LEVEL_MAX: u8 = 6;

/// zlib-rs's level.
pub(super) fn of_stream(level: u8) -> u8 {
    STREAM[usize::from(level) - 1]
}

/// libdeflate's level for a body of that length.
pub(super) fn of_whole(level: u8, length: usize) -> u8 {
    if length <= TINY_MAX {
        return WHOLE[8];
    }
    if length <= SMALL_MAX && level <= SMALL_LEVEL_MAX {
        return 1;
    }
    WHOLE[usize::from(level) - 1]
}
