//! CRC-32 as zlib and nginx compute it (ISO 3309), a byte at a time: texts are short.

/// A checksum, which can be continued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crc32(u32);

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

impl Crc32 {
    pub(super) const fn new() -> Self {
        Self(u32::MAX)
    }

    #[must_use]
    pub(super) fn update(self, bytes: &[u8]) -> Self {
        Self(
            bytes.iter().fold(self.0, |crc, byte| {
                TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8
            }),
        )
    }

    pub(super) const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(Crc32::new().update(b"12345").update(b"6789").value(), 0xcbf4_3926);
        assert_eq!(Crc32::new().value(), 0);
    }
}
