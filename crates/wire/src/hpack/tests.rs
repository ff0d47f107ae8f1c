use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::integer::{self, BlockReader};
use super::{Decoder, Encoder, FieldLimits, HpackError, TABLE_BYTES_DEFAULT, huffman};

type Field = (String, String, bool);

const WIDE: FieldLimits = FieldLimits { fields_max: 1000, bytes_max: 1 << 20, ..FieldLimits::NONE };

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

fn decode_within(
    decoder: &mut Decoder,
    block: &[u8],
    limits: FieldLimits,
) -> (Vec<Field>, Result<(), HpackError>) {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    let result = decoder.decode(block, limits, |name, value, never| {
        fields.push((text(name), text(value), never));
    });
    (fields, result)
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, HpackError> {
    let (fields, result) = decode_within(decoder, block, WIDE);
    result.map(|()| fields)
}

fn refused(block: &str) -> HpackError {
    decode(&mut Decoder::new(TABLE_BYTES_DEFAULT), &hex(block)).unwrap_err()
}

fn plain(fields: &[(&str, &str)]) -> Vec<Field> {
    fields.iter().map(|(name, value)| (name.to_string(), value.to_string(), false)).collect()
}

/// Blocks with the fields they have, and the table's size after each.
type Exchange<'a> = [(&'a str, &'a [(&'a str, &'a str)], usize)];

fn decodes(table_size: usize, exchange: &Exchange<'_>) {
    let mut decoder = Decoder::new(table_size);
    for (block, fields, table_bytes) in exchange {
        assert_eq!(decode(&mut decoder, &hex(block)), Ok(plain(fields)), "{block}");
        assert_eq!(decoder.table.bytes().0, *table_bytes, "{block}");
    }
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const HUFFMAN_REQUESTS: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
const RESPONSES: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        ("set-cookie", COOKIE),
    ],
];

#[test]
fn integers_of_appendix_c1() {
    for (prefix_bits, value, bytes) in [(5, 10, "0a"), (5, 1337, "1f9a0a"), (8, 42, "2a")] {
        let mut out = Vec::new();
        integer::write(0, prefix_bits, value, &mut out);
        assert_eq!(out, hex(bytes));
        assert_eq!(BlockReader(&out).integer(prefix_bits), Ok(value));
    }
}

#[test]
fn fields_of_appendix_c2() {
    let field = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    decodes(4096, &[(field, &[("custom-key", "custom-header")], 55)]);
    decodes(4096, &[("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], 0)]);
    decodes(4096, &[("82", &[(":method", "GET")], 0)]);
    let never = decode(&mut Decoder::new(0), &hex("1008 7061 7373 776f 7264 0673 6563 7265 74"));
    assert_eq!(never, Ok(vec![("password".to_string(), "secret".to_string(), true)]));
}

#[test]
fn requests_of_appendix_c3_and_c4() {
    let [first, second, third] = REQUESTS;
    let of_c3 = [
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first, 57),
        ("8286 84be 5808 6e6f 2d63 6163 6865", second, 110),
        ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third, 164),
    ];
    decodes(4096, &of_c3);
    let [a, b, c] = HUFFMAN_REQUESTS;
    decodes(4096, &[(a, first, 57), (b, second, 110), (c, third, 164)]);
}

#[test]
fn responses_of_appendix_c5_and_c6_evict_entries() {
    let [first, second, third] = RESPONSES;
    let of_c5 = [
        (
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
             6c65 2e63 6f6d",
            first,
            222,
        ),
        ("4803 3330 37c1 c0bf", second, 222),
        (
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
             54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
             5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
             3d31",
            third,
            215,
        ),
    ];
    decodes(256, &of_c5);
    let of_c6 = [
        (
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            first,
            222,
        ),
        ("4883 640e ffc1 c0bf", second, 222),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            third,
            215,
        ),
    ];
    decodes(256, &of_c6);
}

