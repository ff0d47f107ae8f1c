//! Maps nginx's levels: to the cheapest level whose output is at most 2 % larger than that of zlib,
//! which nginx uses, for HTML, JavaScript and JSON of 1 KB to 1 MB (docs/cost.md).

/// zlib-rs's levels for 1 to 9. Its level 1 uses no Huffman trees, and its output is a quarter
/// larger.
const STREAM: [u8; 9] = [2, 2, 3, 4, 5, 7, 7, 8, 9];

/// libdeflate's levels for 1 to 9.
const WHOLE: [u8; 9] = [1, 1, 1, 3, 5, 6, 7, 8, 9];

/// Up to this length, only libdeflate's last levels compress; the others store the body.
const TINY_MAX: usize = 64;

/// Up to this length, libdeflate's level 1 compresses as well as the others, for half the cost.
const SMALL_MAX: usize = 4096;
/// The highest level for which level 1 is used then.
const SMALL_LEVEL_MAX: u8 = 6;

/// The level of zlib-rs.
pub(super) fn of_stream(level: u8) -> u8 {
    STREAM[usize::from(level) - 1]
}

/// The level of libdeflate for a body of that length.
pub(super) fn of_whole(level: u8, length: usize) -> u8 {
    if length <= TINY_MAX {
        return WHOLE[8];
    }
    if length <= SMALL_MAX && level <= SMALL_LEVEL_MAX {
        return 1;
    }
    WHOLE[usize::from(level) - 1]
}
