//! Checksums: CRC-32 of the key, as nginx has it, and CRC-32C of what a file contains.

/// The reversed polynomial of CRC-32 (ISO-HDLC).
const CRC32: u32 = 0xedb8_8320;
/// The reversed polynomial of CRC-32C (Castagnoli).
const CRC32C: u32 = 0x82f6_3b78;

/// Bytes that one step takes.
const SLICE: usize = 8;

/// For each byte of a step, what it contributes.
type Tables = [[u32; 256]; SLICE];

static CRC32_TABLES: Tables = tables(CRC32);
static CRC32C_TABLES: Tables = tables(CRC32C);

/// The CRC-32 of a text.
pub fn crc32(text: &[u8]) -> u32 {
    !update(&CRC32_TABLES, !0, text)
}

/// A CRC-32C that is computed piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u32);

impl Default for Checksum {
    fn default() -> Self {
        Self(!0)
    }
}

impl Checksum {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = update(&CRC32C_TABLES, self.0, bytes);
    }

    /// The checksum; never 0, which a file without a checksum has.
    pub fn value(self) -> u32 {
        (!self.0).max(1)
    }
}

const fn tables(polynomial: u32) -> Tables {
    let mut tables = [[0; 256]; SLICE];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut at = 1;
    while at < SLICE {
        let mut byte = 0;
        while byte < 256 {
            let crc: u32 = tables[at - 1][byte];
            tables[at][byte] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        at += 1;
    }
    tables
}

fn update(tables: &Tables, mut crc: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<SLICE>();
    for step in steps {
        let word = u64::from_le_bytes(*step) ^ u64::from(crc);
        crc = word
            .to_le_bytes()
            .iter()
            .zip(tables.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, byte| (crc >> 8) ^ tables[0][usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        // The check values of the catalogue of CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut checksum = Checksum::default();
        checksum.add(b"123456789");
        assert_eq!(checksum.value(), 0xe306_9283);
    }

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..100u8).map(|at| at.wrapping_mul(37)).collect();
        let mut whole = Checksum::default();
        whole.add(&bytes);
        for split in 0..bytes.len() {
            let mut parts = Checksum::default();
            parts.add(&bytes[..split]);
            parts.add(&bytes[split..]);
            assert_eq!(parts.value(), whole.value(), "{split}");
        }
    }
}
