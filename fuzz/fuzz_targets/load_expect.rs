#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| load::fuzz::load_expect(input));
