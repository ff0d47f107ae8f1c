#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lab::fuzz::perf_script(input));
