#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lab::fuzz::agent_request(input));
