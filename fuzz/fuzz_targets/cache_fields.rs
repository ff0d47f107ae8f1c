#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cache::fuzz::cache_fields(input));