#[test]
fn the_encoder_writes_the_requests_of_appendix_c4() {
    let mut encoder = Encoder::new(TABLE_BYTES_DEFAULT);
    for (fields, block) in REQUESTS.iter().zip(HUFFMAN_REQUESTS) {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in *fields {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        assert_eq!(out, hex(block));
    }
}

#[test]
fn every_symbol_survives_coding() {
    for byte in 0..=u8::MAX {
        for before in 0..8 {
            // A longer text puts the code at another bit.
            let text = [vec![b'0'; before], vec![byte, b'z']].concat();
            let (mut code, mut decoded) = (Vec::new(), Vec::new());
            huffman::encode(&text, &mut code);
            assert_eq!(code.len(), huffman::encoded_len(&text));
            assert_eq!(huffman::decode(&code, &mut decoded), Ok(()));
            assert_eq!(decoded, text);
        }
    }
}

#[test]
fn the_padding_is_less_than_a_byte_of_ones() {
    let decoded = |code: &str| {
        let mut out = Vec::new();
        huffman::decode(&hex(code), &mut out).map(|()| out)
    };
    assert_eq!(decoded(""), Ok(vec![]));
    assert_eq!(decoded("07"), Ok(b"0".to_vec())); // 00000 111
    assert_eq!(decoded("06"), Err(HpackError::InvalidHuffman));
    assert_eq!(decoded("07ff"), Err(HpackError::InvalidHuffman));
    assert_eq!(decoded("ff"), Err(HpackError::InvalidHuffman));
    // The code of EOS, complete.
    assert_eq!(decoded("ffffffff"), Err(HpackError::InvalidHuffman));
    assert_eq!(decoded("fffffffffc"), Err(HpackError::InvalidHuffman));
}

#[test]
fn broken_blocks_end_the_connection() {
    let broken = [
        ("80", HpackError::InvalidIndex),
        ("be", HpackError::InvalidIndex),
        ("7f00", HpackError::InvalidIndex),
        ("40", HpackError::Truncated),
        ("4001", HpackError::Truncated),
        ("400161", HpackError::Truncated),
        ("40016102", HpackError::Truncated),
        ("ff", HpackError::Truncated),
        ("ff80808080808001", HpackError::IntegerTooLong),
        ("4081ff00", HpackError::InvalidHuffman),
        ("3fe21f", HpackError::TableTooLarge), // 4097
        ("8220", HpackError::LateSizeUpdate),
    ];
    for (block, error) in broken {
        assert_eq!(refused(block), error, "{block}");
        assert!(error.ends_connection());
    }
}

#[test]
fn every_truncation_of_a_block_is_refused_or_ends_between_fields() {
    let block = hex(HUFFMAN_REQUESTS[0]);
    for len in 0..block.len() {
        let fields = decode(&mut Decoder::new(4096), &block[..len]);
        let expected = plain(&REQUESTS[0][..len.min(3)]);
        assert_eq!(fields, if len < 4 { Ok(expected) } else { Err(HpackError::Truncated) });
    }
}

#[test]
fn a_block_above_the_limits_still_changes_the_table() {
    let block = hex("400161 0162 400163 0164 400165 0166");
    let fields_max = FieldLimits { fields_max: 2, ..WIDE };
    let bytes_max = FieldLimits { bytes_max: 4, ..WIDE };
    let limited = [(fields_max, HpackError::TooManyFields), (bytes_max, HpackError::TooManyBytes)];
    for (limits, error) in limited {
        let mut decoder = Decoder::new(4096);
        let (fields, result) = decode_within(&mut decoder, &block, limits);
        assert_eq!((fields, result), (plain(&[("a", "b"), ("c", "d")]), Err(error)));
        assert!(!error.ends_connection());
        assert_eq!(
            decode(&mut decoder, &hex("be bf c0")),
            Ok(plain(&[("e", "f"), ("c", "d"), ("a", "b")]))
        );
    }
}

/// As in nginx, where `large_client_header_buffers` limits the encoded bytes.
#[test]
fn a_string_is_as_long_as_its_code() {
    let limits = FieldLimits { string_bytes_max: 5, ..WIDE };
    let mut code = Vec::new();
    huffman::encode(b"aaaaaaaa", &mut code);
    assert_eq!(code.len(), 5);
    let block = [&hex("000161 85")[..], &code].concat();
    let (fields, result) = decode_within(&mut Decoder::new(4096), &block, limits);
    assert_eq!((fields, result), (plain(&[("a", "aaaaaaaa")]), Ok(())));
    let block = hex("000161 06 616161616161");
    let (fields, result) = decode_within(&mut Decoder::new(4096), &block, limits);
    assert_eq!((fields, result), (vec![], Err(HpackError::StringTooLong)));
    assert!(HpackError::StringTooLong.ends_connection());
}

#[test]
fn a_bomb_ends_the_connection() {
    let mut block = hex("400161 7f8101"); // A value of 256 bytes,
    block.extend([b'x'; 256]);
    block.extend([0xbe; 1000]); // a thousand times.
    let limits = FieldLimits { fields_max: 10_000, bytes_max: 1000, ..FieldLimits::NONE };
    let (fields, result) = decode_within(&mut Decoder::new(4096), &block, limits);
    assert_eq!((fields.len(), result), (3, Err(HpackError::Excessive)));
    assert!(HpackError::Excessive.ends_connection());
}

#[test]
fn an_entry_may_take_its_name_from_the_one_it_evicts() {
    let mut decoder = Decoder::new(64);
    let block = hex("4008 6162 6364 6566 6768 0161 7e 0162");
    let expected = plain(&[("abcdefgh", "a"), ("abcdefgh", "b")]);
    assert_eq!(decode(&mut decoder, &block), Ok(expected));
    assert_eq!(decoder.table.fields(), [(b"abcdefgh".to_vec(), b"b".to_vec())]);
}

#[test]
fn a_field_larger_than_the_table_empties_it() {
    let mut decoder = Decoder::new(40);
    decode(&mut decoder, &hex("400161 0162 4001 6109 616263646566676869")).unwrap();
    assert_eq!(decoder.table.fields(), []);
}

#[test]
fn the_buffer_stays_within_twice_the_table() {
    let mut decoder = Decoder::new(4096);
    for count in 0..1000 {
        let mut block = vec![0x40, 1, b'a', 100];
        block.extend([b'x'; 100]);
        decode(&mut decoder, &block).unwrap();
        let (bytes, capacity) = decoder.table.bytes();
        assert!(bytes <= 4096 && capacity <= 8192, "{count}: {bytes} in {capacity}");
        assert_eq!(decoder.table.fields()[0].1.len(), 100);
    }
    assert_eq!(decoder.table.fields().len(), 4096 / 133);
}

fn encode(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

#[test]
fn repeated_fields_of_replies_take_a_byte_each() {
    let mut encoder = Encoder::new(4096);
    let fields = [
        ("Server", "weir"),
        ("Content-Type", "text/html"),
        ("Date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("X-Own", "1"),
    ];
    let first = encode(&mut encoder, &fields);
    assert!(first.len() > 30);
    assert_eq!(encode(&mut encoder, &fields), [0xc1, 0xc0, 0xbf, 0xbe]);
    let lower = fields.map(|(name, value)| (&*name.to_lowercase().leak(), value));
    assert_eq!(decode(&mut Decoder::new(4096), &first), Ok(plain(&lower)));
}

#[test]
fn values_that_alternate_are_found_among_the_earlier_ones() {
    let mut encoder = Encoder::new(4096);
    for value in ["text/html", "text/css", "image/png"] {
        encode(&mut encoder, &[("content-type", value)]);
    }
    assert_eq!(encode(&mut encoder, &[("content-type", "text/html")]), [0xc0]);
    assert_eq!(encode(&mut encoder, &[("content-type", "text/css")]), [0xbf]);
}

#[test]
fn fields_that_always_differ_are_not_indexed() {
    let mut encoder = Encoder::new(4096);
    let fields = [("content-length", "1024"), ("etag", "\"5-1\""), ("set-cookie", "a=b")];
    let first = encode(&mut encoder, &fields);
    assert_eq!(encode(&mut encoder, &fields), first);
    assert_eq!(encoder.table.fields(), []);
}

#[test]
fn a_secret_is_never_indexed() {
    let (mut encoder, mut out) = (Encoder::new(4096), Vec::new());
    encoder.field_never_indexed(b"Authorization", b"Basic YTpi", &mut out);
    encoder.field_never_indexed(b"X-Key", b"secret", &mut out);
    assert_eq!(encoder.table.fields(), []);
    let fields = decode(&mut Decoder::new(4096), &out).unwrap();
    let expected = [("authorization", "Basic YTpi"), ("x-key", "secret")];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_string(), value.to_string(), true)));
}

#[test]
fn statuses() {
    let (mut encoder, mut out) = (Encoder::new(4096), Vec::new());
    let codes = [200, 204, 206, 304, 400, 404, 500, 301, 301, 999];
    for code in codes {
        encoder.status(code, &mut out);
    }
    assert_eq!(out[..7], [0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e]);
    let fields = decode(&mut Decoder::new(4096), &out).unwrap();
    let expected = codes.map(|code| (":status".to_string(), code.to_string(), false));
    assert_eq!(fields, expected);
}

#[test]
fn the_table_shrinks_to_the_peers_size() {
    let mut encoder = Encoder::new(4096);
    encode(&mut encoder, &[("server", "weir")]);
    encoder.set_table_size(0);
    encoder.set_table_size(8192);
    assert_eq!(encode(&mut encoder, &[]), hex("20 3fe11f"));
    assert_eq!(encoder.table.fields(), []);
    encoder.set_table_size(100);
    assert_eq!(encode(&mut encoder, &[]), hex("3f45"));
    assert_eq!(encode(&mut encoder, &[]), []);
    assert_eq!(encode(&mut Encoder::new(0), &[(":method", "GET")]), hex("20 82"));
}
