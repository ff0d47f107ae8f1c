#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| conf::fuzz::conf_replay(input));
