//! HPACK against another implementation, in both directions, with random fields.

use httlib_hpack::{Decoder as PeerDecoder, Encoder as PeerEncoder};
use wire::hpack::{Decoder, Encoder, FieldLimits};

type Field = (Vec<u8>, Vec<u8>);

const LIMITS: FieldLimits =
    FieldLimits { fields_max: 1000, bytes_max: 1 << 20, ..FieldLimits::NONE };
const ROUNDS: u64 = 300;
const BLOCKS: u64 = 30;

/// xorshift: the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Few names and values, so that many repeat.
    fn field(&mut self) -> Field {
        const NAMES: [&str; 10] = [
            ":status",
            ":path",
            "server",
            "date",
            "etag",
            "content-type",
            "set-cookie",
            "x-a",
            "x-b",
            "a-much-longer-name-of-a-field-than-usual",
        ];
        const VALUES: [&str; 6] = ["", "200", "/", "text/html", "a b", "\"5-63\""];
        let name = NAMES[self.below(10) as usize].into();
        let value = match self.below(8) {
            0 => (0..self.below(300)).map(|_| self.below(256) as u8).collect(),
            1 => vec![b'a' + self.below(26) as u8; self.below(3000) as usize],
            _ => VALUES[self.below(6) as usize].into(),
        };
        (name, value)
    }

    fn fields(&mut self) -> Vec<Field> {
        (0..self.below(12)).map(|_| self.field()).collect()
    }
}

#[test]
fn a_peer_decodes_our_blocks() {
    for round in 1..=ROUNDS {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut encoder = Encoder::new(4096);
        let mut decoder = PeerDecoder::with_dynamic_size(4096);
        for block in 0..BLOCKS {
            if random.below(5) == 0 {
                encoder.set_table_size(random.below(5000) as usize);
            }
            let fields = random.fields();
            let (mut out, mut decoded) = (Vec::new(), Vec::new());
            encoder.begin(&mut out);
            for (name, value) in &fields {
                match random.below(10) {
                    0 => encoder.field_never_indexed(name, value, &mut out),
                    _ => encoder.field(name, value, &mut out),
                }
            }
            decoder.decode(&mut out, &mut decoded).expect("a valid block");
            let decoded: Vec<Field> = decoded.into_iter().map(|(n, v, _)| (n, v)).collect();
            assert_eq!(decoded, fields, "block {block} of round {round}");
        }
    }
}

#[test]
fn we_decode_a_peers_blocks() {
    for round in 1..=ROUNDS {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut encoder = PeerEncoder::with_dynamic_size(4096);
        let mut decoder = Decoder::new(4096);
        for block in 0..BLOCKS {
            let (mut out, mut decoded) = (Vec::new(), Vec::new());
            if random.below(5) == 0 {
                let size = random.below(4097) as u32;
                encoder.update_max_dynamic_size(size, &mut out).expect("a size update");
            }
            let fields = random.fields();
            for (name, value) in &fields {
                let modes = random.below(64) as u8;
                let field = (name.clone(), value.clone(), modes);
                encoder.encode(field, &mut out).expect("a field");
            }
            let result = decoder
                .decode(&out, LIMITS, |name, value, _| decoded.push((name.into(), value.into())));
            assert_eq!(result, Ok(()), "block {block} of round {round}");
            assert_eq!(decoded, fields, "block {block} of round {round}");
        }
    }
}
