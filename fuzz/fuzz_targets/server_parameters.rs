#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| upstream::fuzz::server_parameters(input));
