#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| session::keyval::fuzz::keyval_record(input));
